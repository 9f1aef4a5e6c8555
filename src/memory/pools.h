/*
 * Stream-ordered pools, and the driver's pool for graph memory: charged by what they reserve on the device.
 *
 * The driver's figure is handed in, so all of this runs without one. What a pool is charged never
 * falls below what the driver last said it reserves. Any thread; one lock per pool (spin.h), under
 * which the ledger is called.
 */
#ifndef CUOTA_MEMORY_POOLS_H
#define CUOTA_MEMORY_POOLS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/ledger.h"

enum { POOLS = 2048, POOL_HOST = 255 };

struct pool {
	_Atomic uint64_t handle; /* 0 never used; POOL_GONE when destroyed, may live on below */
	struct member
		*member; /* whose account; NULL: memory that is not charged (host, imported) */
	_Atomic uint64_t live_bytes; /* in blocks that the program has */
	_Atomic uint64_t snapshot;   /* charged, for readers without the lock */
	_Atomic uint64_t release_threshold;
	_Atomic uint32_t fresh_frees; /* blocks freed, not yet waited for in vain */
	uint8_t device;		      /* POOL_HOST when not on a device */
	uint8_t kind;		      /* enum charge_kind */
	uint8_t imported;
	_Atomic uint8_t dead;	  /* destroyed with live blocks */
	_Atomic uint64_t granule; /* what it grows by */
	uint64_t charged;	  /* in the ledger for this pool; under lock */
	uint64_t held;		  /* in the ledger for growth under way; under lock */
	_Atomic uint32_t lock;
} __attribute__((aligned(128)));

#define POOL_GONE    UINT64_MAX
#define POOL_GRANULE (32ull << 20) /* of the default pool on the H200 */

struct pools {
	struct pool *table;	/* POOLS of them, by hash of the handle */
	uint16_t *list;		/* places ever used, in the order of their first use */
	_Atomic uint32_t count; /* of the list; 0 tells at once that there is nothing to do */
	_Atomic uint32_t
		freed; /* blocks went back to a pool since a synchronise found nothing idle */
	_Atomic uint32_t lock;
};

/* 0, or -ENOMEM. */
int pools_setup(struct pools *pools);
void pools_destroy(struct pools *pools);

/* NULL when it is not known. */
struct pool *pools_find(struct pools *pools, uint64_t handle);

/* Enters a pool, or returns the one of that handle. NULL when there is no place left. */
struct pool *pools_enter(struct pools *pools, uint64_t handle, struct member *member,
			 unsigned device, enum charge_kind kind);

/* The i-th of pools->count; some of them may be gone. */
struct pool *pools_nth(struct pools *pools, uint32_t i);

/* By its number, which block entries keep; NULL out of range. */
static inline struct pool *pools_at(struct pools *pools, uint64_t number)
{
	return number < POOLS ? &pools->table[number] : NULL;
}

static inline uint64_t pools_number(const struct pools *pools, const struct pool *pool)
{
	return (uint64_t)(pool - pools->table);
}

/* 1 when pools_enter() may find no place any more. */
int pools_full(const struct pools *pools);

/* 1 when what is charged has room for `bytes` beside what is live: the common path, without a lock. */
static inline int pool_has_room(const struct pool *pool, uint64_t bytes)
{
	uint64_t live = atomic_load_explicit(&pool->live_bytes, memory_order_relaxed);

	return bytes <= UINT64_MAX / 2 &&
	       live + bytes <= atomic_load_explicit(&pool->snapshot, memory_order_relaxed);
}

/* How much it may have to grow to serve `bytes` now. */
uint64_t pool_growth(const struct pool *pool, uint64_t bytes);

/* Charges a growth ahead, which must fit beside what `others` hold uncharged. 0, or -ENOMEM. */
int pool_hold(struct pool *pool, uint64_t bytes, uint64_t others, struct refusal *ret);

/*
 * The driver says `reserved`: makes the charge equal to it and lets go of `held` of this call. The charge
 * is made true in any case; -ENOMEM says that it went past a cap and the caller should undo.
 */
int pool_settle(struct pool *pool, uint64_t held, uint64_t reserved, struct refusal *ret);

/* 1 when that would change nothing. */
static inline int pool_is_settled(const struct pool *pool, uint64_t held, uint64_t reserved)
{
	return !held && atomic_load_explicit(&pool->snapshot, memory_order_relaxed) == reserved;
}

/* The last block of a destroyed pool is back: nothing is left of it. */
void pool_bury(struct pool *pool);

/* Blocks that the program got or gave back. */
static inline void pool_live(struct pool *pool, int64_t bytes)
{
	uint64_t live = atomic_fetch_add_explicit(&pool->live_bytes, (uint64_t)bytes,
						  memory_order_relaxed) +
			(uint64_t)bytes;

	if (bytes >= 0)
		return;
	atomic_store_explicit(&pool->fresh_frees, 1, memory_order_relaxed);
	if (__builtin_expect(!live && atomic_load(&pool->dead), 0))
		pool_bury(pool);
}

/*
 * The pool is about to be destroyed: its handle may come again, so it is not to be found any more. Then either
 * it was (what its live blocks hold stays charged until the last of them is given back), or the driver refused.
 */
void pool_end(struct pool *pool);
void pool_ended(struct pool *pool);
void pool_revive(struct pool *pool, uint64_t handle);

/* What the driver need not hold any more although it is charged. */
uint64_t pool_idle(struct pool *pool);

#endif
