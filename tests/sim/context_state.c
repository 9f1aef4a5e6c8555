/*
 * What a context can be asked and told: limits, flags, ids, cache preferences, peers.
 *
 * Measured on driver 580: a larger stack takes device memory at once, (bytes - 1024) for each
 * thread the device can hold, and gives it back when made smaller; the heap of device-side malloc
 * is taken when the first module that uses it is loaded, and cannot be changed once such a kernel
 * was launched; the printf buffer takes no device memory.
 */
#include "sim.h"
#include "entries.h"

static CUresult set_stack(struct context *context, size_t bytes)
{
	uint64_t threads = sim_shared->machine.sms[sim.device[context->device].physical] * 2048ull;
	if (bytes > 512 * 1024)
		return CUDA_ERROR_INVALID_VALUE;
	bytes = (bytes + 15) / 16 * 16;
	uint64_t want = bytes > 1024 ? (bytes - 1024) * threads : 0;
	uint64_t have = context->host->stack_bytes;
	if (want > have && !device_take(context->device, want - have))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (want < have)
		device_give(context->device, have - want);
	context->host->stack_bytes = want;
	context->limits[CU_LIMIT_STACK_SIZE] = bytes;
	return CUDA_SUCCESS;
}

static bool limit_known(CUlimit limit)
{
	switch (limit) {
	case CU_LIMIT_STACK_SIZE:
	case CU_LIMIT_PRINTF_FIFO_SIZE:
	case CU_LIMIT_MALLOC_HEAP_SIZE:
	case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
	case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
	case CU_LIMIT_SHMEM_SIZE:
	case CU_LIMIT_CIG_ENABLED: return true;
	default: return false;
	}
}

static CUresult unknown_limit(CUlimit limit)
{
	return (int)limit >= CU_LIMIT_MAX || (int)limit < 0 ? CUDA_ERROR_INVALID_VALUE
							    : CUDA_ERROR_UNSUPPORTED_LIMIT;
}

CUresult sim_cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct context *context = context_current();
	if (!limit_known(limit))
		return unknown_limit(limit);
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&core_lock);
	if (limit == CU_LIMIT_STACK_SIZE)
		result = set_stack(context, value);
	else if ((limit == CU_LIMIT_MALLOC_HEAP_SIZE && context->host->heap_fixed) ||
		 (limit == CU_LIMIT_PRINTF_FIFO_SIZE && context->host->fifo_fixed))
		result = CUDA_ERROR_INVALID_VALUE;
	else
		context->limits[limit] = value;
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuCtxGetLimit(size_t *ret_value, CUlimit limit)
{
	if (!ret_value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!limit_known(limit))
		return unknown_limit(limit);
	*ret_value = context_current()->limits[limit];
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetFlags(unsigned int *ret_flags)
{
	if (!ret_flags)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_flags = context_current()->flags;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetFlags(unsigned int flags)
{
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	context_current()->flags = flags;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetApiVersion(CUcontext handle, unsigned int *ret_version)
{
	struct context *context = handle ? context_of(handle) : context_current();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ret_version)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_version = context->api_version;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetId(CUcontext handle, unsigned long long *ret_id)
{
	struct context *context = handle ? context_of(handle) : context_current();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ret_id)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_id = context->id;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetCacheConfig(CUfunc_cache *ret_config)
{
	if (!ret_config)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_config = context_current()->cache_config;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCacheConfig(CUfunc_cache config)
{
	context_current()->cache_config = config;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetSharedMemConfig(CUsharedconfig *ret_config)
{
	if (!ret_config)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_config = context_current()->shared_config;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	context_current()->shared_config = config;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetStreamPriorityRange(int *ret_least, int *ret_greatest)
{
	if (ret_least)
		*ret_least = 0;
	if (ret_greatest)
		*ret_greatest = -5;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxResetPersistingL2Cache(void)
{
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetExecAffinity(CUexecAffinityParam *ret_affinity, CUexecAffinityType type)
{
	if (!ret_affinity || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_shared->machine.mps)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	ret_affinity->type = type;
	ret_affinity->param.smCount.val =
		sim_shared->machine.sms[sim.device[context_current()->device].physical];
	return CUDA_SUCCESS;
}

static CUresult check_peer(CUcontext handle)
{
	struct context *peer = context_of(handle);
	if (!peer)
		return CUDA_ERROR_INVALID_CONTEXT;
	return peer->device == context_current()->device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult sim_cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags)
{
	CUresult result = flags ? CUDA_ERROR_INVALID_VALUE : check_peer(handle);
	if (result != CUDA_SUCCESS)
		return result;
	uint32_t bit = 1u << context_of(handle)->device;
	if (context_current()->peers & bit)
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	context_current()->peers |= bit;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxDisablePeerAccess(CUcontext handle)
{
	CUresult result = check_peer(handle);
	if (result != CUDA_SUCCESS)
		return result;
	uint32_t bit = 1u << context_of(handle)->device;
	if (!(context_current()->peers & bit))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	context_current()->peers &= ~bit;
	return CUDA_SUCCESS;
}
