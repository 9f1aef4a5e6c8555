/*
 * Streams as objects: creation, which one a handle means, queries and waits. What stands in them
 * is queue.c's business.
 */
#include "sim.h"
#include "entries.h"

struct stream *stream_new(struct context *context, unsigned flags, int priority)
{
	struct stream *stream = object_new(OBJECT_STREAM, sizeof(*stream));
	stream->context = context;
	stream->id = ++sim.next_id;
	stream->flags = flags;
	stream->priority = priority;
	stream->green = context->green;
	stream->next = context->host->streams;
	context->host->streams = stream;
	return stream;
}

static struct stream *thread_stream(struct context *context)
{
	pthread_mutex_lock(&core_lock);
	struct stream *stream = context->host->streams;
	while (stream && !(stream->is_thread && stream->context == context &&
			   pthread_equal(stream->thread, pthread_self())))
		stream = stream->next;
	if (!stream) {
		stream = stream_new(context, 0, 0);
		stream->is_thread = true;
		stream->thread = pthread_self();
	}
	pthread_mutex_unlock(&core_lock);
	return stream;
}

CUresult stream_resolve(CUstream handle, struct stream **ret_stream)
{
	struct context *context = context_current();
	if (!handle)
		handle = entry_per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
	if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
		if (!context || !context_of((CUcontext)context))
			return CUDA_ERROR_INVALID_CONTEXT;
		*ret_stream = handle == CU_STREAM_LEGACY ? context->legacy : thread_stream(context);
		return CUDA_SUCCESS;
	}
	struct stream *stream = object_check(handle, OBJECT_STREAM);
	if (!stream || stream->destroyed)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_stream = stream;
	return CUDA_SUCCESS;
}

static CUresult create(CUstream *ret_stream, unsigned flags, int priority)
{
	if (!ret_stream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct stream *stream = stream_new(context_current(), flags,
					   priority < -5  ? -5
					   : priority > 0 ? 0
							  : priority);
	pthread_mutex_unlock(&core_lock);
	*ret_stream = (CUstream)stream;
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamCreate(CUstream *ret_stream, unsigned int flags)
{
	return create(ret_stream, flags, 0);
}

CUresult sim_cuStreamCreateWithPriority(CUstream *ret_stream, unsigned int flags, int priority)
{
	return create(ret_stream, flags, priority);
}

/* Work in the stream goes on; the handle is dead at once. */
CUresult sim_cuStreamDestroy_v2(CUstream handle)
{
	struct stream *stream = object_check(handle, OBJECT_STREAM);
	if (!stream || stream->destroyed)
		return CUDA_ERROR_INVALID_HANDLE;
	if (stream->is_legacy || stream->is_thread)
		return CUDA_ERROR_INVALID_HANDLE;
	capture_abandon(stream);
	pthread_mutex_lock(&core_lock);
	stream->destroyed = true;
	queue_progress(stream->context);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

static bool stream_is_idle(struct stream *stream)
{
	if (stream->head)
		return false;
	if (!stream->is_legacy)
		return true;
	for (struct stream *s = stream->context->host->streams; s; s = s->next)
		if (s->head && s->context == stream->context &&
		    !(s->flags & CU_STREAM_NON_BLOCKING))
			return false;
	return true;
}

CUresult sim_cuStreamQuery(CUstream handle)
{
	struct stream *stream;
	CUresult result = stream_resolve(handle, &stream);
	if (result == CUDA_SUCCESS)
		result = capture_forbids_stream(stream);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&stream->lock);
	pthread_mutex_lock(&core_lock);
	if (!stream_is_idle(stream))
		queue_progress(stream->context);
	result = stream_is_idle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&core_lock);
	pthread_mutex_unlock(&stream->lock);
	return result;
}

CUresult sim_cuStreamSynchronize(CUstream handle)
{
	struct stream *stream;
	CUresult result = stream_resolve(handle, &stream);
	if (result == CUDA_SUCCESS)
		result = capture_forbids_stream(stream);
	if (result != CUDA_SUCCESS)
		return result;
	for (;;) {
		struct stream *wait_for = NULL;
		uint64_t seq = 0;
		pthread_mutex_lock(&core_lock);
		struct stream *s = stream;
		if (stream->is_legacy && !stream->head)
			for (s = stream->context->host->streams; s; s = s->next)
				if (s->head && s->context == stream->context &&
				    !(s->flags & CU_STREAM_NON_BLOCKING))
					break;
		if (s && s->head) {
			wait_for = s;
			seq = s->enqueued;
		}
		pthread_mutex_unlock(&core_lock);
		if (!wait_for)
			break;
		queue_wait(wait_for, seq);
		if (wait_for == stream && !stream->is_legacy)
			break;
	}
	pools_settle();
	return CUDA_SUCCESS;
}

CUresult sync_context(struct context *context)
{
	CUresult result = capture_forbids_context(context);
	if (result != CUDA_SUCCESS)
		return result;
	entry_pass_alone();
	queue_wait_context(context);
	return CUDA_SUCCESS;
}

static CUresult add_host(CUstream handle, struct op *op)
{
	struct stream *stream;
	CUresult result = stream_resolve(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->capture)
		return op->host ? capture_host(stream, op->host, op->user)
				: capture_unsupported(stream);
	struct op *queued = op_new(OP_HOST, 0);
	queued->host = op->host;
	queued->callback = op->callback;
	queued->user = op->user;
	queue_add(stream, queued);
	return CUDA_SUCCESS;
}

CUresult sim_cuLaunchHostFunc(CUstream handle, CUhostFn function, void *user)
{
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	struct op op = {.host = function, .user = user};
	return add_host(handle, &op);
}

CUresult sim_cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *user,
				 unsigned int flags)
{
	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	struct op op = {.callback = callback, .user = user};
	return add_host(handle, &op);
}
