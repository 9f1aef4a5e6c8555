/*
 * Stream capture. For now no stream ever captures.
 */
#include "sim.h"
#include "entries.h"

CUresult capture_forbids(void)
{
	return CUDA_SUCCESS;
}

CUresult capture_forbids_stream(struct stream *stream)
{
	(void)stream;
	return CUDA_SUCCESS;
}

CUresult capture_unsupported(struct stream *stream)
{
	(void)stream;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

void capture_abandon(struct stream *stream)
{
	(void)stream;
}

CUresult capture_event_record(struct stream *stream, struct event *event, unsigned flags)
{
	(void)event;
	(void)flags;
	return capture_unsupported(stream);
}

CUresult capture_event_wait(struct stream *stream, struct event *event, unsigned flags)
{
	(void)event;
	(void)flags;
	return capture_unsupported(stream);
}

CUresult capture_kernel(struct stream *stream, const struct launch *launch)
{
	(void)launch;
	return capture_unsupported(stream);
}

CUresult capture_host(struct stream *stream, CUhostFn function, void *user)
{
	(void)function;
	(void)user;
	return capture_unsupported(stream);
}

CUresult capture_copy(struct stream *stream, const struct copy_rows *copy)
{
	(void)copy;
	return capture_unsupported(stream);
}

CUresult capture_fill(struct stream *stream, const struct fill_rows *fill)
{
	(void)fill;
	return capture_unsupported(stream);
}
