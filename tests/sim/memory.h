/*
 * Address ranges the driver knows, and what lies behind them. A device pointer is an address in
 * this process with private lazily filled memory behind it, so copies really copy and pointers of
 * different devices, or of host and device, never coincide. All of it needs core_lock.
 */
#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

#include "sim.h"

#define LARGE_PAGE (2ull * MIB)

enum range_kind {
	RANGE_DEVICE, /* cuMemAlloc and friends */
	RANGE_MANAGED,
	RANGE_HOST,	  /* cuMemHostAlloc */
	RANGE_REGISTERED, /* cuMemHostRegister: the caller's memory */
	RANGE_POOL,	  /* stream-ordered */
	RANGE_GRAPH,	  /* of a graph's allocation nodes */
	RANGE_RESERVED,	  /* cuMemAddressReserve */
	RANGE_MAPPED,	  /* cuMemMap, inside a reserved range */
	RANGE_IMPORTED,	  /* IPC, pool pointers */
	RANGE_EXTERNAL,	  /* external memory buffers */
	RANGE_GLOBAL,	  /* variables of modules */
	RANGE_ARRAY,	  /* behind an array; no pointer to it was handed out */
};

struct slab;
struct pool;
struct handle;

struct range {
	uint64_t base, size; /* as the caller asked */
	uint64_t span;	     /* bytes of address space behind it; 0 when not ours to unmap */
	uint64_t map_base;   /* where that begins, if not at base */
	uint64_t charged;    /* device memory taken for it */
	enum range_kind kind;
	CUdevice device;
	struct context *context;
	unsigned flags;
	uint64_t id;
	struct slab *slab;
	struct pool *pool;
	struct handle *handle;
	uint64_t handle_offset;
	int access; /* CUmemAccess_flags of the own device */
	int share;  /* index + 1 when known to other processes */
	uint32_t share_generation;
	struct graph_memory *graph_memory;
	bool freed;
};

/* address.c */
struct range *range_new(enum range_kind kind, uint64_t base, uint64_t size);
void range_delete(struct range *range);
struct range *range_at(uint64_t address); /* containing it; mapped before reserved */
struct range *range_exact(uint64_t base, enum range_kind kind);
size_t range_count(void);
struct range *range_number(size_t index);
uint64_t range_first(uint64_t address); /* index of the first range at or after */

/* Address space with memory behind it, aligned to a large page; 0 when there is none. */
uint64_t space_map(uint64_t bytes, bool low);
void space_unmap(uint64_t base, uint64_t bytes);

/* memory_linear.c */
/* Makes an allocation known to other processes: the share, and where in it the range begins. */
bool linear_share(struct range *range, int *ret_share, uint64_t *ret_offset);
CUresult linear_alloc(struct context *context, uint64_t bytes, bool low, struct range **ret_range);
void linear_free(struct range *range);

/* memory_managed.c: device memory for a managed range on its first use there. */
void managed_touch(struct range *range);

static inline uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

#endif
