/*
 * What a stream can be asked and told.
 */
#include "sim.h"
#include "entries.h"

#include <string.h>

CUresult sim_cuStreamGetCtx(CUstream handle, CUcontext *ret_context)
{
	struct stream *stream;
	if (!ret_context)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result == CUDA_SUCCESS)
		*ret_context = context_handle(stream->context);
	return result;
}

CUresult sim_cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *ret_green)
{
	struct stream *stream;
	if (!ret_green)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result == CUDA_SUCCESS)
		*ret_green = (CUgreenCtx)stream->context->green;
	return result;
}

CUresult sim_cuStreamGetCtx_v2(CUstream handle, CUcontext *ret_context, CUgreenCtx *ret_green)
{
	struct stream *stream;
	if (!ret_context)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_context = stream->context->green ? NULL : context_handle(stream->context);
	if (ret_green)
		*ret_green = (CUgreenCtx)stream->context->green;
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetDevice(CUstream handle, CUdevice *ret_device)
{
	struct stream *stream;
	if (!ret_device)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result == CUDA_SUCCESS)
		*ret_device = stream->context->device;
	return result;
}

CUresult sim_cuStreamGetId(CUstream handle, unsigned long long *ret_id)
{
	struct stream *stream;
	if (!ret_id)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result == CUDA_SUCCESS)
		*ret_id = stream->id;
	return result;
}

CUresult sim_cuStreamGetFlags(CUstream handle, unsigned int *ret_flags)
{
	struct stream *stream;
	if (!ret_flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result == CUDA_SUCCESS)
		*ret_flags = stream->flags;
	return result;
}

CUresult sim_cuStreamGetPriority(CUstream handle, int *ret_priority)
{
	struct stream *stream;
	if (!ret_priority)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result == CUDA_SUCCESS)
		*ret_priority = stream->priority;
	return result;
}

CUresult sim_cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute,
				  CUstreamAttrValue *ret_value)
{
	struct stream *stream;
	if (!ret_value)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	memset(ret_value, 0, sizeof(*ret_value));
	if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		ret_value->priority = stream->priority;
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
				  const CUstreamAttrValue *value)
{
	struct stream *stream;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result == CUDA_SUCCESS && attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		stream->priority = value->priority;
	return result;
}

CUresult sim_cuStreamCopyAttributes(CUstream to, CUstream from)
{
	CUstreamAttrValue value;
	CUresult result = sim_cuStreamGetAttribute(
		from, (CUstreamAttrID)CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
	if (result != CUDA_SUCCESS)
		return result;
	return sim_cuStreamSetAttribute(to, (CUstreamAttrID)CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
}

CUresult sim_cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t length,
				    unsigned int flags)
{
	struct stream *stream;
	(void)length;
	if (!address || !flags || flags > 4)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_resolve(handle, &stream);
}

/* A context's event: recorded or awaited in its legacy stream, which all blocking ones order by. */

CUresult sim_cuCtxRecordEvent(CUcontext handle, CUevent event)
{
	struct context *context = handle ? context_of(handle) : context_current();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	return sim_cuEventRecord(event, (CUstream)context->legacy);
}

CUresult sim_cuCtxWaitEvent(CUcontext handle, CUevent event)
{
	struct context *context = handle ? context_of(handle) : context_current();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	return sim_cuStreamWaitEvent((CUstream)context->legacy, event, 0);
}
