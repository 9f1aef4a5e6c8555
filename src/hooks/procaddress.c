/*
 * cuGetProcAddress: how every CUDA runtime since 11.3 finds the driver, cuGetProcAddress itself included.
 *
 * The real look-up decides (version, flags, status); if the address it answers is one that we wrap, the
 * program gets the wrapper of exactly that ABI. No table of names or versions.
 */
#include "hooks/hooks.h"

CUresult CUDAAPI cuGetProcAddress(const char *symbol, void **pfn, int cuda_version,
				  cuuint64_t flags)
{
	CUresult result = real.cuGetProcAddress(symbol, pfn, cuda_version, flags);

	if (result == CUDA_SUCCESS && pfn && *pfn)
		*pfn = hooks_swap(*pfn);
	return result;
}

CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int cuda_version,
				     cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	CUresult result = real.cuGetProcAddress_v2(symbol, pfn, cuda_version, flags, status);

	if (result == CUDA_SUCCESS && pfn && *pfn)
		*pfn = hooks_swap(*pfn);
	return result;
}
