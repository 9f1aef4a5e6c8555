/*
 * Memory of graphs' allocation nodes. The address is known when the node is added; the device
 * memory is taken by the first launch, kept when the allocation is freed or the executable graph
 * destroyed, and returned by cuDeviceGraphMemTrim (all measured).
 */
#include "graph.h"
#include "entries.h"

#include <stdlib.h>

static struct graph_memory *memories;

CUresult graph_memory_add(struct graph_node *node)
{
	CUDA_MEM_ALLOC_NODE_PARAMS_v2 *p = &node->params.alloc;
	if (p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || !p->bytesize ||
	    p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	CUdevice device = p->poolProps.location.id;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (p->bytesize > sim_shared->machine.memory_bytes[sim.device[device].physical])
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct graph_memory *memory = node->graph->memory;
	if (!memory) {
		memory = calloc(1, sizeof(*memory));
		memory->device = device;
		memory->refs = 1;
		memory->next = memories;
		memories = memory;
		node->graph->memory = memory;
	}
	if (memory->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t span = round_up(p->bytesize, LARGE_PAGE);
	uint64_t base = space_map(span, false);
	if (!base)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory->bytes += span;
	node->range = range_new(RANGE_GRAPH, base, p->bytesize);
	node->range->span = span;
	node->range->device = device;
	node->range->freed = true; /* not allocated yet */
	node->range->graph_memory = memory;
	p->dptr = base;
	return CUDA_SUCCESS;
}

static void count_highs(struct device *d)
{
	if (d->graph_reserved > d->graph_reserved_high)
		d->graph_reserved_high = d->graph_reserved;
	if (d->graph_used > d->graph_used_high)
		d->graph_used_high = d->graph_used;
}

CUresult graph_memory_map(struct exec *exec)
{
	struct graph_memory *memory = exec->memory;
	if (!memory || memory->mapped)
		return CUDA_SUCCESS;
	struct device *d = &sim.device[memory->device];
	uint64_t idle = d->graph_reserved - d->graph_used;
	uint64_t take = memory->bytes > idle ? memory->bytes - idle : 0;
	if (take && !device_take(memory->device, take))
		if (!pools_trim_device(memory->device) || !device_take(memory->device, take))
			return CUDA_ERROR_OUT_OF_MEMORY;
	d->graph_reserved += take;
	d->graph_used += memory->bytes;
	count_highs(d);
	memory->mapped = true;
	return CUDA_SUCCESS;
}

/* Keeps the device memory for other graphs. */
static void unmap(struct graph_memory *memory)
{
	if (memory->mapped)
		sim.device[memory->device].graph_used -= memory->bytes;
	memory->mapped = false;
}

static void bury(struct graph_memory *memory)
{
	unmap(memory);
	for (struct graph_memory **at = &memories; *at; at = &(*at)->next) {
		if (*at != memory)
			continue;
		*at = memory->next;
		free(memory);
		return;
	}
}

static bool frees(const struct exec *exec, const struct range *range)
{
	for (const struct graph_node *node = exec->graph->first; node; node = node->next)
		if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
		    node->params.free.dptr == range->base)
			return true;
	return false;
}

CUresult graph_memory_check(struct exec *exec)
{
	for (struct graph_node *node = exec->graph->first; node; node = node->next) {
		if (node->params.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || node->range->freed)
			continue;
		if (!(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
			return CUDA_ERROR_INVALID_VALUE;
		graph_memory_free(node->range);
	}
	return CUDA_SUCCESS;
}

void graph_memory_begin(struct exec *exec)
{
	for (struct graph_node *node = exec->graph->first; node; node = node->next) {
		if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
		    !frees(exec, node->range)) {
			node->range->freed = false;
			exec->memory->live++;
		}
		struct range *range = node->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE
					      ? range_exact(node->params.free.dptr, RANGE_GRAPH)
					      : NULL;
		if (range && !range->freed)
			graph_memory_free(range);
	}
}

CUresult graph_memory_free(struct range *range)
{
	struct graph_memory *memory = range->graph_memory;
	if (range->freed)
		return CUDA_ERROR_INVALID_VALUE;
	range->freed = true;
	memory->live--;
	if (!memory->orphan)
		return CUDA_SUCCESS;
	range->charged = 0;
	linear_free(range);
	if (!memory->live)
		bury(memory);
	return CUDA_SUCCESS;
}

/* With its last user, addresses go too, except those of live allocations. */
void graph_memory_put(struct graph_memory *memory)
{
	if (!memory || --memory->refs)
		return;
	memory->orphan = true;
	for (size_t i = range_count(); i; i--) {
		struct range *range = range_number(i - 1);
		if (range && range->kind == RANGE_GRAPH && range->graph_memory == memory &&
		    range->freed)
			linear_free(range);
	}
	if (!memory->live)
		bury(memory);
}

CUresult sim_cuDeviceGraphMemTrim(CUdevice device)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&core_lock);
	for (struct graph_memory *memory = memories; memory; memory = memory->next)
		if (memory->device == device && !memory->live)
			unmap(memory);
	struct device *d = &sim.device[device];
	uint64_t idle = d->graph_reserved - d->graph_used;
	if (idle)
		device_give(device, idle);
	d->graph_reserved -= idle;
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
					  void *ret_value)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	const struct device *d = &sim.device[device];
	const uint64_t values[4] = {
		[CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT] = d->graph_used,
		[CU_GRAPH_MEM_ATTR_USED_MEM_HIGH] = d->graph_used_high,
		[CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT] = d->graph_reserved,
		[CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH] = d->graph_reserved_high,
	};
	if (!ret_value || (unsigned)attribute > 3)
		return CUDA_ERROR_INVALID_VALUE;
	*(cuuint64_t *)ret_value = values[attribute];
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
					  void *value)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct device *d = &sim.device[device];
	if (!value || *(cuuint64_t *)value)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		d->graph_used_high = d->graph_used;
	else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		d->graph_reserved_high = d->graph_reserved;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
