/*
 * Making, changing, trimming and ending pools. Creating one takes nothing; what it reserves is charged as it
 * grows (mem_async.c). An imported pool's memory is its exporter's.
 */
#include "base/log.h"
#include "hooks/mem_pool.h"

static uint64_t key_of(CUmemoryPool pool)
{
	return (uint64_t)(uintptr_t)pool;
}

/* Host pools and imported ones are known, so that nobody takes them for a device's. */
static struct pool *enter_foreign(struct memory *memory, CUmemoryPool pool, int imported)
{
	struct pool *entry =
		pools_enter(&memory->pools, key_of(pool), NULL, POOL_HOST, CHARGE_POOL);

	if (entry)
		entry->imported = (uint8_t)imported;
	return entry;
}

/* A pool that has no account could take what it likes: with the table full (POOLS) there is no other one. */
static CUresult without_account(CUmemoryPool pool)
{
	static _Atomic int told;

	if (!atomic_exchange(&told, 1))
		log_line(LOG_WARN, "more than %d memory pools at once: the next ones are refused",
			 POOLS);
	real.cuMemPoolDestroy(pool);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	struct memory *memory = mem_of_process();
	CUmemoryPool made = NULL;
	CUresult result = real.cuMemPoolCreate(memory && pool ? &made : pool, poolProps);
	struct device_tenant *tenant = NULL;

	if (!memory || result != CUDA_SUCCESS)
		return result;
	if (poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		tenant = tenant_of_device(poolProps->location.id);
#if CUDA_VERSION >= 13000
	/* Managed memory without a preference may be on any device: it counts where it was made. */
	if (poolProps->location.type == CU_MEM_LOCATION_TYPE_NONE) {
		tenant = tenant_of_current();
		tenant = tenant ? tenant : tenant_of_device(0);
	}
#endif
	if (!(tenant ? mem_pool_of(memory, made, tenant) : enter_foreign(memory, made, 0)))
		return without_account(made);
	*pool = made;
	return CUDA_SUCCESS;
}

/*
 * Blocks that the program still has keep their memory; the rest goes back with the pool. The handle is
 * forgotten before the driver is asked, since it may come again at once.
 */
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	struct memory *memory = mem_of_process();
	struct pool *entry = memory ? pools_find(&memory->pools, key_of(pool)) : NULL;
	CUresult result;

	if (!entry)
		return real.cuMemPoolDestroy(pool);
	if (entry->member) {
		real.cuMemPoolTrimTo(pool, 0);
		mem_pool_refresh(entry, 0, NULL);
	}
	pool_end(entry);
	result = real.cuMemPoolDestroy(pool);
	if (result != CUDA_SUCCESS)
		pool_revive(entry, key_of(pool));
	else
		pool_ended(entry);
	for (unsigned device = 0; device < TENANT_DEVICES; device++)
		mem_pool_forget_current(device);
	return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	struct memory *memory = mem_of_process();
	CUresult result = real.cuMemPoolTrimTo(pool, minBytesToKeep);
	struct pool *entry = memory ? pools_find(&memory->pools, key_of(pool)) : NULL;

	if (entry)
		mem_pool_refresh(entry, 0, NULL);
	return result;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	struct memory *memory = mem_of_process();
	CUresult result = real.cuMemPoolSetAttribute(pool, attr, value);
	struct pool *entry;

	if (!memory || result != CUDA_SUCCESS || attr != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		return result;
	entry = pools_find(&memory->pools, key_of(pool));
	if (entry)
		atomic_store(&entry->release_threshold, *(cuuint64_t *)value);
	return result;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	CUresult result = real.cuDeviceSetMemPool(dev, pool);

	if (dev >= 0 && dev < TENANT_DEVICES)
		mem_pool_forget_current((unsigned)dev);
	return result;
}

#if CUDA_VERSION >= 13000
/* Default pools of the host are not a device's. */
static CUresult got_pool(CUmemoryPool *pool, const CUmemLocation *location, CUresult result)
{
	struct memory *memory = result == CUDA_SUCCESS ? mem_of_process() : NULL;

	if (memory && location->type != CU_MEM_LOCATION_TYPE_DEVICE &&
	    location->type != CU_MEM_LOCATION_TYPE_NONE)
		enter_foreign(memory, *pool, 0);
	return result;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location,
				CUmemAllocationType type)
{
	return got_pool(pool_out, location, real.cuMemGetDefaultMemPool(pool_out, location, type));
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	return got_pool(pool, location, real.cuMemGetMemPool(pool, location, type));
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	CUresult result = real.cuMemSetMemPool(location, type, pool);

	for (unsigned device = 0; device < TENANT_DEVICES; device++)
		mem_pool_forget_current(device);
	return result;
}
#endif

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
					    CUmemAllocationHandleType handleType,
					    unsigned long long flags)
{
	struct memory *memory = mem_of_process();
	CUresult result =
		real.cuMemPoolImportFromShareableHandle(pool_out, handle, handleType, flags);

	if (memory && result == CUDA_SUCCESS)
		enter_foreign(memory, *pool_out, 1);
	return result;
}
