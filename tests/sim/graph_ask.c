/*
 * What a graph consists of: each call fills an array of at most *count handles, or only counts.
 */
#include "entries.h"
#include "graph.h"

#include <string.h>

struct list {
	CUgraphNode *out;
	size_t room, found;
};

static void list_put(struct list *list, struct graph_node *node)
{
	if (list->out && list->found < list->room)
		list->out[list->found] = (CUgraphNode)node;
	list->found++;
}

static void list_end(struct list *list, size_t *count)
{
	for (size_t i = list->found; list->out && i < list->room; i++)
		list->out[i] = NULL;
	*count = list->out && list->found > list->room ? list->room : list->found;
}

CUresult sim_cuGraphGetNodes(CUgraph handle, CUgraphNode *ret_nodes, size_t *count)
{
	struct graph *graph = graph_of(handle);
	if (!graph || !count)
		return CUDA_ERROR_INVALID_VALUE;
	struct list list = {ret_nodes, *count, 0};
	for (struct graph_node *node = graph->first; node; node = node->next)
		list_put(&list, node);
	list_end(&list, count);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphGetRootNodes(CUgraph handle, CUgraphNode *ret_nodes, size_t *count)
{
	struct graph *graph = graph_of(handle);
	if (!graph || !count)
		return CUDA_ERROR_INVALID_VALUE;
	struct list list = {ret_nodes, *count, 0};
	for (struct graph_node *node = graph->first; node; node = node->next)
		if (!node->dep_count)
			list_put(&list, node);
	list_end(&list, count);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphGetEdges_v2(CUgraph handle, CUgraphNode *ret_from, CUgraphNode *ret_to,
				CUgraphEdgeData *ret_data, size_t *count)
{
	struct graph *graph = graph_of(handle);
	if (!graph || !count || !ret_from != !ret_to)
		return CUDA_ERROR_INVALID_VALUE;
	struct list from = {ret_from, *count, 0}, to = {ret_to, *count, 0};
	size_t room = *count;
	for (struct graph_node *node = graph->first; node; node = node->next) {
		for (size_t i = 0; i < node->dep_count; i++) {
			list_put(&from, node->deps[i]);
			list_put(&to, node);
		}
	}
	list_end(&from, count);
	list_end(&to, count);
	if (ret_data && ret_from)
		memset(ret_data, 0, room * sizeof(*ret_data));
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphGetEdges(CUgraph handle, CUgraphNode *ret_from, CUgraphNode *ret_to,
			     size_t *count)
{
	return sim_cuGraphGetEdges_v2(handle, ret_from, ret_to, NULL, count);
}

CUresult sim_cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode *ret_nodes,
					   CUgraphEdgeData *ret_data, size_t *count)
{
	struct graph_node *node = node_of(handle);
	if (!node || !count)
		return CUDA_ERROR_INVALID_VALUE;
	struct list list = {ret_nodes, *count, 0};
	if (ret_data && ret_nodes)
		memset(ret_data, 0, *count * sizeof(*ret_data));
	for (size_t i = 0; i < node->dep_count; i++)
		list_put(&list, node->deps[i]);
	list_end(&list, count);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode *ret_nodes, size_t *count)
{
	return sim_cuGraphNodeGetDependencies_v2(handle, ret_nodes, NULL, count);
}

CUresult sim_cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode *ret_nodes,
					     CUgraphEdgeData *ret_data, size_t *count)
{
	struct graph_node *node = node_of(handle);
	if (!node || !count)
		return CUDA_ERROR_INVALID_VALUE;
	struct list list = {ret_nodes, *count, 0};
	if (ret_data && ret_nodes)
		memset(ret_data, 0, *count * sizeof(*ret_data));
	for (struct graph_node *other = node->graph->first; other; other = other->next)
		for (size_t i = 0; i < other->dep_count; i++)
			if (other->deps[i] == node)
				list_put(&list, other);
	list_end(&list, count);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetDependentNodes(CUgraphNode handle, CUgraphNode *ret_nodes, size_t *count)
{
	return sim_cuGraphNodeGetDependentNodes_v2(handle, ret_nodes, NULL, count);
}

CUresult sim_cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *ret_type)
{
	struct graph_node *node = node_of(handle);
	if (!node || !ret_type)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_type = node->params.type;
	return CUDA_SUCCESS;
}
