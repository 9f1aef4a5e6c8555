/*
 * A tenant for `make demo`: takes device memory until refused and launches kernels of fixed work as
 * fast as it is let, then says what it got. The same binary runs on the simulated driver and on a
 * real one. It knows nothing of cuota.
 *
 * The kernel runs a fixed number of loop rounds and watches no clock: a clock would go on while the
 * driver runs somebody else's kernels, and a tenant that waits would seem to work. (The simulated
 * driver takes the argument of a kernel of this name as nanoseconds of device time; one unit there
 * is 1 ns.)
 *
 *   tenant probe                               the device's name; exit 1 without a usable device
 *   tenant calibrate                           units of work in a millisecond of this device, alone
 *   tenant run UNITS SECONDS MAX_MIB READY GO  see run() below
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEPTH	  16 /* kernels in flight: a busy host must not starve the device */
#define MIB	  (1u << 20)
#define ALLOC_MAX 65536

static const char ptx[] = ".version 7.0\n"
			  ".target sm_70\n"
			  ".address_size 64\n"
			  ".visible .entry sim_spin(.param .u64 units)\n"
			  "{\n"
			  "	.reg .u64 %n, %t;\n"
			  "	.reg .pred %more;\n"
			  "	ld.param.u64 %n, [units];\n"
			  "	shr.u64 %n, %n, 4;\n"
			  "again:\n"
			  "	mov.u64 %t, %clock64;\n" /* volatile: keeps the loop */
			  "	sub.u64 %n, %n, 1;\n"
			  "	setp.gt.s64 %more, %n, 0;\n"
			  "	@%more bra again;\n"
			  "	ret;\n"
			  "}\n";

static CUfunction kernel;
static CUstream stream;

static void must(CUresult rc, const char *what)
{
	const char *name = "?";

	if (rc == CUDA_SUCCESS)
		return;
	cuGetErrorName(rc, &name);
	fprintf(stderr, "tenant: %s: %s (%d)\n", what, name, (int)rc);
	exit(1);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void start(void)
{
	CUcontext context;
	CUmodule module;
	CUdevice device;

	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, 0), "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	must(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	must(cuModuleGetFunction(&kernel, module, "sim_spin"), "cuModuleGetFunction");
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

static void launch(unsigned long long units)
{
	void *arguments[] = {&units};

	must(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL),
	     "cuLaunchKernel");
}

static int probe(void)
{
	CUdevice device;
	char name[128];

	if (cuInit(0) || cuDeviceGet(&device, 0) || cuDeviceGetName(name, sizeof(name), device))
		return 1;
	puts(name);
	return 0;
}

/* The best of several: whatever disturbs makes a run longer, never shorter. */
static int calibrate(void)
{
	const unsigned long long units = 20000000;
	double best = 1e9;

	start();
	launch(units);
	must(cuStreamSynchronize(stream), "cuStreamSynchronize");
	for (int i = 0; i < 10; i++) {
		double from = now_s(), took;

		launch(units);
		must(cuStreamSynchronize(stream), "cuStreamSynchronize");
		took = now_s() - from;
		best = took < best ? took : best;
	}
	printf("%.0f\n", (double)units / (best * 1e3));
	return 0;
}

/* Ever smaller pieces until not even a MiB is to be had, or enough is taken. */
static uint64_t take_memory(uint64_t enough, CUresult *ret_refusal)
{
	uint64_t taken = 0;
	size_t piece = 64 * MIB;

	*ret_refusal = CUDA_SUCCESS;
	for (int n = 0; piece >= MIB && taken + piece <= enough && n < ALLOC_MAX; n++) {
		CUdeviceptr memory;
		CUresult rc = cuMemAlloc(&memory, piece);

		if (rc == CUDA_SUCCESS) {
			taken += piece;
			continue;
		}
		*ret_refusal = rc;
		piece /= 2;
	}
	return taken;
}

static void wait_for(const char *path)
{
	while (access(path, F_OK))
		usleep(1000);
}

/* Launches for `seconds`, DEPTH ahead; returns how many kernels ended in that time. */
static unsigned long long work(unsigned long long units, double seconds)
{
	unsigned long long launched = 0, ended = 0;
	double until = now_s() + seconds;
	CUevent done[DEPTH];

	for (int i = 0; i < DEPTH; i++)
		must(cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING), "cuEventCreate");
	while (now_s() < until) {
		if (launched - ended == DEPTH) {
			must(cuEventSynchronize(done[ended % DEPTH]), "cuEventSynchronize");
			ended++;
			continue;
		}
		launch(units);
		must(cuEventRecord(done[launched++ % DEPTH], stream), "cuEventRecord");
	}
	must(cuStreamSynchronize(stream), "cuStreamSynchronize");
	for (int i = 0; i < DEPTH; i++)
		cuEventDestroy(done[i]);
	return ended;
}

/*
 * Takes up to MAX_MIB (0 = nothing), makes the file READY, waits for the file GO; warms up for 2 s,
 * measures for SECONDS and goes on for another second, so that both tenants' windows see both at
 * work.
 */
static int run(char **argv)
{
	unsigned long long units = strtoull(argv[0], NULL, 10), kernels;
	double seconds = atof(argv[1]);
	uint64_t enough = strtoull(argv[2], NULL, 10) * MIB, taken;
	size_t free_bytes = 0, total_bytes = 0;
	CUresult refusal;
	FILE *ready;

	start();
	taken = take_memory(enough, &refusal);
	must(cuMemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo");
	ready = fopen(argv[3], "w");
	if (!ready || fclose(ready))
		return 1;
	wait_for(argv[4]);
	work(units, 2);
	kernels = work(units, seconds);
	work(units, 1);
	printf("taken_bytes=%llu refusal=%d total_bytes=%llu free_bytes=%llu kernels=%llu "
	       "seconds=%.3f\n",
	       (unsigned long long)taken, (int)refusal, (unsigned long long)total_bytes,
	       (unsigned long long)free_bytes, kernels, seconds);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "probe"))
		return probe();
	if (argc == 2 && !strcmp(argv[1], "calibrate"))
		return calibrate();
	if (argc == 7 && !strcmp(argv[1], "run"))
		return run(argv + 2);
	fputs("usage: tenant probe | calibrate | run UNITS SECONDS MAX_MIB READY GO\n", stderr);
	return 2;
}
