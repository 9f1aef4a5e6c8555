/*
 * A service: a request arrives every --period-us whether or not the last one is done, starts --kernels
 * kernels of --us each and is answered when they have run. Latency counts from the arrival on the
 * schedule, not from when the program got round to it. With --period-us 0 the next request follows the
 * answer (a closed loop), and --window-ms prints how much work each window completed.
 *
 *   bench_request [--us 20] [--kernels 25] [--period-us 5000] [--seconds 3] [--start NS] [--window-ms 0]
 *                 [--grid 1056] [--block 256] [--label TEXT]
 *
 * One JSON line. Work per kernel is fixed: a service that waits for the device is late, it does less.
 */
#include "driver.h"
#include "samples.h"

#define WINDOWS_MAX 2048
#define BEHIND_MAX  20 /* more periods late than this: arrivals are dropped and counted */

struct options {
	double us, period_us, seconds, window_ms;
	unsigned kernels, grid, block;
	uint64_t start_ns;
	const char *label;
};

struct service {
	CUfunction function;
	CUstream stream;
	__typeof__(&cuLaunchKernel) launch;
	__typeof__(&cuStreamSynchronize) synchronize;
	uint64_t began_ns, answered, dropped;
	unsigned windows, window[WINDOWS_MAX];
};

static struct samples latency_ns;

static void answer(struct service *s, const struct options *o)
{
	unsigned long long work = (unsigned long long)(o->us * 1000);
	void *params[] = {&work};

	for (unsigned i = 0; i < o->kernels; i++)
		driver_must(s->launch(s->function, o->grid, 1, 1, o->block, 1, 1, 0, s->stream,
				      params, NULL),
			    "launch");
	driver_must(s->synchronize(s->stream), "synchronize");
}

static void wait_until(uint64_t at_ns)
{
	uint64_t now = driver_now_ns();

	if (at_ns > now + 300000) {
		struct timespec nap = {(time_t)((at_ns - now - 200000) / 1000000000u),
				       (long)((at_ns - now - 200000) % 1000000000u)};

		nanosleep(&nap, NULL);
	}
	while (driver_now_ns() < at_ns)
		;
}

static void serve(struct service *s, const struct options *o)
{
	uint64_t period = (uint64_t)(o->period_us * 1000), arrival = s->began_ns;
	uint64_t end = s->began_ns + (uint64_t)(o->seconds * 1e9);

	while (arrival < end) {
		uint64_t done;

		if (period)
			wait_until(arrival);
		answer(s, o);
		done = driver_now_ns();
		samples_add(&latency_ns, (double)(done - arrival));
		s->answered++;
		if (o->window_ms > 0) {
			uint64_t at =
				(uint64_t)((double)(done - s->began_ns) / (o->window_ms * 1e6));

			if (at < WINDOWS_MAX) {
				s->window[at]++;
				s->windows = (unsigned)at;
			}
		}
		arrival = period ? arrival + period : done;
		for (; period && arrival + BEHIND_MAX * period < done; arrival += period)
			s->dropped++;
	}
}

static struct options parse(int argc, char **argv)
{
	struct options o = {20, 5000, 3, 0, 25, 1056, 256, 0, ""};

	for (int i = 1; i + 1 < argc; i += 2) {
		const char *k = argv[i], *v = argv[i + 1];

		if (!strcmp(k, "--us"))
			o.us = atof(v);
		else if (!strcmp(k, "--period-us"))
			o.period_us = atof(v);
		else if (!strcmp(k, "--seconds"))
			o.seconds = atof(v);
		else if (!strcmp(k, "--window-ms"))
			o.window_ms = atof(v);
		else if (!strcmp(k, "--kernels"))
			o.kernels = (unsigned)atoi(v);
		else if (!strcmp(k, "--grid"))
			o.grid = (unsigned)atoi(v);
		else if (!strcmp(k, "--block"))
			o.block = (unsigned)atoi(v);
		else if (!strcmp(k, "--start"))
			o.start_ns = strtoull(v, NULL, 10);
		else if (!strcmp(k, "--label"))
			o.label = v;
		else {
			fprintf(stderr, "bench_request: unknown option %s\n", k);
			exit(2);
		}
	}
	return o;
}

static void report(const struct service *s, const struct options *o)
{
	double seconds = (double)(driver_now_ns() - s->began_ns) / 1e9;

	printf("{\"label\":\"%s\",\"answered\":%llu,\"dropped\":%llu,\"seconds\":%.4f,"
	       "\"rate\":%.3f,\"began_ns\":%llu,",
	       o->label, (unsigned long long)s->answered, (unsigned long long)s->dropped, seconds,
	       (double)s->answered / seconds, (unsigned long long)s->began_ns);
	samples_print("latency_ns", &latency_ns);
	if (o->window_ms > 0) {
		printf(",\"window_ms\":%g,\"windows\":[", o->window_ms);
		for (unsigned i = 0; i < s->windows; i++) /* the last one is not whole */
			printf("%s%u", i ? "," : "", s->window[i]);
		printf("]");
	}
	printf("}\n");
}

int main(int argc, char **argv)
{
	struct options o = parse(argc, argv);
	static struct service s;

	s.function = driver_start();
	driver_must(DRIVER_ASKED(cuStreamCreate)(&s.stream, CU_STREAM_NON_BLOCKING), "stream");
	s.launch = DRIVER_ASKED(cuLaunchKernel);
	s.synchronize = DRIVER_ASKED(cuStreamSynchronize);
	for (int i = 0; i < 4; i++)
		answer(&s, &o);
	wait_until(o.start_ns);
	s.began_ns = driver_now_ns();
	serve(&s, &o);
	report(&s, &o);
	return 0;
}
