/*
 * Local memory: a kernel's frame, which the driver provides for every thread the device can hold, at the first
 * launch that needs more than any before it. A 64 KiB frame is 16 GiB on an H200.
 *
 * The launch hooks call local_memory_before_launch() ahead of the driver; a function that was seen costs a load
 * and a compare.
 */
#ifndef CUOTA_HOOKS_LOCAL_MEMORY_H
#define CUOTA_HOOKS_LOCAL_MEMORY_H

#include <stdatomic.h>
#include <stdint.h>

#include "driver/cuda_abi.h"

#define LOCAL_MEMORY_SEEN 4096u

extern _Atomic(CUfunction) local_memory_seen[LOCAL_MEMORY_SEEN];

/* Asks what the function's frame is and charges what it adds. CUDA_SUCCESS, or out of memory. */
CUresult local_memory_check(CUfunction function);

/* Functions or contexts are gone or new: handles may mean something else from now on. */
void local_memory_forget(void);

static inline unsigned local_memory_place(CUfunction function)
{
	uintptr_t bits = (uintptr_t)function;

	return (unsigned)((bits >> 4 ^ bits >> 16) % LOCAL_MEMORY_SEEN);
}

static inline int local_memory_is_known(CUfunction function)
{
	return atomic_load_explicit(&local_memory_seen[local_memory_place(function)],
				    memory_order_relaxed) == function;
}

static inline CUresult local_memory_before_launch(CUfunction function)
{
	if (__builtin_expect(local_memory_is_known(function), 1))
		return CUDA_SUCCESS;
	return local_memory_check(function);
}

#endif
