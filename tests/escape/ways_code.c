/* Ways that come with running code: graphs, limits, modules, contexts; and odd places. */
#include "ways.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUresult run_graph(CUgraph graph, int upload)
{
	CUgraphExec exec;
	CUresult result = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);

	if (!result && upload)
		result = cu.cuGraphUpload(exec, way_stream);
	else if (!result)
		result = cu.cuGraphLaunch(exec, way_stream);
	return result ? result : cu.cuStreamSynchronize(way_stream);
}

static CUresult graph_node(uint64_t piece, int upload)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	CUgraphNode node;
	CUgraph graph;
	CUresult result;

	if (!cu.cuGraphAddMemAllocNode)
		return NOT_HERE;
	memset(&params, 0, sizeof(params));
	params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	params.poolProps.location.id = way_device;
	params.bytesize = piece;
	result = cu.cuGraphCreate(&graph, 0);
	if (!result)
		result = cu.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params);
	return result ? result : run_graph(graph, upload);
}

CUresult take_graph(uint64_t piece, uint64_t *ret)
{
	*ret = piece;
	return graph_node(piece, 0);
}

/* Whether an upload takes the memory or only the launch after it does is for the watcher to see. */
CUresult take_uploaded(uint64_t piece, uint64_t *ret)
{
	*ret = 0;
	return graph_node(piece, 1);
}

CUresult take_captured(uint64_t piece, uint64_t *ret)
{
	CUgraph graph = NULL;
	CUdeviceptr p;
	CUresult result = cu.cuStreamBeginCapture_v2(way_stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CUresult end;

	*ret = piece;
	if (result)
		return result;
	result = cu.cuMemAllocAsync(&p, piece, way_stream);
	end = cu.cuStreamEndCapture(way_stream, &graph);
	if (!result)
		result = end;
	return result ? result : run_graph(graph, 0);
}

/* ---- limits: each call raises the limit by another piece -------------------------------------------- */

static CUresult raise_limit(CUlimit limit, uint64_t step)
{
	static uint64_t value[CU_LIMIT_MAX];

	value[limit] += step;
	return cu.cuCtxSetLimit(limit, value[limit]);
}

CUresult take_heap(uint64_t piece, uint64_t *ret)
{
	*ret = piece;
	return raise_limit(CU_LIMIT_MALLOC_HEAP_SIZE, piece);
}

CUresult take_printf(uint64_t piece, uint64_t *ret)
{
	*ret = piece;
	return raise_limit(CU_LIMIT_PRINTF_FIFO_SIZE, piece);
}

static uint64_t threads(void)
{
	int sms = 1, each = 1;

	cu.cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, way_device);
	cu.cuDeviceGetAttribute(&each, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
				way_device);
	return (uint64_t)sms * (uint64_t)each;
}

CUresult take_stack(uint64_t piece, uint64_t *ret)
{
	uint64_t step = (piece / threads() + 1023) / 1024 * 1024;

	*ret = step * threads();
	return raise_limit(CU_LIMIT_STACK_SIZE, step);
}

/* ---- modules -------------------------------------------------------------------------------------- */

static const char *ptx(uint64_t global_bytes, uint64_t local_bytes)
{
	static char text[2048];

	snprintf(text, sizeof(text),
		 ".version 7.0\n.target sm_70\n.address_size 64\n"
		 ".visible .global .align 16 .b8 big[%llu];\n"
		 ".visible .entry touch(.param .u64 at)\n{\n"
		 "\t.local .align 8 .b8 frame[%llu];\n"
		 "\t.reg .u64 %%a, %%b;\n\t.reg .u32 %%i;\n"
		 "\tld.param.u64 %%a, [at];\n"
		 "\tmov.u64 %%b, frame;\n\tadd.u64 %%b, %%b, %%a;\n"
		 "\tmov.u32 %%i, %%tid.x;\n"
		 "\tst.local.u32 [%%b], %%i;\n\tld.local.u32 %%i, [%%b+4];\n"
		 "\tmov.u64 %%b, big;\n\tst.global.u32 [%%b], %%i;\n"
		 "\tret;\n}\n",
		 (unsigned long long)global_bytes, (unsigned long long)local_bytes);
	return text;
}

CUresult take_module(uint64_t piece, uint64_t *ret)
{
	CUdeviceptr p;
	CUmodule module;
	size_t bytes = 0;
	CUresult result = cu.cuModuleLoadData(&module, ptx(piece, 64));

	if (!result)
		result = cu.cuModuleGetGlobal_v2(&p, &bytes, module, "big");
	*ret = bytes;
	return result;
}

