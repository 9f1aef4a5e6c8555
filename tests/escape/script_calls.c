/* The calls of `escape script`. */
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A word that a test gives only sometimes. */
static const char *word(int argc, char **argv, int i, const char *otherwise)
{
	return i < argc ? argv[i] : otherwise;
}

/* What outputs hold before a call: a refusal leaves it there, and the test sees that it did. */
#define UNTOUCHED 0x1111111111111111ull

/* A green context of device 0. */
static CUresult green(const char *name)
{
	CUdevResource all, part, rest;
	CUdevResourceDesc description;
	CUgreenCtx made;
	unsigned groups = 1;
	CUresult result = cu.cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);

	if (!result)
		result = cu.cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, 8);
	if (!result)
		result = cu.cuDevResourceGenerateDesc(&description, &part, 1);
	if (!result)
		result = cu.cuGreenCtxCreate(&made, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
	if (!result)
		*script_name(name) = (uintptr_t)made;
	return result;
}

static CUresult context(int argc, char **argv)
{
	const char *what = argv[0];
	CUdevice device = atoi(word(argc, argv, 2, word(argc, argv, 1, "0")));
	CUcontext made;
	CUresult result;

	if (!strcmp(what, "green"))
		return green(argv[1]);
	if (!strcmp(what, "endgreen"))
		return cu.cuGreenCtxDestroy((CUgreenCtx)(uintptr_t)*script_name(argv[1]));
	if (!strcmp(what, "ctx")) {
		result = cu.cuDevicePrimaryCtxRetain(&made, device);
		return result ? result : cu.cuCtxSetCurrent(made);
	}
	if (!strcmp(what, "newctx")) {
		result = cu.cuCtxCreate_v2(&made, 0, device);
		if (!result)
			*script_name(argv[1]) = (uintptr_t)made;
		return result;
	}
	if (!strcmp(what, "use"))
		return cu.cuCtxSetCurrent((CUcontext)(uintptr_t)*script_name(argv[1]));
	if (!strcmp(what, "endctx"))
		return cu.cuCtxDestroy_v2((CUcontext)(uintptr_t)*script_name(argv[1]));
	if (!strcmp(what, "release"))
		return cu.cuDevicePrimaryCtxRelease_v2(device);
	return cu.cuDevicePrimaryCtxReset_v2(device);
}

static CUmemoryPool pool_named(const char *name)
{
	static const char all[] = "default";
	CUmemoryPool handle = NULL;

	if (strncmp(name, all, strlen(all)))
		return (CUmemoryPool)(uintptr_t)*script_name(name);
	cu.cuDeviceGetDefaultMemPool(&handle, atoi(name + strlen(all)));
	return handle;
}

static CUresult linear(int argc, char **argv, char *note, size_t room)
{
	CUdeviceptr p = UNTOUCHED;
	CUdeviceptr_v1 old = (CUdeviceptr_v1)UNTOUCHED;
	size_t row = 0;
	CUresult result;

	if (!strcmp(argv[0], "alloc1")) {
		result = cu.cuMemAlloc(&old, (unsigned)script_bytes(argv[2]));
		p = old == (CUdeviceptr_v1)UNTOUCHED ? UNTOUCHED : old;
	} else if (!strcmp(argv[0], "managed")) {
		result = cu.cuMemAllocManaged(&p, script_bytes(argv[2]), CU_MEM_ATTACH_GLOBAL);
	} else if (!strcmp(argv[0], "pitch")) {
		result = cu.cuMemAllocPitch_v2(&p, &row, script_bytes(argv[2]),
					       script_bytes(argv[3]), 4);
		snprintf(note, room, "%zu", row);
	} else if (!strcmp(argv[0], "async") && argc > 3) {
		result = cu.cuMemAllocFromPoolAsync(&p, script_bytes(argv[2]), pool_named(argv[3]),
						    NULL);
	} else if (!strcmp(argv[0], "async")) {
		result = cu.cuMemAllocAsync(&p, script_bytes(argv[2]), NULL);
	} else {
		result = cu.cuMemAlloc_v2(&p, script_bytes(argv[2]));
	}
	if (result == CUDA_SUCCESS)
		*script_name(argv[1]) = p;
	else if (p != UNTOUCHED)
		snprintf(note, room, "output touched");
	return result;
}

static CUresult freed(char **argv)
{
	CUdeviceptr p = *argv[1] == '0' ? 0 : *script_name(argv[1]);

	if (!strcmp(argv[0], "free1"))
		return cu.cuMemFree((CUdeviceptr_v1)p);
	if (!strcmp(argv[0], "freeasync"))
		return cu.cuMemFreeAsync(p, NULL);
	return cu.cuMemFree_v2(p);
}

