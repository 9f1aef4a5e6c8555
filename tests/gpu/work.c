/*
 * A workload with a fixed amount of work per kernel, for measuring shares: share = rate / solo rate. A kernel that
 * spun on a clock would "finish" while other programs have the device and could not show a missing limiter.
 *
 * One binary for the real and the simulated GPU (sim_tools/spin_ptx.h).
 *
 *   work --us 94 --mode wait|queue|burst|streams|graph [--seconds 3] [--burst 20] [--grid 1056] [--block 256]
 *        [--start NS] [--label TEXT] [--idle-us N] [--settle S]
 *
 * With --settle the loop runs that long before it is measured: warm-up and its debt are over then.
 *
 * Prints one JSON line: launches, seconds, rate, longest gap between completions, variation of 100 ms windows.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../sim_tools/spin_ptx.h"

#define DRIVER(X) \
	X(cuInit) \
	X(cuDeviceGet) \
	X(cuDevicePrimaryCtxRetain) \
	X(cuCtxSetCurrent) \
	X(cuModuleLoadData) \
	X(cuModuleGetFunction) \
	X(cuLaunchKernel) \
	X(cuCtxSynchronize) \
	X(cuStreamCreate) \
	X(cuStreamSynchronize) \
	X(cuEventCreate) \
	X(cuEventRecord) \
	X(cuEventSynchronize) \
	X(cuStreamBeginCapture) \
	X(cuStreamEndCapture) \
	X(cuGraphInstantiateWithFlags) \
	X(cuGraphLaunch)

#define NAME_(x) #x
#define NAME(x)	 NAME_(x)
#define X(f)	 static __typeof__(f) *p_##f;
DRIVER(X)
#undef X

#define MAX_WINDOWS 4096
#define RING	    16

struct options {
	double us, seconds, idle_us, settle;
	const char *mode, *label;
	unsigned burst, grid, block;
	uint64_t start_ns;
};

struct result {
	uint64_t launches, longest_ns, began, last;
	unsigned windows;
	uint64_t window[MAX_WINDOWS];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void must(CUresult rc, const char *what)
{
	if (rc == CUDA_SUCCESS)
		return;
	fprintf(stderr, "work: %s: error %d\n", what, (int)rc);
	exit(1);
}

static void load_driver(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib) {
		fprintf(stderr, "work: %s\n", dlerror());
		exit(77);
	}
#define X(f) p_##f = (__typeof__(p_##f))dlsym(lib, NAME(f));
	DRIVER(X)
#undef X
}

/* `count` kernels more are known to be complete. */
static void completed(struct result *r, uint64_t count)
{
	uint64_t now = now_ns(), at = (now - r->began) / 100000000u;

	if (r->last && now - r->last > r->longest_ns)
		r->longest_ns = now - r->last;
	r->last = now;
	r->launches += count;
	if (at < MAX_WINDOWS) {
		r->window[at] += count;
		r->windows = (unsigned)at;
	}
}

static void launch(const struct options *o, CUfunction f, CUstream stream)
{
	unsigned long long ns = (unsigned long long)(o->us * 1000);
	void *params[] = {&ns};

	must(p_cuLaunchKernel(f, o->grid, 1, 1, o->block, 1, 1, 0, stream, params, NULL), "launch");
}

static int over(const struct options *o, const struct result *r)
{
	return (double)(now_ns() - r->began) >= o->seconds * 1e9;
}

static void idle(const struct options *o)
{
	struct timespec ts = {0, (long)(o->idle_us * 1000)};

	if (o->idle_us > 0)
		nanosleep(&ts, NULL);
}

/* Launch `burst` kernels, wait for them: 1 is the launch-and-wait loop. */
static void run_wait(const struct options *o, CUfunction f, CUstream s, unsigned burst,
		     struct result *r)
{
	while (!over(o, r)) {
		for (unsigned i = 0; i < burst; i++)
			launch(o, f, s);
		must(p_cuStreamSynchronize(s), "synchronize");
		completed(r, burst);
		idle(o);
	}
}

/* Keeps RING batches under way, round robin over `count` streams. */
static void run_queue(const struct options *o, CUfunction f, CUstream *streams, unsigned count,
		      struct result *r)
{
	unsigned batch = o->us >= 1000 ? 1 : o->us >= 200 ? 4 : 16;
	CUevent events[RING];
	uint64_t at = 0;

	for (int i = 0; i < RING; i++)
		must(p_cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING), "event");
	for (; !over(o, r); at++) {
		CUstream s = streams[at % count];

		if (at >= RING) {
			must(p_cuEventSynchronize(events[at % RING]), "event wait");
			completed(r, batch);
		}
		for (unsigned i = 0; i < batch; i++)
			launch(o, f, s);
		must(p_cuEventRecord(events[at % RING], s), "record");
	}
	must(p_cuCtxSynchronize(), "synchronize");
	completed(r, batch * (at < RING ? at : RING));
}

