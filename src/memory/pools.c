#include "memory/pools.h"

#include <errno.h>

#include "memory/arena.h"
#include "memory/blocks.h"
#include "base/spin.h"

int pools_setup(struct pools *pools)
{
	pools->table = arena_map(POOLS * (sizeof(struct pool) + sizeof(*pools->list)));
	if (!pools->table)
		return -ENOMEM;
	pools->list = (uint16_t *)&pools->table[POOLS];
	return 0;
}

void pools_destroy(struct pools *pools)
{
	arena_unmap(pools->table, POOLS * (sizeof(struct pool) + sizeof(*pools->list)));
}

struct pool *pools_nth(struct pools *pools, uint32_t i)
{
	return &pools->table[pools->list[i]];
}

static unsigned place_of(uint64_t handle)
{
	return (unsigned)((handle * 0x9e3779b97f4a7c15ull) >> 53); /* 11 bits: POOLS */
}

struct pool *pools_find(struct pools *pools, uint64_t handle)
{
	unsigned place = place_of(handle);

	for (unsigned i = 0; i < POOLS; i++, place = (place + 1) % POOLS) {
		uint64_t there =
			atomic_load_explicit(&pools->table[place].handle, memory_order_acquire);

		if (there == handle)
			return &pools->table[place];
		if (!there)
			return NULL;
	}
	return NULL;
}

static struct pool *place_for(struct pools *pools, uint64_t handle)
{
	unsigned place = place_of(handle);

	for (unsigned i = 0; i < POOLS; i++, place = (place + 1) % POOLS) {
		struct pool *pool = &pools->table[place];
		uint64_t there = atomic_load_explicit(&pool->handle, memory_order_relaxed);

		if (!there || (there == POOL_GONE && !pool->dead))
			return pool;
	}
	return NULL;
}

/* Under pools->lock. The handle is set last: from then on it is found. */
static void open_account(struct pools *pools, struct pool *pool, uint64_t handle,
			 struct member *member, unsigned device, enum charge_kind kind)
{
	uint32_t count = atomic_load(&pools->count);
	int first_use = !atomic_load(&pool->handle);

	pool->member = member;
	pool->device = (uint8_t)device;
	pool->kind = (uint8_t)kind;
	pool->imported = 0;
	pool->charged = pool->held = 0;
	atomic_store(&pool->snapshot, 0);
	atomic_store(&pool->live_bytes, 0);
	atomic_store(&pool->release_threshold, 0);
	atomic_store(&pool->fresh_frees, 0);
	atomic_store(&pool->granule, POOL_GRANULE);
	atomic_store_explicit(&pool->handle, handle, memory_order_release);
	if (first_use) {
		pools->list[count] = (uint16_t)(pool - pools->table);
		atomic_store_explicit(&pools->count, count + 1, memory_order_release);
	}
}

struct pool *pools_enter(struct pools *pools, uint64_t handle, struct member *member,
			 unsigned device, enum charge_kind kind)
{
	struct pool *pool;

	spin_lock(&pools->lock);
	pool = pools_find(pools, handle);
	if (!pool) {
		pool = place_for(pools, handle);
		if (pool)
			open_account(pools, pool, handle, member, device, kind);
	}
	spin_unlock(&pools->lock);
	return pool;
}

int pools_full(const struct pools *pools)
{
	return atomic_load(&pools->count) >= POOLS;
}

uint64_t pool_growth(const struct pool *pool, uint64_t bytes)
{
	uint64_t live = atomic_load_explicit(&pool->live_bytes, memory_order_relaxed);
	uint64_t charged = atomic_load_explicit(&pool->snapshot, memory_order_relaxed);
	uint64_t granule = atomic_load_explicit(&pool->granule, memory_order_relaxed);
	uint64_t missing;

	if (!pool->member || bytes > UINT64_MAX / 2)
		return pool->member ? bytes : 0;
	if (live + bytes <= charged)
		return 0;
	missing = live < charged ? live + bytes - charged : bytes;
	return (missing + granule - 1) / granule * granule;
}

/* Under the pool's lock. */
static void set_charged(struct pool *pool, uint64_t bytes)
{
	pool->charged = bytes;
	atomic_store_explicit(&pool->snapshot, bytes, memory_order_relaxed);
}

int pool_hold(struct pool *pool, uint64_t bytes, uint64_t others, struct refusal *ret)
{
	int result;

	spin_lock(&pool->lock);
	result = ledger_charge_beside(pool->member, pool->kind, bytes, others, ret);
	if (!result)
		pool->held += bytes;
	spin_unlock(&pool->lock);
	return result;
}

int pool_settle(struct pool *pool, uint64_t held, uint64_t reserved, struct refusal *ret)
{
	int result = 0;
	uint64_t have, others, want;

	if (!pool->member)
		return 0;
	spin_lock(&pool->lock);
	have = pool->charged + pool->held;
	others = pool->held > held ? pool->held - held : 0;
	/* Growth of calls still under way may be in the figure already: it is in their holds. */
	if (reserved > pool->charged + held) {
		uint64_t theirs = reserved - pool->charged - held;

		others = others > theirs ? others - theirs : 0;
	}
	want = reserved + others;
	if (want > have) {
		result = ledger_charge(pool->member, pool->kind, want - have, ret);
		if (result)
			ledger_charge_forced(pool->member, pool->kind, want - have);
	} else if (want < have) {
		ledger_refund(pool->member, pool->kind, have - want);
	}
	set_charged(pool, reserved);
	pool->held = others;
	spin_unlock(&pool->lock);
	return result == -ESRCH ? 0 : result;
}

void pool_bury(struct pool *pool)
{
	uint64_t rest;

	spin_lock(&pool->lock);
	rest = pool->charged;
	set_charged(pool, 0);
	if (rest && pool->member)
		ledger_refund(pool->member, pool->kind, rest);
	atomic_store(&pool->dead, 0);
	spin_unlock(&pool->lock);
}

void pool_end(struct pool *pool)
{
	atomic_store(&pool->dead, 1);
	atomic_store(&pool->handle, POOL_GONE);
}

void pool_ended(struct pool *pool)
{
	if (!atomic_load(&pool->live_bytes))
		pool_bury(pool);
}

void pool_revive(struct pool *pool, uint64_t handle)
{
	atomic_store(&pool->handle, handle);
	atomic_store(&pool->dead, 0);
}

uint64_t pool_idle(struct pool *pool)
{
	uint64_t live = blocks_round(atomic_load_explicit(&pool->live_bytes, memory_order_relaxed));
	uint64_t charged = atomic_load_explicit(&pool->snapshot, memory_order_relaxed);

	return charged > live ? charged - live : 0;
}
