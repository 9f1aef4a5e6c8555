/*
 * Memory of cuMemCreate that is mapped where there is no address: tiles of sparse arrays, and multicast objects.
 * While it is, its handle may be released and it lives on.
 */
#include <string.h>

#include "hooks/mem_call.h"
#include "hooks/mem_virtual.h"

/* Names a place; places that differ get different names but for a chance of 2^-64. */
static uint64_t place_name(const void *bytes, size_t count, uint64_t within)
{
	const unsigned char *at = bytes;
	uint64_t name = 0xcbf29ce484222325ull ^ within;

	for (size_t i = 0; i < count; i++)
		name = (name ^ at[i]) * 0x100000001b3ull;
	return name | 1ull << 63; /* no device address has that bit */
}

static uint64_t tile_name(const CUarrayMapInfo *info)
{
	struct {
		uint32_t type, level, layer, x, y, z;
		uint64_t offset;
	} place = {.type = (uint32_t)info->subresourceType};

	if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
		place.layer = info->subresource.miptail.layer;
		place.offset = info->subresource.miptail.offset;
	} else {
		place.level = info->subresource.sparseLevel.level;
		place.layer = info->subresource.sparseLevel.layer;
		place.x = info->subresource.sparseLevel.offsetX;
		place.y = info->subresource.sparseLevel.offsetY;
		place.z = info->subresource.sparseLevel.offsetZ;
	}
	return place_name(&place, sizeof(place), (uint64_t)(uintptr_t)info->resource.array);
}

/* A sparse array that holds mappings is told by its refs, so that its end ends them: other arrays have one. */
static void enter_sparse(struct memory *memory, const CUarrayMapInfo *info)
{
	struct charge entry = {
		.key = (uint64_t)(uintptr_t)info->resource.array,
		.refs = 2,
		.kind = CHARGE_ARRAY,
		.space = info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY ? AT_MIPMAP
										: AT_ARRAY,
	};

	charges_ref(memory->charges, &entry);
}

static CUresult mapped(const CUarrayMapInfo *list, unsigned int count, CUresult result)
{
	struct memory *memory = result == CUDA_SUCCESS ? mem_of_process() : NULL;
	struct object_end end;

	for (unsigned i = 0; memory && i < count; i++) {
		const CUarrayMapInfo *info = &list[i];
		uint64_t place = tile_name(info);

		if (info->memOperationType == CU_MEM_OPERATION_TYPE_MAP) {
			enter_sparse(memory, info);
			object_map(memory->charges, info->memHandle.memHandle, place, 1,
				   (uint64_t)(uintptr_t)info->resource.array, &end);
		} else {
			object_unmap(memory->charges, place, &end);
		}
		mem_object_ended(memory, &end, CUDA_SUCCESS);
	}
	return result;
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream)
{
	return mapped(mapInfoList, count, real.cuMemMapArrayAsync(mapInfoList, count, hStream));
}

CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream)
{
	return mapped(mapInfoList, count,
		      real.cuMemMapArrayAsync_ptsz(mapInfoList, count, hStream));
}

static int is_within(const struct charge *entry, void *arg)
{
	return entry->space == AT_MAPPING && entry->within == *(const uint64_t *)arg;
}

void mem_sparse_ended(struct memory *memory, const struct charge *array)
{
	struct charges_walk walk = {0};
	uint64_t within = array->key;
	struct object_end end;
	struct charge batch[32];
	size_t count;

	if (array->refs < 2)
		return;
	do {
		count = charges_collect(memory->charges, &walk, 1, is_within, &within, batch, 32);
		for (size_t i = 0; i < count; i++) {
			object_let_go(memory->charges, &batch[i], &end);
			mem_object_ended(memory, &end, CUDA_SUCCESS);
		}
	} while (count);
}

/* ---- multicast: the object itself is no memory, what is bound to it stays ---------------------------- */

#if CUDA_VERSION >= 12010

static uint64_t binding_name(CUmemGenericAllocationHandle multicast, size_t offset, uint64_t memory)
{
	struct {
		uint64_t offset, memory;
	} place = {offset, memory};

	return place_name(&place, sizeof(place), multicast);
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
			    CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
			    unsigned long long flags)
{
	struct memory *memory = mem_of_process();
	CUresult result =
		real.cuMulticastBindMem(mcHandle, mcOffset, memHandle, memOffset, size, flags);
	struct object_end end;

	if (memory && result == CUDA_SUCCESS) {
		object_map(memory->charges, memHandle, binding_name(mcHandle, mcOffset, memHandle),
			   size, mcHandle, &end);
		mem_object_ended(memory, &end, CUDA_SUCCESS);
	}
	return result;
}

/* Memory by the address where it is mapped: it may be unmapped and released, and stays bound. */
CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
			     CUdeviceptr memptr, size_t size, unsigned long long flags)
{
	struct memory *memory = mem_of_process();
	CUresult result = real.cuMulticastBindAddr(mcHandle, mcOffset, memptr, size, flags);
	struct object_end end;

	if (memory && result == CUDA_SUCCESS &&
	    !object_map_address(memory->charges, memptr, binding_name(mcHandle, mcOffset, memptr),
				size, mcHandle, &end))
		mem_object_ended(memory, &end, CUDA_SUCCESS);
	return result;
}

struct binding {
	uint64_t multicast;
	uint64_t bytes;
	unsigned device;
};

static int is_binding(const struct charge *entry, void *arg)
{
	const struct binding *binding = arg;

	return entry->space == AT_MAPPING && entry->within == binding->multicast &&
	       entry->device == binding->device && entry->bytes == binding->bytes;
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
			   size_t size)
{
	struct memory *memory = mem_of_process();
	CUresult result = real.cuMulticastUnbind(mcHandle, dev, mcOffset, size);
	struct binding binding = {mcHandle, size, (unsigned)dev};
	struct charges_walk walk = {0};
	struct object_end end;
	struct charge entry;

	if (memory && result == CUDA_SUCCESS &&
	    charges_collect(memory->charges, &walk, 1, is_binding, &binding, &entry, 1)) {
		object_let_go(memory->charges, &entry, &end);
		mem_object_ended(memory, &end, CUDA_SUCCESS);
	}
	return result;
}

#endif
