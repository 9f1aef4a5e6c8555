/* Libraries as the launch path sees them (library.c). */
#ifndef CUOTA_HOOKS_LIBRARY_H
#define CUOTA_HOOKS_LIBRARY_H

#include "hooks/mem_call.h"

/* 1 when the function is a library's kernel that the program asked for. */
int library_of_kernel(struct memory *memory, CUfunction function, CUlibrary *ret_library);

/* The current context is about to use the library. CUDA_SUCCESS, or out of memory. */
CUresult library_use(CUlibrary library);

#endif