static CUresult pool(int argc, char **argv)
{
	CUmemoryPool handle = pool_named(argv[1]);
	const char *where = word(argc, argv, 2, "0");
	cuuint64_t keep;
	CUmemPoolProps props;
	CUresult result;

	if (!strcmp(argv[0], "trim"))
		return cu.cuMemPoolTrimTo(handle, script_bytes(argv[2]));
	if (!strcmp(argv[0], "endpool"))
		return cu.cuMemPoolDestroy(handle);
	if (!strcmp(argv[0], "keep")) {
		keep = script_bytes(argv[2]);
		return cu.cuMemPoolSetAttribute(handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
	}
	memset(&props, 0, sizeof(props));
	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type =
		!strcmp(where, "host") ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
	props.location.id = atoi(where);
	result = cu.cuMemPoolCreate(&handle, &props);
	if (!result)
		*script_name(argv[1]) = (uintptr_t)handle;
	return result;
}

static CUresult create(int argc, char **argv, char *note, size_t room)
{
	CUmemGenericAllocationHandle handle = UNTOUCHED;
	CUmemAllocationProp prop;
	CUresult result;

	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = (CUmemLocationType)atoi(word(argc, argv, 3, "1"));
	prop.location.id = atoi(word(argc, argv, 4, "0"));
	if (prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	result = cu.cuMemCreate(&handle, script_bytes(argv[2]), &prop, 0);
	if (result == CUDA_SUCCESS)
		*script_name(argv[1]) = handle;
	else if (handle != UNTOUCHED)
		snprintf(note, room, "output touched");
	return result;
}

static CUresult virtual_memory(char **argv)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr p = 0;
	CUresult result;

	if (!strcmp(argv[0], "drop"))
		return cu.cuMemRelease(*script_name(argv[1]));
	if (!strcmp(argv[0], "map"))
		return cu.cuMemMap(*script_name(argv[2]), script_bytes(argv[3]), 0,
				   *script_name(argv[1]), 0);
	if (!strcmp(argv[0], "unmap"))
		return cu.cuMemUnmap(*script_name(argv[1]), script_bytes(argv[2]));
	if (!strcmp(argv[0], "retain")) {
		result = cu.cuMemRetainAllocationHandle(&handle,
							(void *)(uintptr_t)*script_name(argv[2]));
		if (!result)
			*script_name(argv[1]) = handle;
		return result;
	}
	result = cu.cuMemAddressReserve(&p, script_bytes(argv[2]), 0, 0, 0);
	if (!result)
		*script_name(argv[1]) = p;
	return result;
}

static CUresult array(char **argv)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 4096,
				     .Height = script_bytes(argv[2] ? argv[2] : "0") >> 14,
				     .Format = CU_AD_FORMAT_FLOAT,
				     .NumChannels = 1};
	void *handle = (void *)(uintptr_t)*script_name(argv[1]);
	CUresult result;

	if (!strcmp(argv[0], "endarray"))
		return cu.cuArrayDestroy(handle);
	if (!strcmp(argv[0], "endmipmap"))
		return cu.cuMipmappedArrayDestroy(handle);
	result = *argv[0] == 'a' ? cu.cuArray3DCreate_v2((CUarray *)&handle, &d)
				 : cu.cuMipmappedArrayCreate((CUmipmappedArray *)&handle, &d, 3);
	if (!result)
		*script_name(argv[1]) = (uintptr_t)handle;
	return result;
}

/* A sparse array, and one page of it mapped to a handle. */
static CUresult sparse(char **argv)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 1024,
				     .Height = 1024,
				     .Format = CU_AD_FORMAT_FLOAT,
				     .NumChannels = 1,
				     .Flags = CUDA_ARRAY3D_SPARSE};
	CUarray array = (CUarray)(uintptr_t)*script_name(argv[1]);
	CUDA_ARRAY_SPARSE_PROPERTIES properties;
	CUarrayMapInfo info;
	CUresult result;

	if (!strcmp(argv[0], "sparse")) {
		result = cu.cuArray3DCreate_v2(&array, &d);
		*script_name(argv[1]) = (uintptr_t)array;
		return result;
	}
	result = cu.cuArrayGetSparseProperties(&properties, array);
	memset(&info, 0, sizeof(info));
	info.resourceType = CU_RESOURCE_TYPE_ARRAY;
	info.resource.array = array;
	info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
	info.subresource.sparseLevel.extentWidth = properties.tileExtent.width;
	info.subresource.sparseLevel.extentHeight = properties.tileExtent.height;
	info.subresource.sparseLevel.extentDepth = 1;
	info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
	info.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
	info.memHandle.memHandle = *script_name(argv[2]);
	info.deviceBitMask = 1;
	return result ? result : cu.cuMemMapArrayAsync(&info, 1, NULL);
}

