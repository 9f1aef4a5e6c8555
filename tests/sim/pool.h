/*
 * Memory pools, as pool.c and pool_state.c share them. All of it needs core_lock.
 *
 * A pool takes device memory in chunks of 32 MiB or multiples and keeps it until a
 * synchronisation finds a chunk unused and the pool above its threshold (measured).
 */
#ifndef SIM_POOL_H
#define SIM_POOL_H

#include "memory.h"

#define POOL_CHUNK (32ull * MIB)

struct block {
	struct block *next; /* by address */
	uint64_t offset, bytes;
	struct range *range;
	struct stream *freed_in; /* set between cuMemFreeAsync and its turn in the stream */
	uint64_t freed_stream_id;
	bool freed;
};

struct chunk {
	struct chunk *next;
	uint64_t base, bytes;
	struct block *blocks;
};

struct pool {
	struct object object;
	CUdevice device; /* -1: host */
	CUmemPoolProps props;
	bool is_default, destroyed, imported;
	int share; /* index + 1 when exported or imported */
	struct chunk *chunks;
	uint64_t threshold;
	uint64_t reserved, reserved_high, used, used_high;
	int reuse[3];
	uint8_t access[SIM_MAX_DEVICES];
	struct pool *next;
};

extern struct pool *pools;

struct pool *pool_of(CUmemoryPool handle);
struct pool *pool_new(CUdevice device);
struct pool *pool_current(CUdevice device);
/* Releases chunks without blocks until at most `keep` bytes remain; how many it released. */
uint64_t pool_trim(struct pool *pool, uint64_t keep);
/* pool_share.c */
void pool_share_drop(struct pool *pool);
CUresult pool_alloc(struct pool *pool, uint64_t bytes, struct stream *stream,
		    struct range **ret_range);

#endif
