/*
 * The real driver's entry points, typed by the vendor header: a wrong argument does not compile.
 *
 * Filled once, from the libcuda.so.1 that the program itself loaded (found by soname, or by an address that
 * a look-up answered, never by path), and kept loaded from then on.
 *
 * A HOOK entry is never NULL: before the driver is found, calling it finds it and goes on; without a driver
 * it answers CUDA_ERROR_NOT_INITIALIZED, and one that this driver lacks CUDA_ERROR_NOT_SUPPORTED. Ask
 * REAL_HAS(symbol) to choose between two. A CALL entry (calls.def) is NULL until hooks_load() and when
 * this driver lacks it.
 */
#ifndef CUOTA_DRIVER_REAL_H
#define CUOTA_DRIVER_REAL_H

#include "driver/cuda_abi.h"
#include "base/object.h"

struct real_driver {
#define HOOK(symbol, family) __typeof__(symbol) *symbol;
#define CALL(symbol)	     __typeof__(symbol) *symbol;
#include "hooks/hooks.def"
#include "driver/calls.def"
#undef HOOK
#undef CALL
};

extern struct real_driver real;

#define REAL_HAS(name) real_has((const void *)(real.name))

/* 1 if a table entry is the real function: not NULL, not a stub of ours. */
int real_has(const void *entry);

/* 0 once the table is filled, now or before; -ENOENT when no libcuda.so.1 is loaded. One load when done. */
int real_find(void);

/*
 * The same from the object that holds this address, when that object is a driver (its soname is the
 * driver's, or it exports what only a driver does): for drivers of odd names and paths. -ENOENT when it is
 * none, -EBUSY when another driver was found first (two in one process: the second is not under quota).
 */
int real_find_at(const void *address);

/* The object that the table was filled from, and the true driver when that one only stands in for it (library.h). */
int real_object(struct object *ret);
int real_behind(struct object *ret);

/* 1 when the address lies in the driver that the table was filled from. */
int real_holds(const void *address);

/*
 * Fills the table through `resolve` from `handle`; returns how many entries were found. For the functions
 * above and for tests, which hand in a driver of their own.
 */
unsigned real_load(void *handle, void *(*resolve)(void *handle, const char *name));

#endif
