/*
 * Executable graphs: instantiation, update, launch. A launch puts the nodes into the stream one
 * after the other, in an order that their edges allow; kernels that follow each other become one
 * piece of device time. A node costs half a microsecond on top of its work (100 empty ones take
 * 51 us on the card).
 */
#include "graph.h"
#include "entries.h"

#include <stdlib.h>

#define NODE_COST_NS 500ull

static struct exec *exec_of(CUgraphExec handle)
{
	return object_check(handle, OBJECT_EXEC);
}

static CUresult instantiate(CUgraphExec *ret_exec, CUgraph handle, unsigned long long flags)
{
	struct graph *graph = graph_of(handle);
	if (!ret_exec || !graph || (flags & ~15ull))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = capture_forbids();
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&core_lock);
	struct graph_node **order = graph_order(graph);
	free(order);
	if (order) {
		struct exec *exec = object_new(OBJECT_EXEC, sizeof(*exec));
		exec->graph = graph_copy(graph, true);
		exec->context = context_current();
		exec->flags = flags;
		exec->memory = graph->memory;
		if (exec->memory)
			exec->memory->refs++;
		*ret_exec = (CUgraphExec)exec;
	}
	pthread_mutex_unlock(&core_lock);
	return order ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphInstantiateWithFlags(CUgraphExec *ret_exec, CUgraph graph,
					 unsigned long long flags)
{
	return instantiate(ret_exec, graph, flags);
}

CUresult sim_cuGraphInstantiate(CUgraphExec *ret_exec, CUgraph graph, CUgraphNode *ret_error,
				char *log, size_t log_bytes)
{
	if (ret_error)
		*ret_error = NULL;
	if (log && log_bytes)
		log[0] = '\0';
	return instantiate(ret_exec, graph, 0);
}

CUresult sim_cuGraphInstantiate_v2(CUgraphExec *ret_exec, CUgraph graph, CUgraphNode *ret_error,
				   char *log, size_t log_bytes)
{
	return sim_cuGraphInstantiate(ret_exec, graph, ret_error, log, log_bytes);
}

CUresult sim_cuGraphInstantiateWithParams(CUgraphExec *ret_exec, CUgraph graph,
					  CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = instantiate(ret_exec, graph, params->flags);
	params->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS
						    : CUDA_GRAPH_INSTANTIATE_ERROR;
	params->hErrNode_out = NULL;
	if (result == CUDA_SUCCESS && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD))
		result = sim_cuGraphUpload(*ret_exec, params->hUploadStream);
	return result;
}

