/*
 * Graphs: nodes with their parameters in the driver API's own union, edges as lists of what a
 * node waits for. Executable graphs are deep copies. All of it needs core_lock.
 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "memory.h"
#include "module.h"

/* Device memory behind the allocation nodes of one graph; outlives it while an allocation lives. */
struct graph_memory {
	struct graph_memory *next;
	CUdevice device;
	uint64_t bytes;
	unsigned refs; /* the graph, and executable ones made of it */
	unsigned live; /* allocations that were made and not freed */
	bool mapped, orphan;
};

struct graph_node {
	struct object object;
	struct graph *graph;
	struct graph_node *next;
	struct graph_node **deps;
	size_t dep_count;
	CUgraphNodeParams params;
	struct graph_node *origin; /* in an executable graph: the node it was made from */
	struct function *function; /* kernels */
	uint64_t cost_ns;
	unsigned char *args; /* copies of kernel arguments, and pointers to them */
	void **arg_pointers;
	struct graph *child;
	struct range *range; /* allocations */
	bool disabled;
	bool external; /* event nodes of cuEventRecordWithFlags and the like */
	size_t mark;   /* of graph_order */
};

struct graph {
	struct object object;
	struct graph_node *first, **last;
	size_t count;
	struct graph_memory *memory;
	bool is_child;
	struct user_ref *users;
};

struct exec {
	struct object object;
	struct graph *graph;  /* a copy */
	struct graph *source; /* for its allocation nodes; only compared */
	struct context *context;
	unsigned long long flags;
	struct graph_memory *memory;
};

/* graph.c */
struct graph *graph_of(CUgraph handle);
struct graph_node *node_of(CUgraphNode handle);
struct graph *graph_new(void);
void graph_free(struct graph *graph);
struct graph *graph_copy(const struct graph *graph, bool for_exec);
void node_free(struct graph_node *node);
CUresult node_add(struct graph *graph, struct graph_node *const *deps, size_t dep_count,
		  CUgraphNodeParams *params, struct graph_node **ret_node);
CUresult node_depend(struct graph_node *node, struct graph_node *on);
struct graph_node *copied_node(const struct graph *copy, const struct graph_node *origin);
/* All nodes, none before what it waits for; malloc'ed. NULL when there is a cycle (or no node). */
struct graph_node **graph_order(struct graph *graph);

/* graph_set.c: what a node does, from the API's parameters; deep copies what they point to. */
CUresult node_set(struct graph_node *node, const CUgraphNodeParams *params);
void node_clear(struct graph_node *node);

/* graph_change.c: older forms of kernel parameters in the newest one */
CUDA_KERNEL_NODE_PARAMS_v3 params_of_kernel_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p);
CUDA_KERNEL_NODE_PARAMS_v3 params_of_kernel_v2(const CUDA_KERNEL_NODE_PARAMS_v2 *p);

/* user_object.c */
void users_release(struct graph *graph);

/* graph_memory.c */
CUresult graph_memory_add(struct graph_node *node);
void graph_memory_put(struct graph_memory *memory);
CUresult graph_memory_map(struct exec *exec);
/* Before and after a launch: allocations that are live forbid it, or become live. */
CUresult graph_memory_check(struct exec *exec);
void graph_memory_begin(struct exec *exec);

#endif
