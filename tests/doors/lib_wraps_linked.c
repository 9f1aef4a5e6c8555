/* A library that defines a function of the driver itself and passes calls on, as profilers do. */
#include <dlfcn.h>

#include "driver/cuda_abi.h"

CUresult cuInit(unsigned int flags)
{
	CUresult (*next)(unsigned int) = (CUresult(*)(unsigned int))dlsym(RTLD_NEXT, "cuInit");

	return next ? next(flags) : CUDA_ERROR_NOT_FOUND;
}
