/*
 * Changing what a node does: of a graph, or the copy of it in an executable graph.
 */
#include "entries.h"
#include "graph.h"

CUDA_KERNEL_NODE_PARAMS_v3 params_of_kernel_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	return (CUDA_KERNEL_NODE_PARAMS_v3){
		.func = p->func,
		.gridDimX = p->gridDimX,
		.gridDimY = p->gridDimY,
		.gridDimZ = p->gridDimZ,
		.blockDimX = p->blockDimX,
		.blockDimY = p->blockDimY,
		.blockDimZ = p->blockDimZ,
		.sharedMemBytes = p->sharedMemBytes,
		.kernelParams = p->kernelParams,
		.extra = p->extra,
	};
}

CUDA_KERNEL_NODE_PARAMS_v3 params_of_kernel_v2(const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	return (CUDA_KERNEL_NODE_PARAMS_v3){
		.func = p->func,
		.gridDimX = p->gridDimX,
		.gridDimY = p->gridDimY,
		.gridDimZ = p->gridDimZ,
		.blockDimX = p->blockDimX,
		.blockDimY = p->blockDimY,
		.blockDimZ = p->blockDimZ,
		.sharedMemBytes = p->sharedMemBytes,
		.kernelParams = p->kernelParams,
		.extra = p->extra,
		.kern = p->kern,
		.ctx = p->ctx,
	};
}

static CUresult set(struct graph_node *node, CUgraphNodeParams *params)
{
	if (!node || node->params.type != params->type)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	CUresult result = node_set(node, params);
	pthread_mutex_unlock(&core_lock);
	return result;
}

static struct graph_node *in_exec(CUgraphExec handle, CUgraphNode node)
{
	struct exec *exec = object_check(handle, OBJECT_EXEC);
	struct graph_node *origin = node_of(node);
	return exec && origin ? copied_node(exec->graph, origin) : NULL;
}

CUresult sim_cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
	return params ? set(node_of(node), params) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
	return params ? set(in_exec(exec, node), params) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
			       .kernel = params_of_kernel_v1(params)};
	return set(node_of(node), &p);
}

CUresult sim_cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
			       .kernel = params_of_kernel_v2(params)};
	return set(node_of(node), &p);
}

CUresult sim_cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
					    const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
			       .kernel = params_of_kernel_v1(params)};
	return set(in_exec(exec, node), &p);
}

CUresult sim_cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
					       const CUDA_KERNEL_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
			       .kernel = params_of_kernel_v2(params)};
	return set(in_exec(exec, node), &p);
}

CUresult sim_cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
	p.memcpy.copyParams = *copy;
	return set(node_of(node), &p);
}

CUresult sim_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
					    const CUDA_MEMCPY3D *copy, CUcontext context)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
	p.memcpy.copyParams = *copy;
	p.memcpy.copyCtx = context;
	return set(in_exec(exec, node), &p);
}

static CUgraphNodeParams fill_params(const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
	p.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
		fill->dst,   fill->pitch,  fill->value, fill->elementSize,
		fill->width, fill->height, context,
	};
	return p;
}

CUresult sim_cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *fill)
{
	if (!fill)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = fill_params(fill, NULL);
	return set(node_of(node), &p);
}

CUresult sim_cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
					    const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
	if (!fill)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = fill_params(fill, context);
	return set(in_exec(exec, node), &p);
}

CUresult sim_cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host)
{
	if (!host)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST};
	p.host = (CUDA_HOST_NODE_PARAMS_v2){host->fn, host->userData};
	return set(node_of(node), &p);
}

CUresult sim_cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
					  const CUDA_HOST_NODE_PARAMS *host)
{
	if (!host)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST};
	p.host = (CUDA_HOST_NODE_PARAMS_v2){host->fn, host->userData};
	return set(in_exec(exec, node), &p);
}

CUresult sim_cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
	p.graph.graph = child;
	return set(in_exec(exec, node), &p);
}

static CUgraphNodeParams event_params(CUgraphNodeType type, CUevent event)
{
	CUgraphNodeParams p = {.type = type};
	p.eventWait.event = event;
	return p;
}

CUresult sim_cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
	CUgraphNodeParams p = event_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
	return set(node_of(node), &p);
}

CUresult sim_cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
	CUgraphNodeParams p = event_params(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
	return set(node_of(node), &p);
}

CUresult sim_cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	CUgraphNodeParams p = event_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
	return set(in_exec(exec, node), &p);
}

CUresult sim_cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	CUgraphNodeParams p = event_params(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
	return set(in_exec(exec, node), &p);
}

static CUgraphNodeParams memop_params(const CUDA_BATCH_MEM_OP_NODE_PARAMS *ops)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
	p.memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){
		ops->ctx,
		ops->count,
		ops->paramArray,
		ops->flags,
	};
	return p;
}

CUresult sim_cuGraphBatchMemOpNodeSetParams(CUgraphNode node,
					    const CUDA_BATCH_MEM_OP_NODE_PARAMS *ops)
{
	if (!ops)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = memop_params(ops);
	return set(node_of(node), &p);
}

CUresult sim_cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
						const CUDA_BATCH_MEM_OP_NODE_PARAMS *ops)
{
	if (!ops)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = memop_params(ops);
	return set(in_exec(exec, node), &p);
}
