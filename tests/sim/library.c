/*
 * Libraries and kernels: code that belongs to no context until a kernel is used in one.
 */
#include "memory.h"
#include "entries.h"
#include "module.h"

CUresult kernel_function(struct kernel *kernel, struct function **ret_function)
{
	(void)kernel;
	(void)ret_function;
	return CUDA_ERROR_NOT_SUPPORTED;
}
