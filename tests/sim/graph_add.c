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

CUresult sim_cuGraphAddKernelNode(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
				  size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
			       .kernel = params_of_kernel_v1(params)};
	return add(ret_node, graph, deps, count, &p);
}

CUresult sim_cuGraphAddKernelNode_v2(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *deps,
				     size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
			       .kernel = params_of_kernel_v2(params)};
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
