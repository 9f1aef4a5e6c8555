/*
 * Contexts: each takes device memory for itself, owns streams, and is one party in the device's
 * round robin. Which one is current is a stack per thread.
 */
#include "sim.h"
#include "entries.h"

#include <stdlib.h>

enum { STACK_DEPTH = 64 };

static __thread struct {
	struct context *context[STACK_DEPTH];
	int depth;
} stack;

struct context *context_current(void)
{
	return stack.depth ? stack.context[stack.depth - 1] : NULL;
}

void context_set_current(struct context *context)
{
	if (!stack.depth && context)
		stack.context[stack.depth++] = context;
	else if (stack.depth && context)
		stack.context[stack.depth - 1] = context;
	else if (stack.depth)
		stack.depth--;
}

void context_drop_current(struct context *context)
{
	if (context_current() == context)
		stack.depth--;
}

struct context *context_of(CUcontext handle)
{
	return object_check(handle, OBJECT_CONTEXT);
}

CUcontext context_handle(struct context *context)
{
	return (CUcontext)context;
}

static uint64_t context_bytes(void)
{
	const char *text = getenv("CUOTA_SIM_CONTEXT");
	const char *end;
	uint64_t bytes;
	if (text && *text && config_parse_size(text, &bytes, &end) && !*end)
		return bytes;
	return 526 * MIB;
}

static void set_default_limits(struct context *context)
{
	context->limits[CU_LIMIT_STACK_SIZE] = 1024;
	context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 8650752;
	context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 * MIB;
	context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
	context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
	context->limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 11796480;
	context->limits[CU_LIMIT_SHMEM_SIZE] = 232448;
}

CUresult context_create(CUdevice device, unsigned flags, struct context **ret_context)
{
	uint64_t bytes = context_bytes();
	if (!device_take(device, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	state_lock();
	int shared = state_context_new(sim.slot, sim.device[device].physical);
	state_unlock();
	if (shared < 0) {
		device_give(device, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	struct context *context = object_new(OBJECT_CONTEXT, sizeof(*context));
	context->device = device;
	context->shared = (uint32_t)shared;
	context->flags = flags;
	context->api_version = 3020;
	context->id = ++sim.next_id;
	context->host = context;
	context->own_bytes = bytes;
	set_default_limits(context);
	context->legacy = stream_new(context, 0, 0);
	context->legacy->is_legacy = true;
	context->next = sim.contexts;
	sim.contexts = context;
	*ret_context = context;
	return CUDA_SUCCESS;
}

static void unlink_context(struct context *context)
{
	for (struct context **at = &sim.contexts; *at; at = &(*at)->next) {
		if (*at != context)
			continue;
		*at = context->next;
		return;
	}
}

void context_destroy(struct context *context)
{
	queue_discard(context);
	modules_release_context(context);
	arrays_release_context(context);
	memory_release_context(context);
	while (context->streams) {
		struct stream *stream = context->streams;
		context->streams = stream->next;
		object_destroy(stream);
	}
	state_lock();
	state_context_free(context->shared);
	state_unlock();
	device_give(context->device,
		    context->own_bytes + context->stack_bytes + context->heap_bytes);
	unlink_context(context);
	object_destroy(context);
}

static CUresult create(CUcontext *ret_context, unsigned flags, CUdevice device, unsigned version)
{
	if (!ret_context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct context *context;
	pthread_mutex_lock(&core_lock);
	CUresult result = context_create(device, flags, &context);
	if (result == CUDA_SUCCESS) {
		context->api_version = version;
		if (stack.depth < STACK_DEPTH)
			stack.context[stack.depth++] = context;
		*ret_context = context_handle(context);
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuCtxCreate(CUcontext *ret_context, unsigned int flags, CUdevice device)
{
	return create(ret_context, flags, device, 3010);
}

CUresult sim_cuCtxCreate_v2(CUcontext *ret_context, unsigned int flags, CUdevice device)
{
	return create(ret_context, flags, device, 3020);
}

CUresult sim_cuCtxCreate_v3(CUcontext *ret_context, CUexecAffinityParam *affinity, int count,
			    unsigned int flags, CUdevice device)
{
	if (count < 0 || (count && !affinity))
		return CUDA_ERROR_INVALID_VALUE;
	if (count && !sim_shared->machine.mps)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return create(ret_context, flags, device, 3030);
}

CUresult sim_cuCtxCreate_v4(CUcontext *ret_context, CUctxCreateParams *params, unsigned int flags,
			    CUdevice device)
{
	if (params && params->numExecAffinityParams && !sim_shared->machine.mps)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return create(ret_context, flags, device, 3040);
}

CUresult sim_cuCtxDestroy_v2(CUcontext handle)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&core_lock);
	struct context *context = context_of(handle);
	if (!context) {
		result = CUDA_ERROR_INVALID_CONTEXT;
	} else if (context->primary || context->green) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else {
		pthread_mutex_unlock(&core_lock);
		queue_wait_context(context);
		pthread_mutex_lock(&core_lock);
		context_destroy(context);
		context_drop_current(context);
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuCtxAttach(CUcontext *ret_context, unsigned int flags)
{
	if (!ret_context || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_context = context_handle(context_current());
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxDetach(CUcontext handle)
{
	return context_of(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult sim_cuCtxGetCurrent(CUcontext *ret_context)
{
	if (!ret_context)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_context = context_handle(context_current());
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCurrent(CUcontext handle)
{
	struct context *context = context_of(handle);
	if (handle && !context)
		return CUDA_ERROR_INVALID_CONTEXT;
	context_set_current(context);
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxPushCurrent_v2(CUcontext handle)
{
	struct context *context = context_of(handle);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (stack.depth == STACK_DEPTH)
		return CUDA_ERROR_INVALID_VALUE;
	stack.context[stack.depth++] = context;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxPopCurrent_v2(CUcontext *ret_context)
{
	struct context *context = context_current();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack.depth--;
	if (ret_context)
		*ret_context = context_handle(context);
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice(CUdevice *ret_device)
{
	if (!ret_device)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_device = context_current()->device;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice_v2(CUdevice *ret_device, CUcontext handle)
{
	struct context *context = handle ? context_of(handle) : context_current();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ret_device)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_device = context->device;
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxSynchronize(void)
{
	return sync_context(context_current());
}

CUresult sim_cuCtxSynchronize_v2(CUcontext handle)
{
	struct context *context = handle ? context_of(handle) : context_current();
	return context ? sync_context(context) : CUDA_ERROR_INVALID_CONTEXT;
}
