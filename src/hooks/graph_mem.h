/*
 * Memory that graphs take: nodes that allocate are backed from a pool per device, at launch (or upload).
 *
 * The launch hooks call these around the driver's launch; one hash look-up for a graph that does not allocate, and
 * nothing at all while no such graph was ever instantiated.
 */
#ifndef CUOTA_HOOKS_GRAPH_MEM_H
#define CUOTA_HOOKS_GRAPH_MEM_H

#include "hooks/mem_call.h"

extern _Atomic uint32_t graph_mem_graphs; /* that allocate, ever instantiated */

/* 0: no launch need look. */
static inline int graph_mem_any(void)
{
	return atomic_load_explicit(&graph_mem_graphs, memory_order_relaxed) != 0;
}

struct graph_launch {
	struct memory *memory; /* NULL: this graph takes no memory */
	struct pool *pool;
	struct device_tenant *tenant;
	uint64_t held;
};

/* CUDA_SUCCESS: go on (and call graph_mem_after_launch); CUDA_ERROR_OUT_OF_MEMORY: return that instead. */
CUresult graph_mem_before_launch(CUgraphExec exec, struct graph_launch *launch);
void graph_mem_after_launch(struct graph_launch *launch);

/* What the device's graph pool reserves now becomes its charge; with trim, after giving back what it can. */
void graph_mem_refresh(struct memory *memory, struct device_tenant *tenant, int trim);

#endif
