/*
 * longer HOW(kernel|graph) SHORT_US LONG_US SECONDS
 *
 * Launches of one kind that change: for a second they take SHORT_US, then LONG_US: the same kernel in the same shape with
 * another argument, or a graph made where one was destroyed. Prints the percent of the device that the long ones had from their
 * second second on.
 */
#include <string.h>

#include "spin.h"

/* Launches in a row before it waits: some tens of milliseconds at most, so that the share is not one of lumps. */
#define DEPTH(us) ((us) < 5000 ? 8 : 2)

static CUgraphExec graph_of(CUfunction spin, double us, CUstream stream)
{
	CUgraphExec exec;
	CUgraph graph;

	must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	spin_for(spin, us, stream);
	must(cuStreamEndCapture(stream, &graph));
	must(cuGraphInstantiateWithFlags(&exec, graph, 0));
	must(cuGraphDestroy(graph));
	return exec;
}

/* Returns how many were launched after `skip_ms`. */
static unsigned run(CUfunction spin, int as_graph, double us, double ms, double skip_ms,
		    CUstream stream)
{
	CUgraphExec exec = as_graph ? graph_of(spin, us, stream) : NULL;
	double from = now_ms();
	unsigned count = 0;

	while (now_ms() < from + ms) {
		for (int i = 0; i < DEPTH(us); i++)
			if (as_graph)
				must(cuGraphLaunch(exec, stream));
			else
				spin_for(spin, us, stream);
		must(cuStreamSynchronize(stream));
		count += now_ms() > from + skip_ms ? DEPTH(us) : 0;
	}
	if (as_graph)
		must(cuGraphExecDestroy(exec));
	return count;
}

int main(int argc, char **argv)
{
	int as_graph = argc > 1 && !strcmp(argv[1], "graph");
	double short_us = argc > 2 ? atof(argv[2]) : 20, long_us = argc > 3 ? atof(argv[3]) : 20000;
	double ms = argc > 4 ? 1e3 * atof(argv[4]) : 4e3, from;
	unsigned count;
	CUstream stream;
	CUfunction spin;

	use_device();
	spin = spin_kernel();
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	run(spin, as_graph, short_us, 1000, 0, stream);
	from = now_ms();
	count = run(spin, as_graph, long_us, ms, 1000, stream);
	printf("%.1f\n", count * long_us / 10 / (now_ms() - from - 1000));
	return 0;
}
