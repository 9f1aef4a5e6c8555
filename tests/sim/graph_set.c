/*
 * What a graph node does: checking the API's parameters and copying what they point to.
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

void node_clear(struct graph_node *node)
{
	free(node->args);
	free(node->arg_pointers);
	node->args = NULL;
	node->arg_pointers = NULL;
	if (node->params.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		free(node->params.memOp.paramArray);
	if (node->params.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		node->params.memOp.paramArray = NULL;
}

/* Arguments by the sizes that the code names; of code that names none, the first eight bytes. */
static void copy_arguments(struct graph_node *node, const struct launch *l)
{
	const struct function_info *info = &l->function->info;
	CUDA_KERNEL_NODE_PARAMS_v3 *kernel = &node->params.kernel;
	if (!l->params) {
		kernel->kernelParams = NULL;
		return;
	}
	unsigned count = info->param_count ? info->param_count : info->spins ? 1 : 0;
	node->args = calloc(1, 8 + MOST_PARAMS * 8 + 4096);
	node->arg_pointers = calloc(count + 1, sizeof(void *));
	size_t at = 0;
	for (unsigned i = 0; i < count; i++) {
		size_t size = info->param_count ? info->param_size[i] : 8;
		at = round_up(at, 8);
		if (at + size > MOST_PARAMS * 8 + 4096)
			break;
		node->arg_pointers[i] = node->args + at;
		memcpy(node->args + at, l->params[i], size);
		at += size;
	}
	kernel->kernelParams = node->arg_pointers;
}

static CUresult set_kernel(struct graph_node *node, const CUDA_KERNEL_NODE_PARAMS_v3 *p)
{
	CUfunction handle = p->func ? p->func : (CUfunction)p->kern;
	struct launch l = {
		.grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
		.block = {p->blockDimX, p->blockDimY, p->blockDimZ},
		.shared_bytes = p->sharedMemBytes,
		.params = p->kernelParams,
		.extra = p->extra,
	};
	struct function *function = object_check(handle, OBJECT_FUNCTION);
	struct kernel *kernel = object_check(handle, OBJECT_KERNEL);
	if (kernel && context_current() && kernel_function(kernel, &function) != CUDA_SUCCESS)
		function = NULL;
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	l.function = function;
	CUresult result = launch_check(&l);
	if (result != CUDA_SUCCESS)
		return result;
	node->function = function;
	node->cost_ns = launch_cost(&l);
	node->params.kernel.func = (CUfunction)function;
	copy_arguments(node, &l);
	return CUDA_SUCCESS;
}

static CUresult set_memops(struct graph_node *node, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p)
{
	if (!p->count || p->count > 256 || !p->paramArray)
		return CUDA_ERROR_INVALID_VALUE;
	size_t bytes = p->count * sizeof(p->paramArray[0]);
	node->params.memOp.paramArray = malloc(bytes);
	memcpy(node->params.memOp.paramArray, p->paramArray, bytes);
	return CUDA_SUCCESS;
}

static CUresult set_memset(const CUDA_MEMSET_NODE_PARAMS_v2 *p)
{
	if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
		return CUDA_ERROR_INVALID_VALUE;
	return p->dst && range_at(p->dst) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_child(struct graph_node *node, const CUDA_CHILD_GRAPH_NODE_PARAMS *p)
{
	struct graph *child = graph_of(p->graph);
	if (!child || child == node->graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (node->child)
		graph_free(node->child);
	node->child = graph_copy(child, false);
	node->child->is_child = true;
	node->params.graph.graph = (CUgraph)node->child;
	return CUDA_SUCCESS;
}

CUresult node_set(struct graph_node *node, const CUgraphNodeParams *params)
{
	struct graph_node old = *node;
	CUresult result = CUDA_SUCCESS;
	node->args = NULL;
	node->arg_pointers = NULL;
	node->params = *params;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: result = set_kernel(node, &params->kernel); break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: result = set_memops(node, &params->memOp); break;
	case CU_GRAPH_NODE_TYPE_MEMSET: result = set_memset(&params->memset); break;
	case CU_GRAPH_NODE_TYPE_GRAPH: result = set_child(node, &params->graph); break;
	case CU_GRAPH_NODE_TYPE_HOST:
		result = params->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		result = object_check(params->eventWait.event, OBJECT_EVENT)
				 ? CUDA_SUCCESS
				 : CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE: break;
	default: result = CUDA_ERROR_NOT_SUPPORTED; break;
	}
	if (result != CUDA_SUCCESS) {
		struct graph *child = node->child;
		*node = old;
		node->child = child;
	} else {
		node_clear(&old);
	}
	return result;
}