static void run_graph(const struct options *o, CUfunction f, CUstream s, struct result *r)
{
	CUgraph graph;
	CUgraphExec exec;

	must(p_cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), "capture");
	for (unsigned i = 0; i < o->burst; i++)
		launch(o, f, s);
	must(p_cuStreamEndCapture(s, &graph), "end capture");
	must(p_cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
	must(p_cuGraphLaunch(exec, s), "graph launch");
	must(p_cuStreamSynchronize(s), "synchronize");
	r->began = now_ns();
	r->last = 0;
	while (!over(o, r)) {
		must(p_cuGraphLaunch(exec, s), "graph launch");
		must(p_cuStreamSynchronize(s), "synchronize");
		completed(r, o->burst);
		idle(o);
	}
}

static void run(const struct options *o, CUfunction f, CUstream *streams, struct result *r)
{
	r->began = now_ns();
	if (!strcmp(o->mode, "wait"))
		run_wait(o, f, streams[0], 1, r);
	else if (!strcmp(o->mode, "burst"))
		run_wait(o, f, streams[0], o->burst, r);
	else if (!strcmp(o->mode, "queue"))
		run_queue(o, f, streams, 1, r);
	else if (!strcmp(o->mode, "streams"))
		run_queue(o, f, streams, 4, r);
	else
		run_graph(o, f, streams[0], r);
}

static void print(const struct options *o, const struct result *r)
{
	double seconds = (double)(r->last - r->began) / 1e9, mean = 0, var = 0;
	unsigned n = r->windows, first = 0; /* the last one is not whole */

	/* Nor are those before the first completion: a deep queue fills first. */
	while (first < n && !r->window[first])
		first++;
	first++;
	for (unsigned i = first; i < n; i++)
		mean += (double)r->window[i] / (n - first);
	for (unsigned i = first; i < n; i++)
		var += ((double)r->window[i] - mean) * ((double)r->window[i] - mean) / (n - first);
	printf("{\"label\":\"%s\",\"mode\":\"%s\",\"us\":%g,\"launches\":%llu,\"seconds\":%.4f,"
	       "\"rate\":%.3f,\"longest_ms\":%.3f,\"cv\":%.4f}\n",
	       o->label, o->mode, o->us, (unsigned long long)r->launches, seconds,
	       (double)r->launches / seconds, (double)r->longest_ns / 1e6,
	       mean > 0 ? sqrt(var) / mean : 0.0);
}

static struct options parse(int argc, char **argv)
{
	struct options o = {94, 3, 0, 0, "wait", "", 20, 1056, 256, 0};

	for (int i = 1; i + 1 < argc; i += 2) {
		const char *k = argv[i], *v = argv[i + 1];

		if (!strcmp(k, "--us"))
			o.us = atof(v);
		else if (!strcmp(k, "--seconds"))
			o.seconds = atof(v);
		else if (!strcmp(k, "--idle-us"))
			o.idle_us = atof(v);
		else if (!strcmp(k, "--settle"))
			o.settle = atof(v);
		else if (!strcmp(k, "--mode"))
			o.mode = v;
		else if (!strcmp(k, "--label"))
			o.label = v;
		else if (!strcmp(k, "--burst"))
			o.burst = (unsigned)atoi(v);
		else if (!strcmp(k, "--grid"))
			o.grid = (unsigned)atoi(v);
		else if (!strcmp(k, "--block"))
			o.block = (unsigned)atoi(v);
		else if (!strcmp(k, "--start"))
			o.start_ns = strtoull(v, NULL, 10);
		else {
			fprintf(stderr, "work: unknown option %s\n", k);
			exit(2);
		}
	}
	return o;
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);
	static struct result r;
	CUstream streams[4];
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction f;

	load_driver();
	must(p_cuInit(0), "cuInit");
	must(p_cuDeviceGet(&device, 0), "device");
	must(p_cuDevicePrimaryCtxRetain(&context, device), "context");
	must(p_cuCtxSetCurrent(context), "context");
	must(p_cuModuleLoadData(&module, spin_ptx), "module");
	must(p_cuModuleGetFunction(&f, module, "sim_spin"), "function");
	for (int i = 0; i < 4; i++)
		must(p_cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING), "stream");
	for (int i = 0; i < 8; i++)
		launch(&o, f, streams[i % 4]);
	must(p_cuCtxSynchronize(), "synchronize");
	while (now_ns() < o.start_ns)
		;
	if (o.settle > 0) {
		struct options before = o;

		before.seconds = o.settle;
		run(&before, f, streams, &r);
		memset(&r, 0, sizeof(r));
	}
	run(&o, f, streams, &r);
	print(&o, &r);
	return 0;
}
