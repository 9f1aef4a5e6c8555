/*
 * Memory that graphs take. Nodes reserve addresses when they are made; memory comes from the device's graph
 * pool when an executable graph is launched or uploaded, and stays there until it is trimmed.
 *
 * What an executable graph may take is added up when it is instantiated; launching it holds that much (less what the
 * pool has to spare), and afterwards the pool's own figure is the charge.
 */
#include "hooks/capture.h"
#include "hooks/graph_mem.h"
#include "hooks/launch.h"
#include "hooks/local_memory.h"
#include "hooks/mem_pool.h"
#include "memory/arena.h"

_Atomic uint32_t graph_mem_graphs;

/* The device's graph pool is one more pool, whose handle no program can have. */
static uint64_t graph_handle(unsigned device)
{
	return device + 1; /* pool handles are pointers */
}

static struct pool *graph_pool(struct memory *memory, struct device_tenant *tenant)
{
	uint64_t handle = graph_handle((unsigned)tenant->ordinal);
	struct pool *pool = pools_find(&memory->pools, handle);

	if (!pool) {
		pool = pools_enter(&memory->pools, handle, &tenant->member,
				   (unsigned)tenant->ordinal, CHARGE_GRAPH);
		if (pool)
			atomic_store(&pool->granule, BLOCK_BYTES);
	}
	return pool;
}

static uint64_t figure(const struct device_tenant *tenant, CUgraphMem_attribute attribute,
		       uint64_t otherwise)
{
	cuuint64_t bytes = 0;

	if (!real.cuDeviceGetGraphMemAttribute ||
	    real.cuDeviceGetGraphMemAttribute(tenant->device, attribute, &bytes) != CUDA_SUCCESS)
		return otherwise;
	return bytes;
}

static int settle(struct pool *pool, struct device_tenant *tenant, uint64_t held,
		  struct refusal *ret)
{
	uint64_t unknown = atomic_load(&pool->snapshot) + held;

	return pool_settle(pool, held,
			   figure(tenant, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, unknown), ret);
}

void graph_mem_refresh(struct memory *memory, struct device_tenant *tenant, int trim)
{
	struct pool *pool;

	if (!graph_mem_any())
		return;
	pool = pools_find(&memory->pools, graph_handle((unsigned)tenant->ordinal));
	if (!pool || !atomic_load(&pool->snapshot))
		return;
	if (trim) {
		CUstreamCaptureMode mode = capture_relax();

		real.cuDeviceGraphMemTrim(tenant->device);
		capture_restore(mode);
	}
	settle(pool, tenant, 0, NULL);
}

/* ---- what a graph may take ------------------------------------------------------------------------ */

struct graph_need {
	uint64_t bytes;
	CUresult frames; /* out of memory when a kernel's frame does not fit */
	int device; /* of its nodes; -1 none. Several devices: the first one's (see docs/memory.md) */
};

static void add_graph(CUgraph graph, struct graph_need *demand, unsigned depth);

/* Its frame is memory too, from the first launch on. */
static void add_kernel(CUgraphNode node, struct graph_need *demand)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params;

	if (demand->frames != CUDA_SUCCESS || !real.cuGraphKernelNodeGetParams_v2 ||
	    real.cuGraphKernelNodeGetParams_v2(node, &params) != CUDA_SUCCESS)
		return;
	demand->frames =
		local_memory_before_launch(params.func ? params.func : (CUfunction)params.kern);
}

