/*
 * One call, COUNT times, and nothing else: for counting instructions (valgrind --tool=callgrind), where
 * the difference between COUNT and 2 x COUNT is what COUNT calls cost, start-up left out.
 *
 *   bench_paths launch|graph|alloc|pool|info COUNT
 */
#include "driver.h"

static CUstream stream;

static void launches(CUfunction function, unsigned count)
{
	__typeof__(&cuLaunchKernel) launch = DRIVER_ASKED(cuLaunchKernel);
	__typeof__(&cuStreamSynchronize) synchronize = DRIVER_ASKED(cuStreamSynchronize);
	unsigned long long work = 1000;
	void *params[] = {&work};

	for (unsigned i = 0; i < count; i++) {
		driver_must(launch(function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), "launch");
		if (i % 64 == 63)
			driver_must(synchronize(stream), "synchronize");
	}
}

static void graphs(CUfunction function, unsigned count)
{
	__typeof__(&cuGraphLaunch) launch = DRIVER_ASKED(cuGraphLaunch);
	CUgraphExec exec;
	CUgraph graph;

	driver_must(DRIVER_ASKED(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
		    "capture");
	launches(function, 8);
	driver_must(DRIVER_ASKED(cuStreamEndCapture)(stream, &graph), "end of capture");
	driver_must(DRIVER_ASKED(cuGraphInstantiateWithFlags)(&exec, graph, 0), "instantiate");
	for (unsigned i = 0; i < count; i++) {
		driver_must(launch(exec, stream), "graph launch");
		if (i % 16 == 15)
			driver_must(DRIVER_ASKED(cuStreamSynchronize)(stream), "synchronize");
	}
}

static void allocations(unsigned count)
{
	__typeof__(&cuMemAlloc) alloc = DRIVER_ASKED(cuMemAlloc);
	__typeof__(&cuMemFree) release = DRIVER_ASKED(cuMemFree);
	CUdeviceptr at;

	for (unsigned i = 0; i < count; i++) {
		driver_must(alloc(&at, 1 << 20), "cuMemAlloc");
		driver_must(release(at), "cuMemFree");
	}
}

static void pool(unsigned count)
{
	__typeof__(&cuMemAllocAsync) alloc = DRIVER_ASKED(cuMemAllocAsync);
	__typeof__(&cuMemFreeAsync) release = DRIVER_ASKED(cuMemFreeAsync);
	CUdeviceptr at;

	for (unsigned i = 0; i < count; i++) {
		driver_must(alloc(&at, 1 << 20, stream), "cuMemAllocAsync");
		driver_must(release(at, stream), "cuMemFreeAsync");
	}
}

static void information(unsigned count)
{
	__typeof__(&cuMemGetInfo) info = DRIVER_ASKED(cuMemGetInfo);
	size_t free_bytes, total_bytes;

	for (unsigned i = 0; i < count; i++)
		driver_must(info(&free_bytes, &total_bytes), "cuMemGetInfo");
}

int main(int argc, char **argv)
{
	unsigned count = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
	CUfunction function;

	if (!count) {
		fprintf(stderr, "usage: bench_paths launch|graph|alloc|pool|info COUNT\n");
		return 2;
	}
	function = driver_start();
	driver_must(DRIVER_ASKED(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), "stream");
	if (!strcmp(argv[1], "launch"))
		launches(function, count);
	else if (!strcmp(argv[1], "graph"))
		graphs(function, count);
	else if (!strcmp(argv[1], "alloc"))
		allocations(count);
	else if (!strcmp(argv[1], "pool"))
		pool(count);
	else if (!strcmp(argv[1], "info"))
		information(count);
	else
		return 2;
	return 0;
}
