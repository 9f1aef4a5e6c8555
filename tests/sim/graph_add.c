/*
 * cuGraphAdd*Node: every form becomes a CUgraphNodeParams and one node_add().
 */
#include "graph.h"
#include "entries.h"

static CUresult add(CUgraphNode *ret_node, CUgraph handle, const CUgraphNode *deps, size_t count,
		    CUgraphNodeParams *params)
{
	struct graph *graph = graph_of(handle);
	if (!ret_node || !graph || (count && !deps))
		return CUDA_ERROR_INVALID_VALUE;
	struct graph_node *node;
	pthread_mutex_lock(&core_lock);
	CUresult result = node_add(graph, (struct graph_node *const *)(const void *)deps, count,
				   params, &node);
	if (result == CUDA_SUCCESS)
		*ret_node = (CUgraphNode)node;
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuGraphAddNode_v2(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
			       const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params)
{
	(void)data;
	return params ? add(ret_node, graph, deps, count, params) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphAddNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
			    size_t count, CUgraphNodeParams *params)
{
	return sim_cuGraphAddNode_v2(ret_node, graph, deps, NULL, count, params);
}

static CUDA_KERNEL_NODE_PARAMS_v3 kernel_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
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

static CUDA_KERNEL_NODE_PARAMS_v3 kernel_v2(const CUDA_KERNEL_NODE_PARAMS_v2 *p)
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

CUresult sim_cuGraphAddKernelNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
				  size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = kernel_v1(params)};
	return add(ret_node, graph, deps, count, &p);
}

CUresult sim_cuGraphAddKernelNode_v2(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
				     size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = kernel_v2(params)};
	return add(ret_node, graph, deps, count, &p);
}

CUresult sim_cuGraphAddMemcpyNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
				  size_t count, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
	p.memcpy.copyParams = *copy;
	p.memcpy.copyCtx = context;
	return add(ret_node, graph, deps, count, &p);
}

CUresult sim_cuGraphAddMemsetNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
				  size_t count, const CUDA_MEMSET_NODE_PARAMS *fill,
				  CUcontext context)
{
	if (!fill)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
	p.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
		fill->dst,   fill->pitch,  fill->value, fill->elementSize,
		fill->width, fill->height, context,
	};
	return add(ret_node, graph, deps, count, &p);
}

CUresult sim_cuGraphAddHostNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
				size_t count, const CUDA_HOST_NODE_PARAMS *host)
{
	if (!host)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST};
	p.host = (CUDA_HOST_NODE_PARAMS_v2){host->fn, host->userData};
	return add(ret_node, graph, deps, count, &p);
}

CUresult sim_cuGraphAddChildGraphNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
				      size_t count, CUgraph child)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
	p.graph.graph = child;
	return add(ret_node, graph, deps, count, &p);
}

CUresult sim_cuGraphAddEmptyNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
				 size_t count)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
	return add(ret_node, graph, deps, count, &p);
}

CUresult sim_cuGraphAddEventRecordNode(CUgraphNode *ret_node, CUgraph graph,
				       const CUgraphNode *deps, size_t count, CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
	p.eventRecord.event = event;
	return add(ret_node, graph, deps, count, &p);
}

CUresult sim_cuGraphAddEventWaitNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
				     size_t count, CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
	p.eventWait.event = event;
	return add(ret_node, graph, deps, count, &p);
}

CUresult sim_cuGraphAddMemAllocNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
				    size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *alloc)
{
	if (!alloc)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	p.alloc = (CUDA_MEM_ALLOC_NODE_PARAMS_v2){
		.poolProps = alloc->poolProps,
		.bytesize = alloc->bytesize,
	};
	CUresult result = add(ret_node, graph, deps, count, &p);
	if (result == CUDA_SUCCESS)
		alloc->dptr = p.alloc.dptr;
	return result;
}

CUresult sim_cuGraphAddMemFreeNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
				   size_t count, CUdeviceptr address)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
	pthread_mutex_lock(&core_lock);
	bool known = range_exact(address, RANGE_GRAPH) != NULL;
	pthread_mutex_unlock(&core_lock);
	if (!known)
		return CUDA_ERROR_INVALID_VALUE;
	p.free.dptr = address;
	return add(ret_node, graph, deps, count, &p);
}

CUresult sim_cuGraphAddBatchMemOpNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
				      size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS *ops)
{
	if (!ops)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
	p.memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){
		ops->ctx,
		ops->count,
		ops->paramArray,
		ops->flags,
	};
	return add(ret_node, graph, deps, count, &p);
}

/* ---- changing a node: of a graph, or the copy of it in an executable graph ---- */

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
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = kernel_v1(params)};
	return set(node_of(node), &p);
}

CUresult sim_cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = kernel_v2(params)};
	return set(node_of(node), &p);
}

CUresult sim_cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
					    const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = kernel_v1(params)};
	return set(in_exec(exec, node), &p);
}

CUresult sim_cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
					       const CUDA_KERNEL_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = kernel_v2(params)};
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
