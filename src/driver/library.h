/*
 * A library of the vendor's that the program loaded, and the table of its entry points: the CUDA driver
 * (real.c) and NVML (hooks/nvml_table.c).
 *
 * Promises: nothing is ever loaded by us, none of its functions is called, no lock is held across the loader
 * (another thread may be inside dlopen, running a constructor that calls CUDA). Threads that come at once
 * all write the same values; the first to name its object wins. Once found it is kept loaded.
 */
#ifndef CUOTA_DRIVER_LIBRARY_H
#define CUOTA_DRIVER_LIBRARY_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/object.h"

struct library {
	const char *soname;
	const char *const
		*marks; /* NULL-terminated: an object of another name that exports all of these
				     is this library too (a copy of odd name; not one that wraps a few) */
	const char *const *names; /* of the entries */
	unsigned count;
	const void *const
		*stubs; /* what the first stub_count entries hold until found (driver/lazy.h) */
	unsigned stub_count;
	_Atomic(void *) *entries;
	/* Which object, claimed once; end follows start. */
	_Atomic uintptr_t start, end;
	_Atomic int loaded;
};

/* 0 once the table is filled, now or before; -ENOENT when it is not loaded. One load when done. */
int library_find(struct library *library);

/*
 * The same from the object that holds this address. -ENOENT when that is another library, -EBUSY when the table
 * was filled from another copy.
 */
int library_find_at(struct library *library, const void *address);

/* 1 when the address lies in the object that the table was filled from. */
int library_holds(const struct library *library, const void *address);

/* The object that the table was filled from. 0 or -ENOENT. */
int library_object(const struct library *library, struct object *ret);

/*
 * A tool that was preloaded may stand in for the library: it exports its marks and calls the true one. When the
 * table was filled from such a one, this answers the true one that is loaded, and has filled what the stand-in
 * lacks from it. 0 or -ENOENT.
 */
int library_behind(struct library *library, struct object *ret);

/* 1 if an entry holds a real function: not NULL, not a stub of ours. */
int library_has(const struct library *library, const void *entry);

/* Fills the table through `resolve` from `handle`; returns how many entries were found. */
unsigned library_fill(struct library *library, void *handle,
		      void *(*resolve)(void *handle, const char *name));

#endif
