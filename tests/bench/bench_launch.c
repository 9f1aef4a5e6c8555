/*
 * What an interposer adds to a launch: batches through the address that a program gets and batches
 * through the driver's own, in turn, in one process. Without a preloaded library both are the same
 * address, and the difference is the method's own noise.
 *
 *   bench_launch [--what kernel|graph] [--seconds 2] [--batch 64] [--nodes 20]
 *
 * One JSON line: raw_ns and asked_ns of single launches; of neighbouring batches the difference of medians
 * (added_ns) and of means (added_mean_ns, which holds the launches that are timed or made to wait).
 */
#include "driver.h"
#include "samples.h"

struct options {
	const char *what;
	double seconds;
	unsigned batch, nodes;
};

struct subject {
	CUfunction function;
	CUgraphExec graph;
	CUstream stream;
	__typeof__(&cuLaunchKernel) launch;
	__typeof__(&cuGraphLaunch) launch_graph;
	__typeof__(&cuStreamSynchronize) synchronize;
};

static struct samples raw_ns, asked_ns, added_ns, added_mean_ns;

static void launch(const struct subject *s)
{
	unsigned long long work = 1;
	void *params[] = {&work};

	driver_must(s->graph
			    ? s->launch_graph(s->graph, s->stream)
			    : s->launch(s->function, 1, 1, 1, 32, 1, 1, 0, s->stream, params, NULL),
		    "launch");
}

struct batch {
	double median_ns, mean_ns;
};

/* Each launch timed on its own, the wait for the device not included. */
static struct batch batch(const struct subject *s, const struct options *o, struct samples *all)
{
	static struct samples own;
	uint64_t last = driver_now_ns(), began = last, now = last;
	struct batch ret;

	own.count = 0;
	for (unsigned i = 0; i < o->batch; i++) {
		launch(s);
		now = driver_now_ns();
		samples_add(&own, (double)(now - last));
		samples_add(all, (double)(now - last));
		last = now;
	}
	driver_must(s->synchronize(s->stream), "synchronize");
	samples_sort(&own);
	ret.median_ns = samples_at(&own, 0.5);
	ret.mean_ns = (double)(now - began) / o->batch;
	return ret;
}

static CUgraphExec capture(const struct subject *s, unsigned nodes)
{
	CUgraphExec exec;
	CUgraph graph;

	driver_must(DRIVER_ASKED(cuStreamBeginCapture)(s->stream, CU_STREAM_CAPTURE_MODE_RELAXED),
		    "capture");
	for (unsigned i = 0; i < nodes; i++)
		launch(s);
	driver_must(DRIVER_ASKED(cuStreamEndCapture)(s->stream, &graph), "end of capture");
	driver_must(DRIVER_ASKED(cuGraphInstantiateWithFlags)(&exec, graph, 0), "instantiate");
	return exec;
}

static void compare(const struct subject *asked, const struct subject *raw, const struct options *o)
{
	uint64_t end;

	for (int i = 0; i < 20; i++) { /* learn, warm up; thrown away */
		batch(raw, o, &raw_ns);
		batch(asked, o, &asked_ns);
	}
	raw_ns.count = asked_ns.count = 0;
	end = driver_now_ns() + (uint64_t)(o->seconds * 1e9);
	for (unsigned i = 0; driver_now_ns() < end; i++) {
		struct batch a, r;

		if (i & 1) {
			r = batch(raw, o, &raw_ns);
			a = batch(asked, o, &asked_ns);
		} else {
			a = batch(asked, o, &asked_ns);
			r = batch(raw, o, &raw_ns);
		}
		samples_add(&added_ns, a.median_ns - r.median_ns);
		samples_add(&added_mean_ns, a.mean_ns - r.mean_ns);
	}
}

static struct options parse(int argc, char **argv)
{
	struct options o = {"kernel", 2, 64, 20};

	for (int i = 1; i + 1 < argc; i += 2) {
		const char *k = argv[i], *v = argv[i + 1];

		if (!strcmp(k, "--what"))
			o.what = v;
		else if (!strcmp(k, "--seconds"))
			o.seconds = atof(v);
		else if (!strcmp(k, "--batch"))
			o.batch = (unsigned)atoi(v);
		else if (!strcmp(k, "--nodes"))
			o.nodes = (unsigned)atoi(v);
		else {
			fprintf(stderr, "bench_launch: unknown option %s\n", k);
			exit(2);
		}
	}
	return o;
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);
	struct subject asked = {.function = driver_start()}, raw;

	driver_must(DRIVER_ASKED(cuStreamCreate)(&asked.stream, CU_STREAM_NON_BLOCKING), "stream");
	asked.launch = DRIVER_ASKED(cuLaunchKernel);
	asked.launch_graph = DRIVER_ASKED(cuGraphLaunch);
	asked.synchronize = DRIVER_ASKED(cuStreamSynchronize);
	if (!strcmp(o.what, "graph"))
		asked.graph = capture(&asked, o.nodes);
	raw = asked;
	raw.launch = DRIVER_RAW(cuLaunchKernel);
	raw.launch_graph = DRIVER_RAW(cuGraphLaunch);
	if (!raw.launch || !raw.launch_graph) {
		fprintf(stderr, "bench_launch: cannot find the driver's own entry points\n");
		return 1;
	}
	compare(&asked, &raw, &o);
	printf("{\"what\":\"%s\",\"interposed\":%s,\"batch\":%u,", o.what,
	       asked.launch != raw.launch ? "true" : "false", o.batch);
	samples_print("raw_ns", &raw_ns);
	printf(",");
	samples_print("asked_ns", &asked_ns);
	printf(",");
	samples_print("added_ns", &added_ns);
	printf(",");
	samples_print("added_mean_ns", &added_mean_ns);
	printf("}\n");
	return 0;
}
