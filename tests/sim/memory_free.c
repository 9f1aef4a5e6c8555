/*
 * Freeing by address: what cuMemFree does depends on what made the range.
 */
#include "memory.h"
#include "sim.h"

CUresult memory_free_any(struct range *range)
{
	switch (range->kind) {
	case RANGE_DEVICE:
	case RANGE_MANAGED:
	case RANGE_EXTERNAL:
	case RANGE_IMPORTED: linear_free(range); return CUDA_SUCCESS;
	case RANGE_POOL: pool_free_now(range); return CUDA_SUCCESS;
	case RANGE_GRAPH: return graph_memory_free(range);
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}
