/*
 * Address or handle -> what is charged for it. O(1) up to millions of live entries, from any thread.
 *
 * 64 shards of open addressing over memory of our own (arena.h), each with its lock (spin.h, nap_lock). Callers
 * get copies, never pointers, so nothing is held when they go on to the driver.
 */
#ifndef CUOTA_MEMORY_CHARGES_H
#define CUOTA_MEMORY_CHARGES_H

#include <stddef.h>
#include <stdint.h>

/* What a key is: addresses and handles of different kinds may have equal values. */
enum charge_space {
	AT_NOTHING, /* an empty place */
	AT_ADDRESS, /* device address of an allocation */
	AT_PAGE,    /* number of a 2 MiB page that allocations share (blocks.h) */
	AT_ARRAY,
	AT_MIPMAP,
	AT_HANDLE,  /* cuMemCreate; owner = object */
	AT_OBJECT,  /* the memory behind handles and mappings; refs = both counts */
	AT_MAPPING, /* start address, or hash of a place in a sparse array; owner = object */
	AT_IMPORT,  /* memory that another process exported */
	AT_MODULE,
	AT_LIBRARY, /* within = bytes of its globals; charged nothing by itself */
	AT_LOADED,  /* a library in a context; within = library */
	AT_KERNEL,  /* owner = library */
	AT_EXEC,    /* executable graph that allocates */
	AT_GRAPH,
	AT_CONTEXT,
	AT_LIMIT, /* heap, stack or printf buffer of a context; within = its default */
	AT_GREEN,
	AT_EXTERNAL,
};

enum charge_flag {
	CHARGE_FREED = 1,    /* given back to its pool, which may still back it */
	CHARGE_IMPORTED = 2, /* somebody else carries the charge */
	CHARGE_EXPORTED = 4,
	CHARGE_PRIMARY = 8,
	CHARGE_PITCHED = 16,
};

struct charge {
	uint64_t key;
	uint64_t bytes;	 /* as asked for linear memory, as charged for the rest */
	uint64_t owner;	 /* context that it dies with, pool, or object */
	uint64_t within; /* array that a mapping is in; or see the space */
	uint32_t refs;
	uint8_t space; /* enum charge_space */
	uint8_t kind;  /* enum charge_kind */
	uint8_t device;
	uint8_t flags; /* enum charge_flag */
};

/* A page is told by its number and the device that counts it. */
enum { CHARGES_PAGE_SHIFT = 21, CHARGES_PAGE_BITS = 56 };

static inline uint64_t charges_page_key(unsigned device, uint64_t page)
{
	return page | (uint64_t)device << CHARGES_PAGE_BITS; /* page numbers are below 2^43 */
}

struct charges;

/* NULL when there is no memory. */
struct charges *charges_new(void);
void charges_destroy(struct charges *charges);

/* 0 entered, 1 replaced an entry of that key (copied to *ret_old), -ENOMEM. */
int charges_put(struct charges *charges, const struct charge *entry, struct charge *ret_old);

/* As charges_put() of an allocation and charges_ref() of the one page that it lies in, in one step; -ENOMEM: neither. */
int charges_put_in_page(struct charges *charges, const struct charge *entry,
			const struct charge *page, struct charge *ret_old, int *ret_new_page);

/* An allocation is about to be freed. 0: removed, or marked CHARGE_FREED when it is a pool's block; returned as it
 * was. -EALREADY: it is so marked. -ENOENT. */
int charges_let_go(struct charges *charges, uint64_t address, struct charge *ret);

/* A pool hands out a block again that came back to it, no larger than it was: its mark is taken off. 1, or 0 when that
 * is not what it is, and nothing has changed. */
int charges_renew(struct charges *charges, uint64_t address, uint64_t owner, uint64_t bytes);

/* 0, or -ENOENT. Removes and returns it. */
int charges_take(struct charges *charges, enum charge_space space, uint64_t key,
		 struct charge *ret);

/* 0, or -ENOENT. A copy. */
int charges_get(struct charges *charges, enum charge_space space, uint64_t key, struct charge *ret);

/* Adds to refs and bytes of an entry and returns it as it then is; refs 0 removes it. 0, or -ENOENT. */
int charges_add(struct charges *charges, enum charge_space space, uint64_t key, int32_t refs,
		int64_t bytes, struct charge *ret);

/* As charges_add with refs 1; enters `entry` when there is none. 0 there was one, 1 entered, -ENOMEM. */
int charges_ref(struct charges *charges, const struct charge *entry);

/* The other way: one reference less, and nothing is left of an entry without one. How many there are now, -ENOENT; its
 * kind in *ret_kind. */
int64_t charges_unref(struct charges *charges, enum charge_space space, uint64_t key,
		      uint8_t *ret_kind);

/* Sets and clears flags; returns the entry as it was before. 0, or -ENOENT. */
int charges_flag(struct charges *charges, enum charge_space space, uint64_t key, uint8_t set,
		 uint8_t clear, struct charge *ret);

/* Brings the bytes of an entry between two bounds, of which `least` counts more; returns it as it was before. 0, or
 * -ENOENT. */
int charges_clamp(struct charges *charges, enum charge_space space, uint64_t key, uint64_t least,
		  uint64_t most, struct charge *ret);

/* Sets what an entry is within. 0, or -ENOENT. */
int charges_put_within(struct charges *charges, enum charge_space space, uint64_t key,
		       uint64_t within);

/* A walk over all entries, which may remove as it goes. Start with a zeroed one. */
struct charges_walk {
	unsigned shard;
	size_t place;
};

typedef int charges_match(const struct charge *entry, void *arg);

/* Up to `room` matching entries into ret, removed when `take`; 0 when the walk is over. */
size_t charges_collect(struct charges *charges, struct charges_walk *walk, int take,
		       charges_match *match, void *arg, struct charge *ret, size_t room);

/* Live entries; for tests and limits. */
size_t charges_count(struct charges *charges);

#endif
