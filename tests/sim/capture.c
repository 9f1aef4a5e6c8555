/*
 * Stream capture: which streams capture, and what may not be called meanwhile. The rules, as seen
 * on driver 580: a call that might wait for the device or change its memory returns 900 in a
 * thread that captures (unless relaxed), or anywhere while some thread captures globally, and
 * invalidates the captures in its way; any use of the legacy stream beside a capturing blocking
 * stream returns 906; nothing in an invalidated capture works but ending it (901).
 */
#include "capture.h"
#include "entries.h"

#include <stdlib.h>
#include <string.h>

struct capture *captures;

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

bool capture_lives(const struct capture *capture, uint64_t id)
{
	for (const struct capture *c = captures; c; c = c->next)
		if (c == capture && c->id == id)
			return true;
	return false;
}

bool capture_is_on(struct context *context)
{
	(void)context;
	return captures != NULL;
}

/* Does this capture forbid unsafe calls to this thread? */
static bool in_the_way(const struct capture *capture)
{
	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
	    capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (pthread_equal(capture->thread, pthread_self()))
		return true;
	return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
	       capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_forbids(void)
{
	CUresult result = CUDA_SUCCESS;
	if (!captures)
		return result;
	pthread_mutex_lock(&core_lock);
	for (struct capture *c = captures; c; c = c->next) {
		if (!in_the_way(c))
			continue;
		c->invalid = true;
		result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

static bool legacy_conflict(const struct stream *stream, bool invalidate)
{
	bool conflict = false;
	if (!captures || !stream->is_legacy)
		return false;
	pthread_mutex_lock(&core_lock);
	for (struct stream *s = stream->context->host->streams; s; s = s->next) {
		if (!s->capture || (s->flags & CU_STREAM_NON_BLOCKING))
			continue;
		conflict = true;
		if (invalidate)
			s->capture->invalid = true;
	}
	pthread_mutex_unlock(&core_lock);
	return conflict;
}

CUresult capture_forbids_legacy(struct stream *stream)
{
	return legacy_conflict(stream, true) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

CUresult capture_unsupported(struct stream *stream)
{
	stream->capture->invalid = true;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_forbids_stream(struct stream *stream)
{
	CUresult result = capture_forbids_legacy(stream);
	if (result != CUDA_SUCCESS)
		return result;
	return stream->capture ? capture_unsupported(stream) : capture_forbids();
}

CUresult capture_forbids_context(struct context *context)
{
	CUresult result = capture_forbids();
	for (struct stream *s = captures ? context->host->streams : NULL; s; s = s->next)
		if (s->capture)
			result = capture_unsupported(s);
	return result;
}

CUresult capture_checks_event(struct event *event)
{
	if (!event->capture)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&core_lock);
	bool lives = capture_lives(event->capture, event->capture_id);
	CUresult result = lives && !event->capture->invalid ? CUDA_ERROR_CAPTURED_EVENT
							    : CUDA_ERROR_INVALID_VALUE;
	if (lives)
		event->capture->invalid = true;
	pthread_mutex_unlock(&core_lock);
	return result;
}

/* ---- begin and end; need core_lock ---- */

void capture_set_deps(struct stream *stream, struct graph_node *const *deps, size_t count)
{
	struct graph_node **copy = calloc(count + 1, sizeof(struct graph_node *));
	for (size_t i = 0; i < count; i++)
		copy[i] = deps[i];
	free(stream->capture_deps);
	stream->capture_deps = copy;
	stream->capture_dep_count = count;
}

CUresult capture_begin(struct stream *stream, CUstreamCaptureMode mode, struct graph *graph,
		       struct graph_node *const *deps, size_t dep_count)
{
	if (stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (stream->is_legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	struct capture *capture = calloc(1, sizeof(*capture));
	capture->id = ++sim.next_id;
	capture->mode = mode;
	capture->thread = pthread_self();
	capture->origin = stream;
	capture->into_graph = graph != NULL;
	capture->graph = graph ? graph : graph_new();
	capture->next = captures;
	captures = capture;
	stream->capture = capture;
	capture_set_deps(stream, deps, dep_count);
	return CUDA_SUCCESS;
}

static bool reaches(const struct graph_node *from, const struct graph_node *target)
{
	if (from == target)
		return true;
	for (size_t i = 0; i < from->dep_count; i++)
		if (reaches(from->deps[i], target))
			return true;
	return false;
}

/* Every other stream's last nodes must be behind what the origin waits for. */
static bool is_joined(const struct capture *capture, const struct stream *stream)
{
	for (size_t i = 0; i < stream->capture_dep_count; i++) {
		bool found = false;
		for (size_t j = 0; j < capture->origin->capture_dep_count && !found; j++)
			found = reaches(capture->origin->capture_deps[j], stream->capture_deps[i]);
		if (!found)
			return false;
	}
	return true;
}

static void leave(struct stream *stream)
{
	free(stream->capture_deps);
	stream->capture_deps = NULL;
	stream->capture_dep_count = 0;
	stream->capture = NULL;
}

static bool end_streams(struct capture *capture)
{
	bool joined = true;
	for (struct context *c = sim.contexts; c; c = c->next)
		for (struct stream *s = c->streams; s; s = s->next)
			if (s->capture == capture && s != capture->origin) {
				joined &= is_joined(capture, s);
				leave(s);
			}
	leave(capture->origin);
	return joined;
}

CUresult capture_end(struct stream *stream, struct graph **ret_graph)
{
	struct capture *capture = stream->capture;
	if (!capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->origin != stream) {
		capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
	    !pthread_equal(capture->thread, pthread_self()))
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	bool joined = end_streams(capture);
	CUresult result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
			  : !joined	   ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
					   : CUDA_SUCCESS;
	for (struct capture **at = &captures; *at; at = &(*at)->next) {
		if (*at != capture)
			continue;
		*at = capture->next;
		break;
	}
	if (result == CUDA_SUCCESS)
		*ret_graph = capture->graph;
	else if (!capture->into_graph)
		graph_free(capture->graph);
	free(capture);
	return result;
}

void capture_abandon(struct stream *stream)
{
	if (!stream->capture)
		return;
	pthread_mutex_lock(&core_lock);
	struct graph *graph;
	if (stream->capture->origin == stream) {
		stream->capture->invalid = true;
		stream->capture->thread = pthread_self();
		capture_end(stream, &graph);
	} else {
		leave(stream);
	}
	pthread_mutex_unlock(&core_lock);
}

CUresult sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUstreamCaptureMode old = thread_mode;
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *ret_status)
{
	struct stream *stream;
	if (!ret_status)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (legacy_conflict(stream, false))
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	struct capture *capture = stream->capture;
	*ret_status = !capture		 ? CU_STREAM_CAPTURE_STATUS_NONE
		      : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
	return CUDA_SUCCESS;
}
