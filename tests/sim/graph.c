/*
 * Graphs as data: creation, nodes, edges, copies, order.
 */
#include "graph.h"
#include "entries.h"

#include <stdlib.h>

struct graph *graph_of(CUgraph handle)
{
	return object_check(handle, OBJECT_GRAPH);
}

struct graph_node *node_of(CUgraphNode handle)
{
	return object_check(handle, OBJECT_NODE);
}

struct graph *graph_new(void)
{
	struct graph *graph = object_new(OBJECT_GRAPH, sizeof(*graph));
	graph->last = &graph->first;
	return graph;
}

void node_free(struct graph_node *node)
{
	node_clear(node);
	if (node->child)
		graph_free(node->child);
	free(node->deps);
	object_destroy(node);
}

void graph_free(struct graph *graph)
{
	graph_memory_put(graph->memory);
	while (graph->first) {
		struct graph_node *node = graph->first;
		graph->first = node->next;
		node_free(node);
	}
	users_release(graph);
	object_destroy(graph);
}

CUresult node_depend(struct graph_node *node, struct graph_node *on)
{
	for (size_t i = 0; i < node->dep_count; i++)
		if (node->deps[i] == on)
			return CUDA_SUCCESS;
	struct graph_node **more =
		realloc(node->deps, (node->dep_count + 1) * sizeof(struct graph_node *));
	if (!more)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->deps = more;
	node->deps[node->dep_count++] = on;
	return CUDA_SUCCESS;
}

CUresult node_add(struct graph *graph, struct graph_node *const *deps, size_t dep_count,
		  CUgraphNodeParams *params, struct graph_node **ret_node)
{
	for (size_t i = 0; i < dep_count; i++)
		if (!object_check(deps[i], OBJECT_NODE) || deps[i]->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	struct graph_node *node = object_new(OBJECT_NODE, sizeof(*node));
	node->graph = graph;
	CUresult result = node_set(node, params);
	if (result == CUDA_SUCCESS && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
		result = graph_memory_add(node);
		params->alloc.dptr = node->params.alloc.dptr;
	}
	if (result != CUDA_SUCCESS) {
		node_free(node);
		return result;
	}
	for (size_t i = 0; i < dep_count; i++)
		node_depend(node, deps[i]);
	*graph->last = node;
	graph->last = &node->next;
	graph->count++;
	*ret_node = node;
	return CUDA_SUCCESS;
}

struct graph_node *copied_node(const struct graph *copy, const struct graph_node *origin)
{
	for (struct graph_node *node = copy->first; node; node = node->next)
		if (node->origin == origin)
			return node;
	return NULL;
}

struct graph *graph_copy(const struct graph *graph, bool for_exec)
{
	struct graph *copy = graph_new();
	for (struct graph_node *from = graph->first; from; from = from->next) {
		struct graph_node *node = object_new(OBJECT_NODE, sizeof(*node));
		node->graph = copy;
		node->origin = from;
		node_set(node, &from->params);
		node->external = from->external;
		node->disabled = from->disabled;
		if (for_exec)
			node->range = from->range;
		*copy->last = node;
		copy->last = &node->next;
		copy->count++;
	}
	for (struct graph_node *node = copy->first; node; node = node->next)
		for (size_t i = 0; i < node->origin->dep_count; i++)
			node_depend(node, copied_node(copy, node->origin->deps[i]));
	return copy;
}

struct graph_node **graph_order(struct graph *graph)
{
	struct graph_node **order = calloc(graph->count + 1, sizeof(struct graph_node *));
	size_t done = 0;
	for (struct graph_node *node = graph->first; node; node = node->next)
		node->mark = 0;
	for (bool moved = true; moved && done < graph->count;) {
		moved = false;
		for (struct graph_node *node = graph->first; node; node = node->next) {
			size_t i = 0;
			while (!node->mark && i < node->dep_count && node->deps[i]->mark)
				i++;
			if (node->mark || i < node->dep_count)
				continue;
			order[done++] = node;
			node->mark = done;
			moved = true;
		}
	}
	if (done == graph->count)
		return order;
	free(order);
	return NULL;
}

CUresult sim_cuGraphCreate(CUgraph *ret_graph, unsigned int flags)
{
	if (!ret_graph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	*ret_graph = (CUgraph)graph_new();
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphDestroy(CUgraph handle)
{
	struct graph *graph = graph_of(handle);
	if (!graph || graph->is_child)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	graph_free(graph);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

static bool has_memory(const struct graph *graph)
{
	for (struct graph_node *node = graph->first; node; node = node->next)
		if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
		    node->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
			return true;
	return false;
}

CUresult sim_cuGraphClone(CUgraph *ret_graph, CUgraph handle)
{
	struct graph *graph = graph_of(handle);
	if (!graph || !ret_graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (has_memory(graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&core_lock);
	*ret_graph = (CUgraph)graph_copy(graph, false);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeFindInClone(CUgraphNode *ret_node, CUgraphNode original, CUgraph clone)
{
	struct graph *graph = graph_of(clone);
	if (!ret_node || !graph || !node_of(original))
		return CUDA_ERROR_INVALID_VALUE;
	struct graph_node *node = copied_node(graph, node_of(original));
	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_node = (CUgraphNode)node;
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphDestroyNode(CUgraphNode handle)
{
	struct graph_node *node = node_of(handle);
	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	    node->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&core_lock);
	struct graph *graph = node->graph;
	for (struct graph_node *other = graph->first; other; other = other->next) {
		size_t kept = 0;
		for (size_t i = 0; i < other->dep_count; i++)
			if (other->deps[i] != node)
				other->deps[kept++] = other->deps[i];
		other->dep_count = kept;
	}
	struct graph_node **at = &graph->first;
	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	if (graph->last == &node->next)
		graph->last = at;
	graph->count--;
	node_free(node);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

/* ---- edges ---- */

CUresult sim_cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode *from,
				       const CUgraphNode *to, const CUgraphEdgeData *data,
				       size_t count)
{
	struct graph *graph = graph_of(handle);
	(void)data;
	if (!graph || (count && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		struct graph_node *a = node_of(from[i]), *b = node_of(to[i]);
		if (!a || !b || a == b || a->graph != graph || b->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_lock(&core_lock);
	for (size_t i = 0; i < count; i++)
		node_depend(node_of(to[i]), node_of(from[i]));
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphAddDependencies(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
				    size_t count)
{
	return sim_cuGraphAddDependencies_v2(handle, from, to, NULL, count);
}

CUresult sim_cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode *from,
					  const CUgraphNode *to, const CUgraphEdgeData *data,
					  size_t count)
{
	struct graph *graph = graph_of(handle);
	(void)data;
	if (!graph || (count && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	for (size_t i = 0; i < count; i++) {
		struct graph_node *node = node_of(to[i]);
		size_t kept = 0;
		for (size_t j = 0; node && j < node->dep_count; j++)
			if ((CUgraphNode)node->deps[j] != from[i])
				node->deps[kept++] = node->deps[j];
		if (node)
			node->dep_count = kept;
	}
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuGraphRemoveDependencies(CUgraph handle, const CUgraphNode *from,
				       const CUgraphNode *to, size_t count)
{
	return sim_cuGraphRemoveDependencies_v2(handle, from, to, NULL, count);
}
