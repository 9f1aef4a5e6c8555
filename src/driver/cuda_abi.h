/*
 * cuda.h with every ABI declared under its exact symbol name.
 *
 * By default cuda.h maps cuMemAlloc to cuMemAlloc_v2 with macros, and hides old ABIs and the
 * per-thread-stream twins. The vendor's own switch for versioned builds declares each exported symbol as
 * it is, so that a table row, a pointer and a wrapper all have the type of exactly that symbol.
 */
#ifndef CUOTA_DRIVER_CUDA_ABI_H
#define CUOTA_DRIVER_CUDA_ABI_H

#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#if CUDA_VERSION < 12000
#error "cuota needs cuda.h of CUDA 12.0 or newer (make CUDA=/path/to/cuda)"
#endif

#endif
