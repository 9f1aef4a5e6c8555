/*
 * Pools between processes. An imported pool cannot allocate; a pointer imported from it is memory
 * that its exporter has taken, so it takes none. Its contents are not shared.
 */
#include "entries.h"
#include "pool.h"

#include <string.h>

#define POINTER_MAGIC 0x51c7a900u

struct pointer_data {
	uint32_t magic, share, generation;
	uint64_t size;
};

CUresult sim_cuMemPoolExportToShareableHandle(void *ret_handle, CUmemoryPool handle,
					      CUmemAllocationHandleType type,
					      unsigned long long flags)
{
	struct pool *pool = pool_of(handle);
	if (!ret_handle || !pool || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !((int)pool->props.handleTypes & (int)type) || pool->device < 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	state_lock();
	if (!pool->share)
		pool->share = state_share_new(sim.slot, sim.device[pool->device].physical, 0) + 1;
	int fd = pool->share > 0 ? state_share_export((uint32_t)pool->share - 1) : -1;
	state_unlock();
	pthread_mutex_unlock(&core_lock);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)ret_handle = fd;
	return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolImportFromShareableHandle(CUmemoryPool *ret_pool, void *shareable,
						CUmemAllocationHandleType type,
						unsigned long long flags)
{
	if (!ret_pool || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	state_lock();
	int share = state_share_of((int)(intptr_t)shareable);
	CUdevice device = -1;
	for (int i = 0; share >= 0 && i < sim.device_count; i++)
		if (sim.device[i].physical == sim_shared->share[share].device)
			device = i;
	bool known = device >= 0 && state_share_get((uint32_t)share,
						    sim_shared->share[share].generation, sim.slot);
	state_unlock();
	if (known) {
		struct pool *pool = pool_new(device);
		pool->imported = true;
		pool->share = share + 1;
		*ret_pool = (CUmemoryPool)pool;
	}
	pthread_mutex_unlock(&core_lock);
	return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemPoolExportPointer(CUmemPoolPtrExportData *ret_data, CUdeviceptr address)
{
	struct pointer_data data = {.magic = POINTER_MAGIC};
	if (!ret_data)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct range *range = range_exact(address, RANGE_POOL);
	bool known = range && range->pool->share;
	if (known) {
		data.share = (uint32_t)range->pool->share - 1;
		data.generation = sim_shared->share[data.share].generation;
		data.size = range->size;
		memset(ret_data, 0, sizeof(*ret_data));
		memcpy(ret_data, &data, sizeof(data));
	}
	pthread_mutex_unlock(&core_lock);
	return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemPoolImportPointer(CUdeviceptr *ret_address, CUmemoryPool handle,
				    CUmemPoolPtrExportData *opaque)
{
	struct pool *pool = pool_of(handle);
	struct pointer_data data;
	if (!ret_address || !pool || !pool->imported || !opaque)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&data, opaque, sizeof(data));
	if (data.magic != POINTER_MAGIC || (int)data.share != pool->share - 1 ||
	    data.generation != sim_shared->share[data.share].generation)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	uint64_t base = space_map(data.size, false);
	struct range *range = base ? range_new(RANGE_IMPORTED, base, data.size) : NULL;
	if (range) {
		range->span = data.size;
		range->pool = pool;
		range->device = pool->device;
		*ret_address = base;
	}
	pthread_mutex_unlock(&core_lock);
	return range ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void pool_share_drop(struct pool *pool)
{
	if (!pool->share)
		return;
	state_lock();
	state_share_put((uint32_t)pool->share - 1, sim.slot);
	state_unlock();
	pool->share = 0;
}
