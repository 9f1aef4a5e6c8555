/*
 * Pools as the driver has them: reading what they reserve, and trimming. memory/pools.h has the accounts.
 */
#ifndef CUOTA_HOOKS_MEM_POOL_H
#define CUOTA_HOOKS_MEM_POOL_H

#include "hooks/mem_call.h"

/* The pool that cuMemAllocAsync uses on a device now; NULL when the driver has none. */
struct pool *mem_pool_current(struct memory *memory, struct device_tenant *tenant);
void mem_pool_forget_current(unsigned device);

/* The account of a pool handle, opened if need be. */
struct pool *mem_pool_of(struct memory *memory, CUmemoryPool handle, struct device_tenant *tenant);

/* Reads what the pool reserves and makes its charge equal. 0, or -ENOMEM when that went past a cap. */
int mem_pool_refresh(struct pool *pool, uint64_t held, struct refusal *ret);

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

/* Takes the entry of an address off before a free: 0, or -ENOENT when it is not ours. */
int mem_take_address(struct memory *memory, uint64_t address, struct charge *ret);

/* After the driver's free of it: refunds, or puts it back. */
void mem_freed_address(struct memory *memory, const struct charge *entry, CUresult result);

#endif