static CUresult code(char **argv)
{
	static char text[256];
	void *handle = (void *)(uintptr_t)*script_name(argv[1]);
	CUresult result;

	if (!strcmp(argv[0], "endmodule"))
		return cu.cuModuleUnload(handle);
	snprintf(text, sizeof(text),
		 ".version 7.0\n.target sm_70\n.address_size 64\n"
		 ".visible .global .align 16 .b8 big[%llu];\n.visible .entry f()\n{\n\tret;\n}\n",
		 (unsigned long long)script_bytes(argv[2]));
	result = cu.cuModuleLoadData((CUmodule *)&handle, text);
	if (!result)
		*script_name(argv[1]) = (uintptr_t)handle;
	return result;
}

/* A graph that takes memory at each launch and gives it back in the same launch. */
static CUresult graph(char **argv)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	CUgraphExec exec = (CUgraphExec)(uintptr_t)*script_name(argv[1]);
	CUgraphNode node, last;
	CUgraph made;
	CUresult result;

	if (!strcmp(argv[0], "launch")) {
		result = cu.cuGraphLaunch(exec, NULL);
		return result ? result : cu.cuCtxSynchronize();
	}
	if (!strcmp(argv[0], "endgraph"))
		return cu.cuGraphExecDestroy(exec);
	memset(&params, 0, sizeof(params));
	params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	params.bytesize = script_bytes(argv[2]);
	result = cu.cuGraphCreate(&made, 0);
	if (!result)
		result = cu.cuGraphAddMemAllocNode(&node, made, NULL, 0, &params);
	if (!result && !argv[3])
		result = cu.cuGraphAddMemFreeNode(&last, made, &node, 1, params.dptr);
	if (!result)
		result = cu.cuGraphInstantiateWithFlags(&exec, made, 0);
	if (!result) {
		*script_name(argv[1]) = (uintptr_t)exec;
		if (argv[3])
			*script_name(argv[3]) = params.dptr;
	}
	return result;
}

static CUresult told(char **argv, char *note, size_t room)
{
	size_t free_bytes = 0, total = 0;
	CUresult result;

	if (!strcmp(argv[0], "total")) {
		result = cu.cuDeviceTotalMem_v2(&total, atoi(argv[1]));
		snprintf(note, room, "%zu", total >> 20);
		return result;
	}
	/* Used by the group, in MiB, as a program can see it. */
	result = cu.cuMemGetInfo_v2(&free_bytes, &total);
	snprintf(note, room, "used %zu free %zu total %zu", (total - free_bytes) >> 20,
		 free_bytes >> 20, total >> 20);
	return result;
}

static int is_one_of(const char *what, const char *list)
{
	char padded[40];

	snprintf(padded, sizeof(padded), " %s ", what);
	return strstr(list, padded) != NULL;
}

CUresult script_call(int argc, char **argv, char *note, size_t room)
{
	const char *what = argv[0];

	if (is_one_of(what, " ctx newctx use endctx release reset green endgreen "))
		return context(argc, argv);
	if (is_one_of(what, " alloc alloc1 managed pitch async "))
		return linear(argc, argv, note, room);
	if (is_one_of(what, " free free1 freeasync "))
		return freed(argv);
	if (is_one_of(what, " pool trim keep endpool "))
		return pool(argc, argv);
	if (!strcmp(what, "create"))
		return create(argc, argv, note, room);
	if (is_one_of(what, " drop reserve map unmap retain "))
		return virtual_memory(argv);
	if (is_one_of(what, " array endarray mipmap endmipmap "))
		return array(argv);
	if (is_one_of(what, " sparse tile "))
		return sparse(argv);
	if (is_one_of(what, " module endmodule "))
		return code(argv);
	if (is_one_of(what, " graph launch endgraph "))
		return graph(argv);
	if (!strcmp(what, "graphtrim"))
		return cu.cuDeviceGraphMemTrim(0);
	if (!strcmp(what, "limit"))
		return cu.cuCtxSetLimit((CUlimit)atoi(argv[1]), script_bytes(argv[2]));
	if (is_one_of(what, " info total "))
		return told(argv, note, room);
	if (!strcmp(what, "sync"))
		return cu.cuCtxSynchronize();
	return script_share(argc, argv, note, room);
}