CUresult sim_cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *ret_flags)
{
	struct exec *exec = exec_of(handle);
	if (!exec || !ret_flags)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_flags = exec->flags;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphExecDestroy(CUgraphExec handle)
{
	struct exec *exec = exec_of(handle);
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	graph_memory_put(exec->memory);
	graph_free(exec->graph);
	object_destroy(exec);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

/* ---- launch ---- */

struct launching {
	CUstream handle;
	struct stream *stream;
	uint64_t pending_ns; /* kernels not yet added */
};

static void flush(struct launching *l)
{
	if (l->pending_ns)
		queue_add(l->stream, op_new(OP_DEVICE, l->pending_ns));
	l->pending_ns = 0;
}

static CUresult launch_order(struct launching *l, struct graph *graph);

static CUresult add_copy(struct launching *l, const CUgraphNodeParams *p)
{
	flush(l);
	return sim_cuMemcpy3DAsync_v2(&p->memcpy.copyParams, l->handle);
}

static CUresult add_fill(struct launching *l, const CUgraphNodeParams *p)
{
	flush(l);
	struct fill_rows f = {
		.to = p->memset.dst,
		.to_pitch = p->memset.pitch,
		.width = p->memset.width * p->memset.elementSize,
		.height = p->memset.height ? p->memset.height : 1,
		.value = p->memset.value,
		.value_bytes = p->memset.elementSize,
	};
	return fill_rows(l->handle, &f, false);
}

static CUresult add_node(struct launching *l, struct graph_node *node)
{
	const CUgraphNodeParams *p = &node->params;
	l->pending_ns += NODE_COST_NS;
	if (node->disabled)
		return CUDA_SUCCESS;
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		l->pending_ns += node->cost_ns;
		return launch_prepare(l->stream, node->function);
	case CU_GRAPH_NODE_TYPE_MEMCPY: return add_copy(l, p);
	case CU_GRAPH_NODE_TYPE_MEMSET: return add_fill(l, p);
	case CU_GRAPH_NODE_TYPE_HOST:
		flush(l);
		return sim_cuLaunchHostFunc(l->handle, p->host.fn, p->host.userData);
	case CU_GRAPH_NODE_TYPE_GRAPH: return launch_order(l, node->child);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		flush(l);
		return sim_cuEventRecord(p->eventRecord.event, l->handle);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		flush(l);
		return sim_cuStreamWaitEvent(l->handle, p->eventWait.event, 0);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		flush(l);
		return sim_cuStreamBatchMemOp_v2(l->handle, p->memOp.count, p->memOp.paramArray, 0);
	default: return CUDA_SUCCESS;
	}
}

static CUresult launch_order(struct launching *l, struct graph *graph)
{
	CUresult result = CUDA_SUCCESS;
	struct graph_node **order = graph_order(graph);
	for (size_t i = 0; order && i < graph->count && result == CUDA_SUCCESS; i++)
		result = add_node(l, order[i]);
	free(order);
	return result;
}

CUresult sim_cuGraphLaunch(CUgraphExec handle, CUstream stream_handle)
{
	struct exec *exec = exec_of(handle);
	struct launching l = {.handle = stream_handle};
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(stream_handle, &l.stream);
	if (result == CUDA_SUCCESS)
		result = capture_forbids_legacy(l.stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (l.stream->capture)
		return capture_child(l.stream, exec->graph);
	pthread_mutex_lock(&core_lock);
	result = graph_memory_check(exec);
	if (result == CUDA_SUCCESS)
		result = graph_memory_map(exec);
	if (result == CUDA_SUCCESS)
		graph_memory_begin(exec);
	pthread_mutex_unlock(&core_lock);
	if (result == CUDA_SUCCESS)
		result = launch_order(&l, exec->graph);
	flush(&l);
	return result;
}

CUresult sim_cuGraphUpload(CUgraphExec handle, CUstream stream_handle)
{
	struct exec *exec = exec_of(handle);
	struct stream *stream;
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(stream_handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&core_lock);
	result = graph_memory_map(exec);
	pthread_mutex_unlock(&core_lock);
	return result;
}

/* ---- update: same shape, new parameters ---- */

static CUgraphExecUpdateResult update(struct exec *exec, struct graph *graph,
				      struct graph_node **ret_error)
{
	struct graph_node *from = graph->first, *to = exec->graph->first;
	*ret_error = NULL;
	if (graph->count != exec->graph->count)
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (; from && to; from = from->next, to = to->next) {
		*ret_error = from;
		if (from->params.type != to->params.type)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		if (from->dep_count != to->dep_count)
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		if (from->params.type == CU_GRAPH_NODE_TYPE_KERNEL &&
		    from->function->module->context != to->function->module->context)
			return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
		if (from->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
		    from->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
	}
	from = graph->first;
	for (to = exec->graph->first; to; to = to->next, from = from->next) {
		node_set(to, &from->params);
		to->origin = from;
	}
	*ret_error = NULL;
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult sim_cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle,
				  CUgraphExecUpdateResultInfo *ret_info)
{
	struct exec *exec = exec_of(handle);
	struct graph *graph = graph_of(graph_handle);
	struct graph_node *error;
	if (!exec || !graph || !ret_info)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	ret_info->result = update(exec, graph, &error);
	ret_info->errorNode = (CUgraphNode)error;
	ret_info->errorFromNode = NULL;
	pthread_mutex_unlock(&core_lock);
	return ret_info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult sim_cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *ret_error,
			       CUgraphExecUpdateResult *ret_result)
{
	CUgraphExecUpdateResultInfo info;
	CUresult result = sim_cuGraphExecUpdate_v2(exec, graph, &info);
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
		return result;
	if (ret_error)
		*ret_error = info.errorNode;
	if (ret_result)
		*ret_result = info.result;
	return result;
}