static void add_node(CUgraphNode node, struct graph_need *demand, unsigned depth)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	CUgraphNodeType type;
	CUgraph child;

	if (real.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS)
		return;
	if (type == CU_GRAPH_NODE_TYPE_KERNEL)
		add_kernel(node, demand);
	if (type == CU_GRAPH_NODE_TYPE_GRAPH && depth &&
	    real.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
		add_graph(child, demand, depth - 1);
	if (type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	    real.cuGraphMemAllocNodeGetParams(node, &params) != CUDA_SUCCESS ||
	    params.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return;
	demand->bytes += blocks_round(params.bytesize);
	if (demand->device < 0)
		demand->device = params.poolProps.location.id;
}

static void add_graph(CUgraph graph, struct graph_need *demand, unsigned depth)
{
	size_t count = 0, bytes;
	CUgraphNode *nodes;

	if (real.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || !count)
		return;
	bytes = count * sizeof(*nodes);
	nodes = arena_map(bytes);
	if (!nodes)
		return;
	if (real.cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS)
		for (size_t i = 0; i < count; i++)
			add_node(nodes[i], demand, depth);
	arena_unmap(nodes, bytes);
}

static struct graph_need demand_of(CUgraph graph)
{
	struct graph_need demand = {0, CUDA_SUCCESS, -1};

	if (real.cuGraphGetNodes && real.cuGraphNodeGetType && real.cuGraphMemAllocNodeGetParams &&
	    real.cuGraphChildGraphNodeGetGraph)
		add_graph(graph, &demand, 8);
	return demand;
}

static void remember(struct memory *memory, CUgraphExec exec, const struct graph_need *demand)
{
	struct charge old, entry = {.key = (uint64_t)(uintptr_t)exec,
				    .bytes = demand->bytes,
				    .refs = 1,
				    .space = AT_EXEC,
				    .device = (uint8_t)demand->device};

	charges_put(memory->charges, &entry, &old);
	atomic_fetch_add_explicit(&graph_mem_graphs, 1, memory_order_relaxed);
}

static CUresult instantiated(CUgraphExec *exec, CUgraph graph, CUresult result)
{
	struct memory *memory = result == CUDA_SUCCESS ? mem_of_process() : NULL;
	struct graph_need demand;

	if (!memory)
		return result;
	launch_graph_made(*exec);
	demand = demand_of(graph);
	if (demand.frames != CUDA_SUCCESS) {
		real.cuGraphExecDestroy(*exec);
		return demand.frames;
	}
	if (demand.device >= 0 && demand.device < TENANT_DEVICES)
		remember(memory, *exec, &demand);
	return result;
}

/* ---- launching ------------------------------------------------------------------------------------ */

/* Holds what the graph pool may have to grow by. CUDA_SUCCESS, or out of memory. */
static CUresult hold(struct memory *memory, struct graph_launch *launch, unsigned device,
		     uint64_t bytes)
{
	struct mem_call call = {.memory = memory, .asked_bytes = bytes};
	struct mem_want want;
	struct relief relief;
	uint64_t used, reserved, spare, growth, others = 0;
	unsigned attempt = 0;

	launch->memory = NULL;
	launch->tenant = call.tenant = tenant_of_device((CUdevice)device);
	launch->pool = launch->tenant ? graph_pool(memory, launch->tenant) : NULL;
	if (!launch->pool)
		return CUDA_SUCCESS;
	do {
		reserved = figure(launch->tenant, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, 0);
		used = figure(launch->tenant, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, reserved);
		spare = reserved > used ? reserved - used : 0;
		growth = bytes > spare ? bytes - spare : 0;
		want = (struct mem_want){launch->tenant, growth, 0};
		relief = mem_relief(memory, &want);
	} while (growth && hold_is_short(launch->pool->member, growth, &relief, &others) &&
		 mem_give_up(&want, attempt++));
	if (growth && pool_hold(launch->pool, growth, others, &call.refusal))
		return mem_refuse(&call);
	launch->held = growth;
	launch->memory = memory;
	return CUDA_SUCCESS;
}

CUresult graph_mem_before_launch(CUgraphExec exec, struct graph_launch *launch)
{
	struct memory *memory;
	struct charge entry;

	launch->memory = NULL;
	if (!graph_mem_any())
		return CUDA_SUCCESS;
	memory = mem_of_process();
	if (!memory || charges_get(memory->charges, AT_EXEC, (uint64_t)(uintptr_t)exec, &entry))
		return CUDA_SUCCESS;
	return hold(memory, launch, entry.device, entry.bytes);
}

void graph_mem_after_launch(struct graph_launch *launch)
{
	if (launch->memory)
		settle(launch->pool, launch->tenant, launch->held, NULL);
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
	struct graph_launch launch;
	CUresult result = graph_mem_before_launch(hGraphExec, &launch);

	if (result != CUDA_SUCCESS)
		return result;
	result = real.cuGraphUpload(hGraphExec, hStream);
	graph_mem_after_launch(&launch);
	return result;
}

CUresult cuGraphUpload_ptsz(CUgraphExec hGraphExec, CUstream hStream)
{
	struct graph_launch launch;
	CUresult result = graph_mem_before_launch(hGraphExec, &launch);

	if (result != CUDA_SUCCESS)
		return result;
	result = real.cuGraphUpload_ptsz(hGraphExec, hStream);
	graph_mem_after_launch(&launch);
	return result;
}

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
			    char *logBuffer, size_t bufferSize)
{
	return instantiated(
		phGraphExec, hGraph,
		real.cuGraphInstantiate(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize));
}

CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
			       char *logBuffer, size_t bufferSize)
{
	return instantiated(phGraphExec, hGraph,
			    real.cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer,
						       bufferSize));
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph,
				     unsigned long long flags)
{
	return instantiated(phGraphExec, hGraph,
			    real.cuGraphInstantiateWithFlags(phGraphExec, hGraph, flags));
}

/* With CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD the memory is taken in this very call. */
static CUresult upload_begin(CUgraph graph, const CUDA_GRAPH_INSTANTIATE_PARAMS *params,
			     struct graph_launch *launch)
{
	struct memory *memory;
	struct graph_need demand;

	launch->memory = NULL;
	if (!params || !(params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD))
		return CUDA_SUCCESS;
	memory = mem_of_process();
	if (!memory)
		return CUDA_SUCCESS;
	demand = demand_of(graph);
	if (demand.device < 0 || demand.device >= TENANT_DEVICES)
		return CUDA_SUCCESS;
	return hold(memory, launch, (unsigned)demand.device, demand.bytes);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
				      CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	struct graph_launch launch;
	CUresult result = upload_begin(hGraph, instantiateParams, &launch);

	if (result != CUDA_SUCCESS)
		return result;
	result = real.cuGraphInstantiateWithParams(phGraphExec, hGraph, instantiateParams);
	graph_mem_after_launch(&launch);
	return instantiated(phGraphExec, hGraph, result);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
					   CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	struct graph_launch launch;
	CUresult result = upload_begin(hGraph, instantiateParams, &launch);

	if (result != CUDA_SUCCESS)
		return result;
	result = real.cuGraphInstantiateWithParams_ptsz(phGraphExec, hGraph, instantiateParams);
	graph_mem_after_launch(&launch);
	return instantiated(phGraphExec, hGraph, result);
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	struct memory *memory = graph_mem_any() ? mem_of_process() : NULL;
	struct device_tenant *tenant;
	struct charge entry;
	CUresult result;

	if (!memory ||
	    charges_take(memory->charges, AT_EXEC, (uint64_t)(uintptr_t)hGraphExec, &entry))
		return real.cuGraphExecDestroy(hGraphExec);
	result = real.cuGraphExecDestroy(hGraphExec);
	if (result != CUDA_SUCCESS)
		memory_put_back(memory, &entry);
	tenant = tenant_of_device(entry.device);
	if (tenant)
		graph_mem_refresh(memory, tenant, 0);
	return result;
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	struct memory *memory = mem_of_process();
	CUresult result = real.cuDeviceGraphMemTrim(device);
	struct device_tenant *tenant = memory ? tenant_of_device(device) : NULL;

	if (tenant)
		graph_mem_refresh(memory, tenant, 0);
	return result;
}
