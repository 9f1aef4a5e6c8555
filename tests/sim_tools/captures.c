/*
 * captures MODE(global|thread|relaxed) REPLAYS [open]
 *
 * Under a cap that binds: works for a while, so that launches wait, then captures 100 launches and a stream-ordered
 * allocation, instantiates the graph and replays it. Every call must succeed, and the capture must live: a quota that
 * queries, synchronises or sleeps on a capturing stream ends it. Prints the percentage of the time that the replays took.
 *
 * With "open" a capture is begun before anything else and left open while kernels run on another stream: their share is
 * printed, and the capture must be good at the end.
 */
#include <string.h>

#include "spin.h"

#define LAUNCHES 100
#define US	 10.0

/* Another stream captures nothing, and ends nothing of this one's. */
static void end_of_none(CUstream other)
{
	CUgraph none;

	if (cuStreamEndCapture(other, &none) == CUDA_SUCCESS) {
		fprintf(stderr, "a capture of another stream has ended\n");
		exit(1);
	}
}

static CUgraphExec capture(CUfunction spin, CUstream stream, CUstream other,
			   CUstreamCaptureMode mode)
{
	CUstreamCaptureStatus status;
	CUdeviceptr memory;
	CUgraph graph;
	CUgraphExec exec;
	size_t nodes = 0;

	must(cuStreamBeginCapture(stream, mode));
	end_of_none(other);
	must(cuMemAllocAsync(&memory, 1 << 20, stream));
	for (int i = 0; i < LAUNCHES; i++)
		spin_for(spin, US, stream);
	must(cuMemFreeAsync(memory, stream));
	must(cuStreamIsCapturing(stream, &status));
	if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
		fprintf(stderr, "the capture is in state %d\n", (int)status);
		exit(1);
	}
	must(cuStreamEndCapture(stream, &graph));
	must(cuGraphGetNodes(graph, NULL, &nodes));
	if (nodes != LAUNCHES + 2) {
		fprintf(stderr, "%zu nodes in the graph\n", nodes);
		exit(1);
	}
	must(cuGraphInstantiate(&exec, graph, 0));
	must(cuGraphDestroy(graph));
	return exec;
}

/* Kernels of 1 ms, eight under way, all of a kind never seen before the capture began. */
static double beside_an_open_capture(CUfunction spin, CUstream capturing, CUstream stream,
				     int count, CUstreamCaptureMode mode)
{
	CUstreamCaptureStatus status;
	CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUevent events[8];
	CUgraph graph;
	double from;

	for (int i = 0; i < 8; i++)
		must(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
	must(cuStreamBeginCapture(capturing, mode));
	spin_for(spin, US, capturing);
	/* What this program does itself is allowed to it. */
	must(cuThreadExchangeStreamCaptureMode(&relaxed));
	from = now_ms();
	for (int i = 0; i < count + 8; i++) {
		if (i >= 8)
			must(cuEventSynchronize(events[i % 8]));
		if (i >= count)
			continue;
		/* Its launches are as in a program that knows of no mode. */
		must(cuThreadExchangeStreamCaptureMode(&relaxed));
		spin_for(spin, 1000, stream);
		must(cuThreadExchangeStreamCaptureMode(&relaxed));
		must(cuEventRecord(events[i % 8], stream));
	}
	from = count * 100.0 / (now_ms() - from);
	must(cuThreadExchangeStreamCaptureMode(&relaxed));
	must(cuStreamIsCapturing(capturing, &status));
	if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
		fprintf(stderr, "the capture is in state %d\n", (int)status);
		exit(1);
	}
	must(cuStreamEndCapture(capturing, &graph));
	return from;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "global";
	int replays = argc > 2 ? atoi(argv[2]) : 1000;
	CUstreamCaptureMode mode = !strcmp(name, "thread")    ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
				   : !strcmp(name, "relaxed") ? CU_STREAM_CAPTURE_MODE_RELAXED
							      : CU_STREAM_CAPTURE_MODE_GLOBAL;
	CUstream stream, other;
	CUfunction spin;
	CUgraphExec exec;
	double from;

	use_device();
	spin = spin_kernel();
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	if (argc > 3) {
		printf("%.1f\n", beside_an_open_capture(spin, other, stream, replays, mode));
		return 0;
	}
	for (int i = 0; i < 200; i++)
		spin_for(spin, 500, i % 2 ? stream : other);
	exec = capture(spin, stream, other, mode); /* with work under way and debt behind it */
	must(cuCtxSynchronize());
	from = now_ms();
	for (int i = 0; i < replays; i++) {
		must(cuGraphLaunch(exec, stream));
		if (i % 8 == 7)
			must(cuStreamSynchronize(stream));
	}
	must(cuStreamSynchronize(stream));
	printf("%.1f\n", replays * LAUNCHES * US / 10 / (now_ms() - from));
	must(cuGraphExecDestroy(exec));
	must(cuStreamDestroy(stream));
	return 0;
}
