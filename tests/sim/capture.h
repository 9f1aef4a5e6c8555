/*
 * Stream capture, as capture.c, capture_node.c and capture_call.c share it; needs core_lock.
 */
#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include "graph.h"

struct capture {
	struct capture *next;
	uint64_t id;
	CUstreamCaptureMode mode;
	pthread_t thread;
	struct stream *origin;
	struct graph *graph;
	bool invalid;
	bool into_graph; /* the caller's graph, not ours to destroy */
};

extern struct capture *captures;

bool capture_lives(const struct capture *capture, uint64_t id);
CUresult capture_begin(struct stream *stream, CUstreamCaptureMode mode, struct graph *graph,
		       struct graph_node *const *deps, size_t dep_count);
CUresult capture_end(struct stream *stream, struct graph **ret_graph);
void capture_set_deps(struct stream *stream, struct graph_node *const *deps, size_t count);
/* Adds a node behind what the stream has captured so far. */
CUresult capture_add(struct stream *stream, CUgraphNodeParams *params,
		     struct graph_node **ret_node);

#endif
