/*
 * Pools as the driver has them: which one is current, what they reserve, trimming, and frees of their
 * blocks. Our own calls are made in relaxed capture mode: they must not end somebody's capture.
 */
#include "hooks/mem_pool.h"

#include "hooks/capture.h"

_Atomic(struct pool *) mem_pools_now[TENANT_DEVICES];

void mem_pool_forget_current(unsigned device)
{
	atomic_store(&mem_pools_now[device], NULL);
}

static CUmemoryPool handle_of(const struct pool *pool)
{
	return (CUmemoryPool)(uintptr_t)atomic_load(&pool->handle);
}

static int read_pool(struct pool *pool, CUmemPool_attribute attribute, cuuint64_t *ret)
{
	CUstreamCaptureMode mode = capture_relax();
	CUresult result = real.cuMemPoolGetAttribute(handle_of(pool), attribute, ret);

	capture_restore(mode);
	return __builtin_expect(result != CUDA_SUCCESS, 0) ? -1 : 0;
}

int mem_pool_refresh(struct pool *pool, uint64_t held, struct refusal *ret)
{
	cuuint64_t reserved = 0;

	if (!pool->member)
		return 0;
	/* Not to be read: what was held ahead stays charged. */
	if (read_pool(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved))
		reserved = atomic_load(&pool->snapshot) + held;
	return pool_is_settled(pool, held, reserved) ? 0 : pool_settle(pool, held, reserved, ret);
}

void mem_pool_drop(struct pool *pool, uint64_t held)
{
	cuuint64_t reserved = 0;

	if (read_pool(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved))
		reserved = atomic_load(&pool->snapshot);
	pool_settle(pool, held, reserved, NULL);
}

/* A pool that existed before we saw it (every device's default one) may hold memory already. */
struct pool *mem_pool_of(struct memory *memory, CUmemoryPool handle, struct device_tenant *tenant)
{
	struct pool *pool = pools_find(&memory->pools, (uint64_t)(uintptr_t)handle);
	cuuint64_t threshold = 0;

	if (pool)
		return pool;
	pool = pools_enter(&memory->pools, (uint64_t)(uintptr_t)handle, &tenant->member,
			   (unsigned)tenant->ordinal, CHARGE_POOL);
	if (!pool)
		return NULL;
	if (!read_pool(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold))
		atomic_store(&pool->release_threshold, threshold);
	mem_pool_refresh(pool, 0, NULL);
	return pool;
}

/* Pools that are made or imported are entered then: one that is not known is some device's default pool. */
static struct device_tenant *default_pool_of(CUmemoryPool handle)
{
	CUmemoryPool own;
	int count = 0;

	if (!real.cuDeviceGetCount || !real.cuDeviceGetDefaultMemPool ||
	    real.cuDeviceGetCount(&count) != CUDA_SUCCESS)
		return NULL;
	for (CUdevice device = 0; device < count; device++)
		if (real.cuDeviceGetDefaultMemPool(&own, device) == CUDA_SUCCESS && own == handle)
			return tenant_of_device(device);
	return NULL;
}

struct pool *mem_pool_named(struct memory *memory, CUmemoryPool handle,
			    struct device_tenant *otherwise, int *ret_unknown)
{
	struct pool *pool = pools_find(&memory->pools, (uint64_t)(uintptr_t)handle);
	struct device_tenant *tenant;
	CUstreamCaptureMode mode;
	cuuint64_t threshold;

	*ret_unknown = 0;
	if (__builtin_expect(pool != NULL, 1))
		return pool;
	tenant = default_pool_of(handle);
	if (tenant)
		return mem_pool_of(memory, handle, tenant);
	/* One that was destroyed, or never was: an account for it would be for ever. */
	mode = capture_relax();
	*ret_unknown = real.cuMemPoolGetAttribute(handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
						  &threshold) != CUDA_SUCCESS;
	capture_restore(mode);
	return *ret_unknown ? NULL : mem_pool_of(memory, handle, otherwise);
}

struct pool *mem_pool_ask_current(struct memory *memory, struct device_tenant *tenant)
{
	_Atomic(struct pool *) *slot = &mem_pools_now[tenant->ordinal];
	struct pool *pool;
	CUmemoryPool handle;

	if (!real.cuDeviceGetMemPool ||
	    real.cuDeviceGetMemPool(&handle, tenant->device) != CUDA_SUCCESS)
		return NULL;
	pool = mem_pool_of(memory, handle, tenant);
	atomic_store_explicit(slot, pool, memory_order_release);
	return pool;
}

