/* What the model takes and gives back. */
#include "model.h"

#include <stdio.h>
#include <string.h>

enum { NOTHING, LINEAR, PITCH, MANAGED, ASYNC, POOL, VIRTUAL, MAPPED, ARRAY, MIPMAP, GRAPH, KINDS };

_Atomic uint64_t model_granted, model_refused;

/* Mostly small and middling, now and then more than any cap. */
static uint64_t some_bytes(uint64_t *state)
{
	uint64_t dice = model_random(state) % 100;

	if (dice < 40)
		return model_random(state) % (1 << 20) + 1;
	if (dice < 95)
		return model_random(state) % (24 << 20) + 1;
	if (dice < 99)
		return model_random(state) % (400u << 20) + 1;
	return (64ull << 30) + model_random(state) % (1ull << 30);
}

static CUresult take_linear(struct model_item *item)
{
	size_t row = 0;
	CUdeviceptr p = 0;
	CUresult result;

	switch (item->kind) {
	case PITCH:
		result = cu.cuMemAllocPitch_v2(&p, &row, 100, item->bytes / 512 + 1, 4);
		item->bytes = row * (item->bytes / 512 + 1);
		break;
	case MANAGED: result = cu.cuMemAllocManaged(&p, item->bytes, CU_MEM_ATTACH_GLOBAL); break;
	case ASYNC: result = cu.cuMemAllocAsync(&p, item->bytes, NULL); break;
	case POOL:
		result = cu.cuMemAllocFromPoolAsync(&p, item->bytes, oracle[item->device].pool,
						    NULL);
		break;
	default: result = cu.cuMemAlloc_v2(&p, item->bytes); break;
	}
	item->address = p;
	if (result == CUDA_SUCCESS && item->kind != ASYNC && item->kind != POOL)
		model_stand(item->device, p, item->bytes, 1);
	return result;
}

static CUresult take_virtual(struct model_item *item)
{
	CUmemGenericAllocationHandle handle = 0;
	CUmemAllocationProp prop;
	CUdeviceptr p = 0;
	CUresult result;

	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = item->device;
	item->bytes = (item->bytes + (2 << 20) - 1) & ~((2ull << 20) - 1);
	result = cu.cuMemCreate(&handle, item->bytes, &prop, 0);
	if (result)
		return result;
	oracle[item->device].fixed += item->bytes;
	item->handle = handle;
	if (item->kind == VIRTUAL)
		return CUDA_SUCCESS;
	/* The mapping keeps it. */
	if (cu.cuMemAddressReserve(&p, item->bytes, 0, 0, 0) ||
	    cu.cuMemMap(p, item->bytes, 0, handle, 0) || cu.cuMemRelease(handle))
		return CUDA_ERROR_UNKNOWN;
	item->address = p;
	return CUDA_SUCCESS;
}

/* Whole pages of rows that need no padding, so that the size is beyond dispute. */
static CUresult take_array(struct model_item *item)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 1024,
				     .Height = (item->bytes / (2 << 20) + 1) * 512,
				     .Format = CU_AD_FORMAT_FLOAT,
				     .NumChannels = 1};
	CUmipmappedArray mipmap = NULL;
	CUarray array = NULL;
	CUresult result;

	if (d.Height > 65536)
		d.Height = 65536;
	item->bytes = d.Height * 4096;
	if (item->kind == ARRAY) {
		result = cu.cuArray3DCreate_v2(&array, &d);
		item->handle = (uintptr_t)array;
	} else {
		result = cu.cuMipmappedArrayCreate(&mipmap, &d, 2);
		item->handle = (uintptr_t)mipmap;
		item->bytes += item->bytes / 4;
		item->bytes = (item->bytes + (2 << 20) - 1) & ~((2ull << 20) - 1);
	}
	if (result == CUDA_SUCCESS)
		oracle[item->device].fixed += item->bytes;
	return result;
}

/* Takes and gives back in one launch; the device's graph pool keeps the memory. */
static CUresult take_graph(struct model_item *item)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	CUgraphNode node, last;
	CUgraphExec exec = NULL;
	CUgraph graph;
	CUresult result;

	memset(&params, 0, sizeof(params));
	params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	params.poolProps.location.id = item->device;
	params.bytesize = item->bytes;
	result = cu.cuGraphCreate(&graph, 0);
	if (!result)
		result = cu.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params);
	if (!result)
		result = cu.cuGraphAddMemFreeNode(&last, graph, &node, 1, params.dptr);
	if (!result)
		result = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
	cu.cuGraphDestroy(graph);
	item->handle = (uintptr_t)exec;
	if (result)
		return result; /* more addresses than the device has memory */
	result = cu.cuGraphLaunch(exec, NULL);
	if (result)
		cu.cuGraphExecDestroy(exec);
	return result;
}

int model_take(struct model_item *item, int device, uint64_t *state)
{
	CUresult result;

	item->kind = 1 + (int)(model_random(state) % (KINDS - 1));
	item->device = device;
	item->bytes = some_bytes(state);
	switch (item->kind) {
	case VIRTUAL:
	case MAPPED: result = take_virtual(item); break;
	case ARRAY:
	case MIPMAP: result = take_array(item); break;
	case GRAPH: result = take_graph(item); break;
	default: result = take_linear(item); break;
	}
	if (result == CUDA_SUCCESS) {
		model_granted++;
		return 0;
	}
	if (result != CUDA_ERROR_OUT_OF_MEMORY)
		printf("kind %d answers %d\n", item->kind, (int)result);
	item->kind = NOTHING;
	model_refused++;
	return result != CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult give_address(const struct model_item *item, uint64_t *state)
{
	CUresult result;

	if (item->kind != ASYNC && item->kind != POOL) {
		model_stand(item->device, item->address, item->bytes, -1);
		return cu.cuMemFree_v2(item->address);
	}
	/* The stream must be of the block's device. */
	cu.cuCtxSetCurrent(model_context[item->device]);
	result = model_random(state) % 4 ? cu.cuMemFreeAsync(item->address, NULL)
					 : cu.cuMemFree_v2(item->address);
	if (model_random(state) % 3 == 0)
		cu.cuCtxSynchronize();
	return result;
}

int model_give(struct model_item *item, uint64_t *state)
{
	CUresult result;

	switch (item->kind) {
	case VIRTUAL:
		oracle[item->device].fixed -= item->bytes;
		result = cu.cuMemRelease(item->handle);
		break;
	case MAPPED:
		oracle[item->device].fixed -= item->bytes;
		result = cu.cuMemUnmap(item->address, item->bytes);
		cu.cuMemAddressFree(item->address, item->bytes);
		break;
	case ARRAY:
		oracle[item->device].fixed -= item->bytes;
		result = cu.cuArrayDestroy((CUarray)(uintptr_t)item->handle);
		break;
	case MIPMAP:
		oracle[item->device].fixed -= item->bytes;
		result = cu.cuMipmappedArrayDestroy((CUmipmappedArray)(uintptr_t)item->handle);
		break;
	case GRAPH:
		result = cu.cuGraphExecDestroy((CUgraphExec)(uintptr_t)item->handle);
		if (model_random(state) % 3 == 0)
			cu.cuDeviceGraphMemTrim(item->device);
		break;
	default: result = give_address(item, state); break;
	}
	if (result)
		printf("giving back kind %d answers %d\n", item->kind, (int)result);
	item->kind = NOTHING;
	return result != CUDA_SUCCESS;
}
