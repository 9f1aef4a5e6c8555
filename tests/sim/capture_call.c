/*
 * The calls that begin, end and look into captures.
 */
#include "capture.h"
#include "entries.h"

static CUresult begin(CUstream handle, CUstreamCaptureMode mode, struct graph *graph,
		      const CUgraphNode *deps, size_t count)
{
	struct stream *stream;
	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&core_lock);
	result = capture_begin(stream, mode, graph, (struct graph_node *const *)(const void *)deps,
			       count);
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuStreamBeginCapture(CUstream stream)
{
	return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL, NULL, 0);
}

CUresult sim_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	return begin(stream, mode, NULL, NULL, 0);
}

CUresult sim_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle, const CUgraphNode *deps,
					 const CUgraphEdgeData *data, size_t count,
					 CUstreamCaptureMode mode)
{
	struct graph *graph = graph_of(handle);
	(void)data;
	if (!graph || (count && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	return begin(stream, mode, graph, deps, count);
}

CUresult sim_cuStreamEndCapture(CUstream handle, CUgraph *ret_graph)
{
	struct stream *stream;
	struct graph *graph = NULL;
	if (!ret_graph)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&core_lock);
	result = capture_end(stream, &graph);
	pthread_mutex_unlock(&core_lock);
	*ret_graph = (CUgraph)graph;
	return result;
}

CUresult sim_cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *ret_status,
				       cuuint64_t *ret_id, CUgraph *ret_graph,
				       const CUgraphNode **ret_deps,
				       const CUgraphEdgeData **ret_data, size_t *ret_count)
{
	struct stream *stream;
	CUresult result = sim_cuStreamIsCapturing(handle, ret_status);
	if (result != CUDA_SUCCESS)
		return result;
	stream_resolve(handle, &stream);
	if (*ret_status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (ret_id)
		*ret_id = stream->capture->id;
	if (ret_graph)
		*ret_graph = (CUgraph)stream->capture->graph;
	if (ret_deps)
		*ret_deps = (const CUgraphNode *)(void *)stream->capture_deps;
	if (ret_data)
		*ret_data = NULL;
	if (ret_count)
		*ret_count = stream->capture_dep_count;
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *ret_status,
				       cuuint64_t *ret_id, CUgraph *ret_graph,
				       const CUgraphNode **ret_deps, size_t *ret_count)
{
	return sim_cuStreamGetCaptureInfo_v3(stream, ret_status, ret_id, ret_graph, ret_deps, NULL,
					     ret_count);
}

CUresult sim_cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *ret_status,
				    cuuint64_t *ret_id)
{
	return sim_cuStreamGetCaptureInfo_v3(stream, ret_status, ret_id, NULL, NULL, NULL, NULL);
}

CUresult sim_cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *deps,
						  const CUgraphEdgeData *data, size_t count,
						  unsigned int flags)
{
	struct stream *stream;
	(void)data;
	if (flags > 1 || (count && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&core_lock);
	if (!stream->capture) {
		result = CUDA_ERROR_ILLEGAL_STATE;
	} else if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
		capture_set_deps(stream, (struct graph_node *const *)(void *)deps, count);
	} else {
		struct graph_node *all[1024];
		size_t n = 0;
		for (size_t i = 0; i < stream->capture_dep_count && n < 1024; i++)
			all[n++] = stream->capture_deps[i];
		for (size_t i = 0; i < count && n < 1024; i++)
			all[n++] = (struct graph_node *)(void *)deps[i];
		capture_set_deps(stream, all, n);
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *deps, size_t count,
					       unsigned int flags)
{
	return sim_cuStreamUpdateCaptureDependencies_v2(stream, deps, NULL, count, flags);
}
