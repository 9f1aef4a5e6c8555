/*
 * Pools as the driver has them: reading what they reserve, and trimming. memory/pools.h has the accounts.
 */
#ifndef CUOTA_HOOKS_MEM_POOL_H
#define CUOTA_HOOKS_MEM_POOL_H

#include <errno.h>

#include "hooks/mem_call.h"

/* The pool that cuMemAllocAsync uses on a device now; NULL when the driver has none. */
extern _Atomic(struct pool *) mem_pools_now[TENANT_DEVICES]; /* as far as known */
struct pool *mem_pool_ask_current(struct memory *memory, struct device_tenant *tenant);

static inline struct pool *mem_pool_current(struct memory *memory, struct device_tenant *tenant)
{
	struct pool *pool =
		atomic_load_explicit(&mem_pools_now[tenant->ordinal], memory_order_acquire);

	return __builtin_expect(pool != NULL && pool->member != NULL, 1)
		       ? pool
		       : mem_pool_ask_current(memory, tenant);
}

void mem_pool_forget_current(unsigned device);

/* The account of a device's pool, opened if need be. NULL: no place is left. */
struct pool *mem_pool_of(struct memory *memory, CUmemoryPool handle, struct device_tenant *tenant);

/* The account of the pool that a program names, whatever device it is of. NULL: no place is left, or, with *ret_unknown,
 * the driver does not know it either. `otherwise`: whose it is when the driver does not tell. */
struct pool *mem_pool_named(struct memory *memory, CUmemoryPool handle,
			    struct device_tenant *otherwise, int *ret_unknown);

/* Reads what the pool reserves and makes its charge equal. 0, or -ENOMEM when that went past a cap. */
int mem_pool_refresh(struct pool *pool, uint64_t held, struct refusal *ret);

/* The same after a call that the driver refused: what was held for it goes back also when nothing can be read. */
void mem_pool_drop(struct pool *pool, uint64_t held);

/* All pools of a device: for views, after a synchronise, before a refusal. Cheap with no pool. */
void mem_pools_refresh(struct memory *memory, unsigned device);
void mem_pools_trim(struct memory *memory, unsigned device);

/*
 * Something was synchronised (sync.c): a pool may have let go of what is free beyond its threshold, and then it is
 * refunded at once, since servers wait for free memory to come back. A few loads while nothing was freed.
 */
void mem_after_sync(void);

/* Bytes in pools whose blocks were freed and that a trim did not bring back yet: their streams may still get there. */
uint64_t mem_pools_fresh_idle(struct memory *memory, unsigned device);
void mem_pools_forget_frees(struct memory *memory, unsigned device);

int mem_take_import(struct memory *memory, uint64_t address, struct charge *ret);

/*
 * Takes the entry of an address off before a free: 0, or an error when it is not ours. A block of a pool goes back to
 * the pool, which may still back it: its entry stays, marked, so that the same block coming again needs no question.
 */
static inline int mem_take_address(struct memory *memory, uint64_t address, struct charge *ret)
{
	int result = charges_let_go(memory->charges, address, ret);

	if (__builtin_expect(result == -ENOENT, 0) &&
	    atomic_load_explicit(&memory->imports, memory_order_relaxed))
		return mem_take_import(memory, address, ret);
	return result;
}

/* After the driver's free of it: refunds, or puts it back. */
void mem_freed_address(struct memory *memory, const struct charge *entry, CUresult result);

#endif
