/*
 * Green contexts and device resources: parts of a device's multiprocessors, in groups of at least
 * eight. A green context runs in its device's primary context and takes no memory of its own; the
 * simulated device time does not depend on how many multiprocessors it has.
 */
#include "sim.h"
#include "entries.h"

#include <string.h>

enum { GROUP = 8 };

struct desc {
	struct object object;
	CUdevResource sm;
};

struct green {
	struct object object;
	CUdevice device;
	CUdevResource sm;
	struct context *context;
	uint64_t id;
};

static void whole_device(CUdevice device, CUdevResource *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->type = CU_DEV_RESOURCE_TYPE_SM;
	ret->sm.smCount = sim_shared->machine.sms[sim.device[device].physical];
	ret->sm.minSmPartitionSize = GROUP;
	ret->sm.smCoscheduledAlignment = GROUP;
	ret->_internal_padding[0] = (unsigned char)(device + 1);
}

static struct green *green_of(CUgreenCtx handle)
{
	return object_check(handle, OBJECT_GREEN);
}

CUresult sim_cuDeviceGetDevResource(CUdevice device, CUdevResource *ret, CUdevResourceType type)
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	whole_device(device, ret);
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevResource(CUcontext handle, CUdevResource *ret, CUdevResourceType type)
{
	struct context *context = context_of(handle);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (context->green && ret && type == CU_DEV_RESOURCE_TYPE_SM) {
		*ret = context->green->sm;
		return CUDA_SUCCESS;
	}
	return sim_cuDeviceGetDevResource(context->device, ret, type);
}

CUresult sim_cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource *ret, CUdevResourceType type)
{
	struct green *green = green_of(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	*ret = green->sm;
	return CUDA_SUCCESS;
}

CUresult sim_cuDevSmResourceSplitByCount(CUdevResource *ret, unsigned int *count,
					 const CUdevResource *input, CUdevResource *ret_rest,
					 unsigned int flags, unsigned int least)
{
	if (!count || !input || (flags & ~3u))
		return CUDA_ERROR_INVALID_VALUE;
	if (input->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (least > input->sm.smCount)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	unsigned unit = flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING ? 2 : GROUP;
	unsigned size = least ? (least + unit - 1) / unit * unit : unit;
	unsigned most = input->sm.smCount / size;
	unsigned groups = ret && *count < most ? *count : most;
	for (unsigned i = 0; ret && i < groups; i++) {
		ret[i] = *input;
		ret[i].sm.smCount = size;
	}
	if (ret_rest) {
		*ret_rest = *input;
		ret_rest->sm.smCount = input->sm.smCount - groups * size;
		if (!ret_rest->sm.smCount)
			ret_rest->type = CU_DEV_RESOURCE_TYPE_INVALID;
	}
	*count = groups;
	return CUDA_SUCCESS;
}

CUresult sim_cuDevResourceGenerateDesc(CUdevResourceDesc *ret_desc, CUdevResource *resources,
				       unsigned int count)
{
	if (!ret_desc || !resources || !count)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct desc *desc = object_new(OBJECT_DESC, sizeof(*desc));
	desc->sm = resources[0];
	for (unsigned i = 1; i < count; i++)
		desc->sm.sm.smCount += resources[i].sm.smCount;
	pthread_mutex_unlock(&core_lock);
	*ret_desc = (CUdevResourceDesc)desc;
	return CUDA_SUCCESS;
}

/* A context that shares the primary one's place on the device, memory and code. */
static struct context *green_context(struct green *green, struct context *primary)
{
	struct context *context = object_new(OBJECT_CONTEXT, sizeof(*context));
	context->device = green->device;
	context->shared = primary->shared;
	context->api_version = primary->api_version;
	context->id = ++sim.next_id;
	context->host = primary;
	context->green = green;
	memcpy(context->limits, primary->limits, sizeof(context->limits));
	context->legacy = stream_new(context, 0, 0);
	context->legacy->is_legacy = true;
	context->next = sim.contexts;
	sim.contexts = context;
	return context;
}

CUresult sim_cuGreenCtxCreate(CUgreenCtx *ret_green, CUdevResourceDesc desc_handle, CUdevice device,
			      unsigned int flags)
{
	struct desc *desc = object_check(desc_handle, OBJECT_DESC);
	if (!ret_green || !desc || !(flags & CU_GREEN_CTX_DEFAULT_STREAM))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct context *primary;
	pthread_mutex_lock(&core_lock);
	CUresult result = primary_retain(device, &primary);
	if (result == CUDA_SUCCESS) {
		struct green *green = object_new(OBJECT_GREEN, sizeof(*green));
		green->device = device;
		green->sm = desc->sm;
		green->context = green_context(green, primary);
		green->id = green->context->id;
		*ret_green = (CUgreenCtx)green;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuGreenCtxDestroy(CUgreenCtx handle)
{
	struct green *green = green_of(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	queue_wait_context(green->context);
	pthread_mutex_lock(&core_lock);
	struct context **at = &sim.contexts;
	while (*at != green->context)
		at = &(*at)->next;
	*at = green->context->next;
	for (struct stream *s = green->context->host->streams; s; s = s->next)
		if (s->context == green->context)
			s->destroyed = true;
	queue_progress(green->context->host);
	context_drop_current(green->context);
	object_destroy(green->context);
	primary_release(green->device);
	object_destroy(green);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuCtxFromGreenCtx(CUcontext *ret_context, CUgreenCtx handle)
{
	struct green *green = green_of(handle);
	if (!ret_context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret_context = context_handle(green->context);
	return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxGetId(CUgreenCtx handle, unsigned long long *ret_id)
{
	struct green *green = green_of(handle);
	if (!ret_id)
		return CUDA_ERROR_INVALID_VALUE;
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret_id = green->id;
	return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxStreamCreate(CUstream *ret_stream, CUgreenCtx handle, unsigned int flags,
				    int priority)
{
	struct green *green = green_of(handle);
	if (!ret_stream || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&core_lock);
	*ret_stream = (CUstream)stream_new(green->context, flags,
					   priority < -5  ? -5
					   : priority > 0 ? 0
							  : priority);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxRecordEvent(CUgreenCtx handle, CUevent event)
{
	struct green *green = green_of(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	return sim_cuEventRecord(event, (CUstream)green->context->legacy);
}

CUresult sim_cuGreenCtxWaitEvent(CUgreenCtx handle, CUevent event)
{
	struct green *green = green_of(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	return sim_cuStreamWaitEvent((CUstream)green->context->legacy, event, 0);
}