static int is_live_on(const struct pool *pool, unsigned device)
{
	uint64_t handle = atomic_load_explicit(&pool->handle, memory_order_acquire);

	return handle && handle != POOL_GONE && pool->member && pool->device == device;
}

static void each_pool(struct memory *memory, unsigned device, int trim)
{
	uint32_t count = atomic_load_explicit(&memory->pools.count, memory_order_acquire);

	for (uint32_t i = 0; i < count; i++) {
		struct pool *pool = pools_nth(&memory->pools, i);

		if (!is_live_on(pool, device) || pool->kind != CHARGE_POOL)
			continue;
		if (trim && pool_idle(pool)) {
			CUstreamCaptureMode mode = capture_relax();

			real.cuMemPoolTrimTo(handle_of(pool), 0);
			capture_restore(mode);
		}
		mem_pool_refresh(pool, 0, NULL);
	}
}

void mem_pools_refresh(struct memory *memory, unsigned device)
{
	each_pool(memory, device, 0);
}

void mem_pools_trim(struct memory *memory, unsigned device)
{
	each_pool(memory, device, 1);
}

void mem_after_sync(void)
{
	struct memory *memory = mem_of_process();
	uint32_t count;
	int idle = 0;

	if (!memory || !atomic_load_explicit(&memory->pools.freed, memory_order_relaxed))
		return;
	count = atomic_load_explicit(&memory->pools.count, memory_order_acquire);
	atomic_store(&memory->pools.freed, 0);
	for (uint32_t i = 0; i < count; i++) {
		struct pool *pool = pools_nth(&memory->pools, i);

		if (!is_live_on(pool, pool->device) || pool->kind != CHARGE_POOL ||
		    !pool_idle(pool) ||
		    atomic_load(&pool->release_threshold) >= atomic_load(&pool->snapshot))
			continue;
		mem_pool_refresh(pool, 0, NULL);
		idle |= pool_idle(pool) != 0;
	}
	/* Some other stream has not come to its frees: a later synchronise may. */
	if (idle)
		atomic_store(&memory->pools.freed, 1);
}

uint64_t mem_pools_fresh_idle(struct memory *memory, unsigned device)
{
	uint32_t count = atomic_load_explicit(&memory->pools.count, memory_order_acquire);
	uint64_t idle = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct pool *pool = pools_nth(&memory->pools, i);

		if (is_live_on(pool, device) && atomic_load(&pool->fresh_frees))
			idle += pool_idle(pool);
	}
	return idle;
}

void mem_pools_forget_frees(struct memory *memory, unsigned device)
{
	uint32_t count = atomic_load_explicit(&memory->pools.count, memory_order_acquire);

	for (uint32_t i = 0; i < count; i++)
		if (is_live_on(pools_nth(&memory->pools, i), device))
			atomic_store(&pools_nth(&memory->pools, i)->fresh_frees, 0);
}

/* Not an allocation of ours: an import perhaps. */
int mem_take_import(struct memory *memory, uint64_t address, struct charge *ret)
{
	return charges_take(memory->charges, AT_IMPORT, address, ret);
}

/* The driver would not let go. */
static __attribute__((noinline)) void put_back(struct memory *memory, const struct charge *entry)
{
	struct charge before;

	if (entry->space == AT_ADDRESS && entry->kind == CHARGE_POOL)
		charges_flag(memory->charges, AT_ADDRESS, entry->key, 0, CHARGE_FREED, &before);
	else
		memory_put_back(memory, entry);
}

void mem_freed_address(struct memory *memory, const struct charge *entry, CUresult result)
{
	int is_block = entry->space == AT_ADDRESS && entry->kind == CHARGE_POOL;

	if (__builtin_expect(result != CUDA_SUCCESS, 0)) {
		put_back(memory, entry);
		return;
	}
	if (!is_block || entry->flags & CHARGE_EXPORTED)
		mem_leave(memory, entry);
	else
		pool_live(pools_at(&memory->pools, entry->owner), -(int64_t)entry->bytes);
	if (!is_block)
		return;
	memory_note_freed(memory);
	if (!atomic_load_explicit(&memory->pools.freed, memory_order_relaxed))
		atomic_store_explicit(&memory->pools.freed, 1, memory_order_relaxed);
}
