/*
 * The real driver's entry points, typed by the vendor header: a wrong argument does not compile.
 *
 * Filled once, from the libcuda.so.1 that the program itself loaded (found by soname, never by path); an
 * entry that this driver lacks stays NULL, and its row is never offered to a program.
 */
#ifndef CUOTA_DRIVER_REAL_H
#define CUOTA_DRIVER_REAL_H

#include "driver/cuda_abi.h"

struct real_driver {
#define HOOK(symbol, family) __typeof__(symbol) *symbol;
#define CALL(symbol)	     __typeof__(symbol) *symbol;
#include "hooks/hooks.def"
#include "driver/calls.def"
#undef HOOK
#undef CALL
};

extern struct real_driver real;

/*
 * Loads the table through `resolve` (the real dlsym) from `handle` (a dlopen handle of libcuda.so.1).
 * Returns how many entries were found. Idempotent; any thread.
 */
unsigned real_load(void *handle, void *(*resolve)(void *handle, const char *name));

#endif
