/*
 * Calls without an effect that matters here: they check little and succeed.
 */
#include "sim.h"
#include "entries.h"

#include <string.h>

CUresult sim_cuProfilerStart(void)
{
	return CUDA_SUCCESS;
}

CUresult sim_cuProfilerStop(void)
{
	return CUDA_SUCCESS;
}

CUresult sim_cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
					CUflushGPUDirectRDMAWritesScope scope)
{
	(void)target;
	(void)scope;
	return CUDA_SUCCESS;
}

CUresult sim_cuLogsCurrent(CUlogIterator *ret_iterator, unsigned int flags)
{
	if (!ret_iterator || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_iterator = 0;
	return CUDA_SUCCESS;
}

CUresult sim_cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size,
				unsigned int flags)
{
	(void)iterator;
	if (!buffer || !size || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (*size)
		buffer[0] = '\0';
	*size = 0;
	return CUDA_SUCCESS;
}

CUresult sim_cuTensorMapEncodeTiled(CUtensorMap *ret_map, CUtensorMapDataType type, cuuint32_t rank,
				    void *address, const cuuint64_t *dims,
				    const cuuint64_t *strides, const cuuint32_t *box,
				    const cuuint32_t *element_strides,
				    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
				    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	(void)type;
	(void)strides;
	(void)interleave;
	(void)swizzle;
	(void)promotion;
	(void)fill;
	if (!ret_map || !address || !rank || rank > 5 || !dims || !box || !element_strides)
		return CUDA_ERROR_INVALID_VALUE;
	memset(ret_map, 0, sizeof(*ret_map));
	memcpy(ret_map, &address, sizeof(address));
	return CUDA_SUCCESS;
}

CUresult sim_cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	if (!map || !address)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(map, &address, sizeof(address));
	return CUDA_SUCCESS;
}
