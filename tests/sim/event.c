/*
 * Events: points in a stream with a device timestamp. A timed one takes 2.7 us of its stream,
 * which is why a pair around one kernel reads the kernel's time plus that much (measured).
 */
#include "sim.h"
#include "entries.h"

#define TIMED_COST_NS 2690ull

static struct event *event_of(CUevent handle)
{
	return object_check(handle, OBJECT_EVENT);
}

void event_unpin(struct event *event)
{
	event->pending--;
	if (event->destroyed && !event->pending)
		object_destroy(event);
}

/* A record operation is over. */
void event_retire(struct op *op)
{
	struct event *event = op->event;
	if (event->generation == op->generation) {
		event->done = true;
		uint64_t end = op->done_ns ? op->done_ns : time_now_ns();
		event->time_ns = end - op->cost_ns;
	}
	event_unpin(event);
}

bool event_done(struct event *event, uint64_t generation)
{
	return event->generation != generation || event->done || !event->recorded;
}

CUresult sim_cuEventCreate(CUevent *ret_event, unsigned int flags)
{
	if (!ret_event || flags > 7 ||
	    ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct event *event = object_new(OBJECT_EVENT, sizeof(*event));
	event->context = context_current();
	event->flags = flags;
	pthread_mutex_unlock(&core_lock);
	*ret_event = (CUevent)event;
	return CUDA_SUCCESS;
}

CUresult sim_cuEventDestroy_v2(CUevent handle)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&core_lock);
	struct event *event = event_of(handle);
	if (!event || event->destroyed) {
		result = CUDA_ERROR_INVALID_HANDLE;
	} else {
		event->destroyed = true;
		event->pending++;
		event_unpin(event);
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

/* Puts a record operation into a stream. */
static void record(struct event *event, struct stream *stream)
{
	struct op *op =
		op_new(OP_EVENT, event->flags & CU_EVENT_DISABLE_TIMING ? 0 : TIMED_COST_NS);
	pthread_mutex_lock(&core_lock);
	event->recorded = true;
	event->done = false;
	event->generation++;
	event->pending++;
	event->capture = NULL;
	event->stream = stream;
	event->stream_id = stream->id;
	op->event = event;
	op->generation = event->generation;
	pthread_mutex_unlock(&core_lock);
	event->stream_seq = queue_add(stream, op);
}

CUresult sim_cuEventRecord(CUevent handle, CUstream stream_handle)
{
	struct event *event = event_of(handle);
	struct stream *stream;
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = stream_resolve(stream_handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->context->host != event->context->host)
		return CUDA_ERROR_INVALID_HANDLE;
	if (stream->capture)
		return capture_event_record(stream, event, false);
	record(event, stream);
	return CUDA_SUCCESS;
}

CUresult sim_cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned int flags)
{
	if (flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	struct stream *stream;
	struct event *event = event_of(handle);
	if (event && flags && stream_resolve(stream_handle, &stream) == CUDA_SUCCESS &&
	    stream->capture)
		return capture_event_record(stream, event, true);
	return sim_cuEventRecord(handle, stream_handle);
}

CUresult sim_cuEventQuery(CUevent handle)
{
	struct event *event = event_of(handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = capture_checks_event(event);
	if (result == CUDA_SUCCESS)
		result = capture_forbids();
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&core_lock);
	bool open = event->recorded && !event->done;
	struct stream *stream =
		open && event->stream->id == event->stream_id ? event->stream : NULL;
	pthread_mutex_unlock(&core_lock);
	if (!open)
		return CUDA_SUCCESS;
	if (stream)
		pthread_mutex_lock(&stream->lock);
	pthread_mutex_lock(&core_lock);
	queue_progress(event->context);
	result = event->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&core_lock);
	if (stream)
		pthread_mutex_unlock(&stream->lock);
	return result;
}

CUresult sim_cuEventSynchronize(CUevent handle)
{
	struct event *event = event_of(handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = capture_checks_event(event);
	if (result == CUDA_SUCCESS)
		result = capture_forbids();
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&core_lock);
	uint64_t generation = event->generation;
	for (;;) {
		queue_progress(event->context);
		if (event_done(event, generation))
			break;
		queue_pause(event->stream->id == event->stream_id
				    ? queue_estimate(event->stream, event->stream_seq)
				    : QUEUE_UNKNOWN);
	}
	pthread_mutex_unlock(&core_lock);
	pools_settle();
	return CUDA_SUCCESS;
}

CUresult sim_cuEventElapsedTime(float *ret_ms, CUevent start_handle, CUevent end_handle)
{
	if (!ret_ms)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&core_lock);
	struct event *start = event_of(start_handle);
	struct event *end = event_of(end_handle);
	if (start && end && (start->capture || end->capture))
		result = CUDA_ERROR_INVALID_VALUE;
	else if (!start || !end || !start->recorded || !end->recorded ||
		 ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)) {
		result = CUDA_ERROR_INVALID_HANDLE;
	} else {
		queue_progress(start->context);
		queue_progress(end->context);
		if (!start->done || !end->done)
			result = CUDA_ERROR_NOT_READY;
		else
			*ret_ms = (float)((double)(int64_t)(end->time_ns - start->time_ns) / 1e6);
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuEventElapsedTime_v2(float *ret_ms, CUevent start, CUevent end)
{
	return sim_cuEventElapsedTime(ret_ms, start, end);
}

CUresult sim_cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned int flags)
{
	struct event *event = event_of(handle);
	struct stream *stream;
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(stream_handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->capture || event->capture)
		return capture_event_wait(stream, event, flags != 0);
	struct op *op = op_new(OP_WAIT_EVENT, 0);
	pthread_mutex_lock(&core_lock);
	op->event = event;
	op->generation = event->generation;
	op->other = event->done || !event->recorded ? NULL : event->stream;
	op->other_id = event->stream_id;
	op->other_seq = event->stream_seq;
	event->pending++;
	pthread_mutex_unlock(&core_lock);
	queue_add(stream, op);
	return CUDA_SUCCESS;
}
