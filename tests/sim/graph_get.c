/*
 * cuGraph*NodeGetParams and the like.
 */
#include "graph.h"
#include "entries.h"

#include <string.h>

static const CUgraphNodeParams *params_of(CUgraphNode handle, CUgraphNodeType type)
{
	struct graph_node *node = node_of(handle);
	return node && node->params.type == type ? &node->params : NULL;
}

CUresult sim_cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *ret)
{
	const CUgraphNodeParams *p = params_of(handle, CU_GRAPH_NODE_TYPE_KERNEL);
	if (!p || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	_Static_assert(sizeof(*ret) == sizeof(p->kernel), "the same layout");
	memcpy(ret, &p->kernel, sizeof(*ret));
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1 *ret)
{
	const CUgraphNodeParams *p = params_of(handle, CU_GRAPH_NODE_TYPE_KERNEL);
	if (!p || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(ret, &p->kernel, sizeof(*ret));
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D *ret)
{
	const CUgraphNodeParams *p = params_of(handle, CU_GRAPH_NODE_TYPE_MEMCPY);
	if (!p || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = p->memcpy.copyParams;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *ret)
{
	const CUgraphNodeParams *p = params_of(handle, CU_GRAPH_NODE_TYPE_MEMSET);
	if (!p || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(ret, &p->memset, sizeof(*ret));
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *ret)
{
	const CUgraphNodeParams *p = params_of(handle, CU_GRAPH_NODE_TYPE_HOST);
	if (!p || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (CUDA_HOST_NODE_PARAMS){p->host.fn, p->host.userData};
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *ret_graph)
{
	const CUgraphNodeParams *p = params_of(handle, CU_GRAPH_NODE_TYPE_GRAPH);
	if (!p || !ret_graph)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_graph = p->graph.graph;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphEventRecordNodeGetEvent(CUgraphNode handle, CUevent *ret_event)
{
	const CUgraphNodeParams *p = params_of(handle, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
	if (!p || !ret_event)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_event = p->eventRecord.event;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphEventWaitNodeGetEvent(CUgraphNode handle, CUevent *ret_event)
{
	const CUgraphNodeParams *p = params_of(handle, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
	if (!p || !ret_event)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_event = p->eventWait.event;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *ret)
{
	const CUgraphNodeParams *p = params_of(handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	if (!p || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(ret, &p->alloc, sizeof(*ret));
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr *ret_address)
{
	const CUgraphNodeParams *p = params_of(handle, CU_GRAPH_NODE_TYPE_MEM_FREE);
	if (!p || !ret_address)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_address = p->free.dptr;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphBatchMemOpNodeGetParams(CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS *ret)
{
	const CUgraphNodeParams *p = params_of(handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
	if (!p || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(ret, &p->memOp, sizeof(*ret));
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
					   CUkernelNodeAttrValue *ret_value)
{
	(void)attribute;
	if (!params_of(handle, CU_GRAPH_NODE_TYPE_KERNEL) || !ret_value)
		return CUDA_ERROR_INVALID_VALUE;
	memset(ret_value, 0, sizeof(*ret_value));
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
					   const CUkernelNodeAttrValue *value)
{
	(void)attribute;
	return params_of(handle, CU_GRAPH_NODE_TYPE_KERNEL) && value ? CUDA_SUCCESS
								     : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from)
{
	return params_of(to, CU_GRAPH_NODE_TYPE_KERNEL) &&
			       params_of(from, CU_GRAPH_NODE_TYPE_KERNEL)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphNodeGetEnabled(CUgraphExec exec_handle, CUgraphNode handle,
				   unsigned int *ret_enabled)
{
	struct exec *exec = object_check(exec_handle, OBJECT_EXEC);
	struct graph_node *node =
		exec && node_of(handle) ? copied_node(exec->graph, node_of(handle)) : NULL;
	if (!node || !ret_enabled)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_enabled = !node->disabled;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeSetEnabled(CUgraphExec exec_handle, CUgraphNode handle,
				   unsigned int enabled)
{
	struct exec *exec = object_check(exec_handle, OBJECT_EXEC);
	struct graph_node *node =
		exec && node_of(handle) ? copied_node(exec->graph, node_of(handle)) : NULL;
	if (!node || node->params.type > CU_GRAPH_NODE_TYPE_MEMSET)
		return CUDA_ERROR_INVALID_VALUE;
	node->disabled = !enabled;
	return CUDA_SUCCESS;
}
