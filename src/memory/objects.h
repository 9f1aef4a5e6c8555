/*
 * Virtual memory management: memory with two counts, its handles and its mappings. It is charged when made
 * and refunded when both counts are zero.
 *
 * An object is one entry (AT_OBJECT, refs = handles + mappings); handles and mappings name it as their
 * owner. No CUDA: numbers in, numbers out.
 */
#ifndef CUOTA_MEMORY_OBJECTS_H
#define CUOTA_MEMORY_OBJECTS_H

#include "memory/charges.h"

/*
 * What letting go of a handle or a mapping meant. It is taken off before the driver is asked (its number
 * may come again the instant the driver has let go), put back when the driver refuses, and refunded
 * when `last` after the driver agreed.
 */
struct object_end {
	struct charge gone;   /* the handle or mapping; space AT_NOTHING when it was not known */
	struct charge object; /* as it was left */
	int last;	      /* neither handle nor mapping is left */
};

/* A new object with one handle. 0, or -ENOMEM. */
int object_create(struct charges *charges, uint64_t object, uint64_t handle, unsigned device,
		  uint64_t bytes, uint8_t flags);

/* One more reference of a handle (retain, or an import of what we have). -ENOENT: not known. */
int object_retain(struct charges *charges, uint64_t handle);

/* The handle that comes from an address of the object (cuMemRetainAllocationHandle). */
int object_retain_address(struct charges *charges, uint64_t address, uint64_t handle);

void object_release(struct charges *charges, uint64_t handle, struct object_end *ret);

/* The same for an entry (handle or mapping) that the caller took off itself. */
void object_let_go(struct charges *charges, const struct charge *gone, struct object_end *ret);

/* The driver refused what `end` tells of: as if it had not been asked. */
void object_put_back(struct charges *charges, const struct object_end *end);

/* `place` is the start address (within 0), or the hash of a place in a sparse array or multicast object
 * `within`. What was mapped there before is let go of. */
int object_map(struct charges *charges, uint64_t handle, uint64_t place, uint64_t bytes,
	       uint64_t within, struct object_end *ret_replaced);

/* The same for the object that is mapped at an address. */
int object_map_address(struct charges *charges, uint64_t address, uint64_t place, uint64_t bytes,
		       uint64_t within, struct object_end *ret_replaced);

/* One mapping. Returns its bytes, 0 when it is not known. */
uint64_t object_unmap(struct charges *charges, uint64_t place, struct object_end *ret);

/* 0 with a copy of the object behind a handle, or -ENOENT. */
int object_of_handle(struct charges *charges, uint64_t handle, struct charge *ret);

#endif
