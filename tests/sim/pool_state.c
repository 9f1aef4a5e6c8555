/*
 * Pools as objects: which is a device's current one, creation, attributes, trimming, access.
 * Sharing pools between processes is not simulated.
 */
#include "pool.h"
#include "entries.h"

#include <string.h>

CUresult sim_cuDeviceGetDefaultMemPool(CUmemoryPool *ret_pool, CUdevice device)
{
	if (!ret_pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&core_lock);
	pool_current(device);
	*ret_pool = (CUmemoryPool)sim.device[device].default_pool;
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetMemPool(CUmemoryPool *ret_pool, CUdevice device)
{
	if (!ret_pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&core_lock);
	*ret_pool = (CUmemoryPool)pool_current(device);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle)
{
	struct pool *pool = pool_of(handle);
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pool || pool->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	pool_current(device);
	sim.device[device].current_pool = pool;
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

static CUresult by_location(CUmemLocation *location, CUmemAllocationType type)
{
	if (!location || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	return device_valid(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuMemGetDefaultMemPool(CUmemoryPool *ret_pool, CUmemLocation *location,
				    CUmemAllocationType type)
{
	CUresult result = by_location(location, type);
	if (result != CUDA_SUCCESS)
		return result;
	return sim_cuDeviceGetDefaultMemPool(ret_pool, location->id);
}

CUresult sim_cuMemGetMemPool(CUmemoryPool *ret_pool, CUmemLocation *location,
			     CUmemAllocationType type)
{
	CUresult result = by_location(location, type);
	return result == CUDA_SUCCESS ? sim_cuDeviceGetMemPool(ret_pool, location->id) : result;
}

CUresult sim_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUresult result = by_location(location, type);
	return result == CUDA_SUCCESS ? sim_cuDeviceSetMemPool(location->id, pool) : result;
}

CUresult sim_cuMemPoolCreate(CUmemoryPool *ret_pool, const CUmemPoolProps *props)
{
	if (!ret_pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	CUdevice device = -1;
	if (props->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
		device = props->location.id;
		if (!device_valid(device))
			return CUDA_ERROR_INVALID_DEVICE;
	} else if (props->location.type == CU_MEM_LOCATION_TYPE_INVALID) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&core_lock);
	struct pool *pool = pool_new(device);
	pool->props = *props;
	pthread_mutex_unlock(&core_lock);
	*ret_pool = (CUmemoryPool)pool;
	return CUDA_SUCCESS;
}

/* Live allocations stay valid; their memory goes when they are freed. */
CUresult sim_cuMemPoolDestroy(CUmemoryPool handle)
{
	struct pool *pool = pool_of(handle);
	if (!pool || pool->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	pool->destroyed = true;
	for (int i = 0; i < sim.device_count; i++)
		if (sim.device[i].current_pool == pool)
			sim.device[i].current_pool = sim.device[i].default_pool;
	pool_trim(pool, 0);
	pthread_mutex_unlock(&core_lock);
	pools_settle();
	return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
	struct pool *pool = pool_of(handle);
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	for (struct context *c = sim.contexts; c; c = c->next)
		if (c->device == pool->device)
			queue_progress(c);
	pool_trim(pool, keep);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute,
				   void *ret_value)
{
	struct pool *pool = pool_of(handle);
	if (!pool || !ret_value)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&core_lock);
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)ret_value = pool->reuse[attribute - 1];
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)ret_value = pool->threshold; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)ret_value = pool->reserved; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)ret_value = pool->reserved_high;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)ret_value = pool->used; break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)ret_value = pool->used_high; break;
	default: result = CUDA_ERROR_INVALID_VALUE; break;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
	struct pool *pool = pool_of(handle);
	if (!pool || !value)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&core_lock);
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse[attribute - 1] = *(int *)value;
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = *(cuuint64_t *)value; break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: pool->reserved_high = pool->reserved; break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: pool->used_high = pool->used; break;
	default: result = CUDA_ERROR_INVALID_VALUE; break;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *desc, size_t count)
{
	struct pool *pool = pool_of(handle);
	if (!pool || !desc)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			continue;
		if (!device_valid(desc[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		pool->access[desc[i].location.id] = (uint8_t)desc[i].flags;
	}
	return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolGetAccess(CUmemAccess_flags *ret_flags, CUmemoryPool handle,
				CUmemLocation *location)
{
	struct pool *pool = pool_of(handle);
	if (!pool || !ret_flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE && !device_valid(location->id))
		return CUDA_ERROR_INVALID_DEVICE;
	bool own = location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == pool->device;
	*ret_flags = own ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
		     : location->type == CU_MEM_LOCATION_TYPE_DEVICE
			     ? (CUmemAccess_flags)pool->access[location->id]
			     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}