CUresult take_library(uint64_t piece, uint64_t *ret)
{
	CUdeviceptr p;
	CUlibrary library;
	size_t bytes = 0;
	CUresult result;

	*ret = 0;
	if (!cu.cuLibraryLoadData)
		return NOT_HERE;
	result = cu.cuLibraryLoadData(&library, ptx(piece, 64), NULL, NULL, 0, NULL, NULL, 0);
	if (!result)
		result = cu.cuLibraryGetGlobal(&p, &bytes, library, "big");
	*ret = bytes;
	return result;
}

/* A kernel with a large frame: the driver makes room for it on every thread the device can hold. */
CUresult take_local(uint64_t piece, uint64_t *ret)
{
	static uint64_t frame;
	uint64_t step = (piece / threads() + 1023) / 1024 * 1024, offset = 0;
	void *params[] = {&offset};
	CUmodule module;
	CUfunction function;
	CUresult result;

	frame += step;
	*ret = 0; /* for the watcher to see */
	result = cu.cuModuleLoadData(&module, ptx(16, frame));
	if (!result)
		result = cu.cuModuleGetFunction(&function, module, "touch");
	if (!result)
		result =
			cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, way_stream, params, NULL);
	return result ? result : cu.cuStreamSynchronize(way_stream);
}

/* ---- contexts: what they take is for the watcher to see ---------------------------------------------- */

CUresult take_context(uint64_t piece, uint64_t *ret)
{
	CUcontext before, context;
	CUresult result;

	(void)piece;
	*ret = 0;
	cu.cuCtxGetCurrent(&before);
	result = cu.cuCtxCreate_v2(&context, 0, way_device);
	cu.cuCtxSetCurrent(before);
	return result;
}

CUresult take_green(uint64_t piece, uint64_t *ret)
{
	CUdevResource all, part, rest;
	CUdevResourceDesc description;
	CUgreenCtx green;
	CUcontext before, context;
	CUdeviceptr p;
	unsigned groups = 1;
	CUresult result;

	*ret = piece;
	if (!cu.cuGreenCtxCreate)
		return NOT_HERE;
	cu.cuCtxGetCurrent(&before);
	result = cu.cuDeviceGetDevResource(way_device, &all, CU_DEV_RESOURCE_TYPE_SM);
	if (!result)
		result = cu.cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, 8);
	if (!result)
		result = cu.cuDevResourceGenerateDesc(&description, &part, 1);
	if (!result)
		result = cu.cuGreenCtxCreate(&green, description, way_device,
					     CU_GREEN_CTX_DEFAULT_STREAM);
	if (!result)
		result = cu.cuCtxFromGreenCtx(&context, green);
	if (!result)
		result = cu.cuCtxSetCurrent(context);
	if (!result)
		result = cu.cuMemAlloc_v2(&p, piece);
	cu.cuCtxSetCurrent(before);
	return result;
}

/* ---- odd places ----------------------------------------------------------------------------------- */

CUresult take_second_device(uint64_t piece, uint64_t *ret)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	int count = 0;

	*ret = piece;
	cu.cuDeviceGetCount(&count);
	if (count < 2 || !cu.cuMemCreate)
		return NOT_HERE;
	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = way_device + 1;
	return cu.cuMemCreate(&handle, piece, &prop, 0);
}

/* One tile of 2 MiB each time; the tile's memory lives on in the array when its handle is released. */
CUresult take_sparse(uint64_t piece, uint64_t *ret)
{
	static CUarray array;
	static unsigned row;
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 65536,
				     .Height = 65536,
				     .Format = CU_AD_FORMAT_FLOAT,
				     .NumChannels = 1,
				     .Flags = CUDA_ARRAY3D_SPARSE};
	CUDA_ARRAY_SPARSE_PROPERTIES tile;
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	CUarrayMapInfo info;
	CUresult result;

	*ret = piece;
	if (!cu.cuMemMapArrayAsync || !cu.cuArrayGetSparseProperties)
		return NOT_HERE;
	if (!array && cu.cuArray3DCreate_v2(&array, &d))
		return NOT_HERE;
	if (cu.cuArrayGetSparseProperties(&tile, array))
		return NOT_HERE;
	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = way_device;
	prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
	result = cu.cuMemCreate(&handle, piece, &prop, 0);
	if (result)
		return result;
	memset(&info, 0, sizeof(info));
	info.resourceType = CU_RESOURCE_TYPE_ARRAY;
	info.resource.array = array;
	info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
	info.subresource.sparseLevel.offsetY = row;
	info.subresource.sparseLevel.extentWidth = tile.tileExtent.width;
	info.subresource.sparseLevel.extentHeight = tile.tileExtent.height;
	info.subresource.sparseLevel.extentDepth = 1;
	info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
	info.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
	info.memHandle.memHandle = handle;
	info.deviceBitMask = 1u << way_device;
	row += tile.tileExtent.height;
	result = cu.cuMemMapArrayAsync(&info, 1, way_stream);
	if (!result)
		result = cu.cuStreamSynchronize(way_stream);
	return result ? result : cu.cuMemRelease(handle);
}
