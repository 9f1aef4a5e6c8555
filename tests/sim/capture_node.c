/*
 * What a capturing stream does instead of doing it: each operation becomes a graph node.
 */
#include "capture.h"

#include <stdlib.h>
#include <string.h>

CUresult capture_add(struct stream *stream, CUgraphNodeParams *params, struct graph_node **ret_node)
{
	struct capture *capture = stream->capture;
	struct graph_node *node;
	if (capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	CUresult result = node_add(capture->graph, stream->capture_deps, stream->capture_dep_count,
				   params, &node);
	if (result != CUDA_SUCCESS)
		return result;
	capture_set_deps(stream, &node, 1);
	if (ret_node)
		*ret_node = node;
	return CUDA_SUCCESS;
}

static CUresult add(struct stream *stream, CUgraphNodeParams *params)
{
	pthread_mutex_lock(&core_lock);
	CUresult result = capture_add(stream, params, NULL);
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult capture_kernel(struct stream *stream, const struct launch *l)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
	p.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){
		.func = (CUfunction)l->function,
		.gridDimX = l->grid[0],
		.gridDimY = l->grid[1],
		.gridDimZ = l->grid[2],
		.blockDimX = l->block[0],
		.blockDimY = l->block[1],
		.blockDimZ = l->block[2],
		.sharedMemBytes = l->shared_bytes,
		.kernelParams = l->params,
		.extra = l->extra,
	};
	return add(stream, &p);
}

CUresult capture_host(struct stream *stream, CUhostFn function, void *user)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST};
	p.host = (CUDA_HOST_NODE_PARAMS_v2){function, user};
	return add(stream, &p);
}

CUresult capture_copy(struct stream *stream, const struct copy_rows *c)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
	p.memcpy.copyParams = (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = c->from,
		.srcPitch = c->from_pitch ? c->from_pitch : c->width,
		.srcHeight = c->from_pitch ? c->from_slice / c->from_pitch : c->height,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = c->to,
		.dstPitch = c->to_pitch ? c->to_pitch : c->width,
		.dstHeight = c->to_pitch ? c->to_slice / c->to_pitch : c->height,
		.WidthInBytes = c->width,
		.Height = c->height,
		.Depth = c->depth ? c->depth : 1,
	};
	return add(stream, &p);
}

CUresult capture_fill(struct stream *stream, const struct fill_rows *f)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
	p.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
		.dst = f->to,
		.pitch = f->to_pitch,
		.value = f->value,
		.elementSize = f->value_bytes,
		.width = f->width / f->value_bytes,
		.height = f->height,
	};
	return add(stream, &p);
}

CUresult capture_child(struct stream *stream, struct graph *graph)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
	p.graph.graph = (CUgraph)graph;
	return add(stream, &p);
}

CUresult capture_mem_op(struct stream *stream, const struct op *op)
{
	CUstreamBatchMemOpParams one;
	memset(&one, 0, sizeof(one));
	if (op->kind == OP_WAIT_VALUE) {
		one.operation =
			op->wide ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
		one.waitValue.address = op->address;
		one.waitValue.value64 = op->value;
		one.waitValue.flags = op->value_flags;
	} else {
		one.operation = op->wide ? CU_STREAM_MEM_OP_WRITE_VALUE_64
					 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
		one.writeValue.address = op->address;
		one.writeValue.value64 = op->value;
		one.writeValue.flags = op->value_flags;
	}
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
	p.memOp.count = 1;
	p.memOp.paramArray = &one;
	return add(stream, &p);
}

CUresult capture_alloc(struct stream *stream, uint64_t bytes, CUdevice device,
		       CUdeviceptr *ret_address)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	p.alloc.bytesize = bytes;
	p.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	p.alloc.poolProps.location.id = device;
	CUresult result = add(stream, &p);
	if (result == CUDA_SUCCESS)
		*ret_address = p.alloc.dptr;
	return result;
}

CUresult capture_free(struct stream *stream, CUdeviceptr address)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};
	p.free.dptr = address;
	pthread_mutex_lock(&core_lock);
	CUresult result = range_exact(address, RANGE_GRAPH) ? capture_add(stream, &p, NULL)
							    : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&core_lock);
	return result;
}

/* ---- events: inside a capture they only say what waits for what ---- */

CUresult capture_event_record(struct stream *stream, struct event *event, bool external)
{
	if (external) {
		CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
		p.eventRecord.event = (CUevent)event;
		return add(stream, &p);
	}
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&core_lock);
	if (stream->capture->invalid) {
		result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else {
		free(event->capture_nodes);
		size_t bytes = stream->capture_dep_count * sizeof(struct graph_node *);
		event->capture_nodes = malloc(bytes + sizeof(struct graph_node *));
		memcpy(event->capture_nodes, stream->capture_deps, bytes);
		event->capture_count = stream->capture_dep_count;
		event->capture = stream->capture;
		event->capture_id = stream->capture->id;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

/* The stream waits for the event's nodes too, joining the capture if it was in none. */
static CUresult join(struct stream *stream, struct event *event)
{
	size_t have = stream->capture == event->capture ? stream->capture_dep_count : 0;
	size_t count = 0;
	struct graph_node **deps =
		calloc(have + event->capture_count + 1, sizeof(struct graph_node *));
	for (size_t i = 0; i < have; i++)
		deps[count++] = stream->capture_deps[i];
	for (size_t i = 0; i < event->capture_count; i++) {
		size_t j = 0;
		while (j < count && deps[j] != event->capture_nodes[i])
			j++;
		if (j == count)
			deps[count++] = event->capture_nodes[i];
	}
	stream->capture = event->capture;
	capture_set_deps(stream, deps, count);
	free(deps);
	return CUDA_SUCCESS;
}

static CUresult wait_captured(struct stream *stream, struct event *event)
{
	if (!event->capture || !capture_lives(event->capture, event->capture_id)) {
		if (!stream->capture)
			return CUDA_ERROR_INVALID_VALUE;
		stream->capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	if (event->capture->invalid)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->capture && stream->capture != event->capture) {
		stream->capture->invalid = true;
		event->capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	return join(stream, event);
}

CUresult capture_event_wait(struct stream *stream, struct event *event, bool external)
{
	if (external && stream->capture) {
		CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
		p.eventWait.event = (CUevent)event;
		return add(stream, &p);
	}
	pthread_mutex_lock(&core_lock);
	CUresult result = stream->capture && stream->capture->invalid
				  ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
				  : wait_captured(stream, event);
	pthread_mutex_unlock(&core_lock);
	return result;
}
