/*
 * A guest for the integration tests: what a job, a container or a notebook would do with a GPU, small
 * enough to run anywhere. It takes memory, works for a while, says what it got and knows nothing of
 * cuota.
 *
 *   take [-m MIB] [-s SECONDS] [-k MICROSECONDS] [-h SECONDS] [-d DEVICE]
 *
 *     -m  take MIB in pieces of 64 MiB, or until refused (default: all there is)
 *     -s  then launch kernels of -k (1000) microseconds, waiting for each, for so long
 *     -h  then hold what was taken for so long
 *     -d  on this device (0)
 *
 * Prints "total_mib= free_mib= got_mib= refused=" first (refused is the driver's code, 0 = not), then
 * "busy_pct=" of the time that its kernels worked: only on the simulated GPU, where a kernel called
 * sim_spin takes the nanoseconds it is told. Exit 1 when anything but a refusal goes wrong.
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MIB   ((size_t)1 << 20)
#define PIECE ((size_t)64 * MIB)

static const char ptx[] = ".version 7.0\n"
			  ".target sm_70\n"
			  ".address_size 64\n"
			  ".visible .entry sim_spin(.param .u64 ns)\n"
			  "{\n"
			  "	ret;\n"
			  "}\n";

static void must(CUresult rc, const char *what)
{
	const char *name = "?";

	if (rc == CUDA_SUCCESS)
		return;
	cuGetErrorName(rc, &name);
	fprintf(stderr, "take: %s: %s (%d)\n", what, name, (int)rc);
	exit(1);
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Takes up to `enough` bytes; smaller pieces when a large one does not fit. */
static size_t take_memory(size_t enough, CUresult *ret_refusal)
{
	size_t taken = 0, piece = PIECE;

	*ret_refusal = CUDA_SUCCESS;
	while (taken < enough && piece >= MIB) {
		size_t bytes = enough - taken < piece ? enough - taken : piece;
		CUdeviceptr memory;
		CUresult rc = cuMemAlloc(&memory, bytes);

		if (rc == CUDA_SUCCESS) {
			taken += bytes;
			continue;
		}
		*ret_refusal = rc;
		piece /= 2;
	}
	return taken;
}

static CUfunction load_kernel(void)
{
	CUfunction kernel;
	CUmodule module;

	must(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	must(cuModuleGetFunction(&kernel, module, "sim_spin"), "cuModuleGetFunction");
	return kernel;
}

static double work(CUfunction kernel, double seconds, unsigned long long kernel_ns)
{
	void *arguments[] = {&kernel_ns};
	double from = now_s(), warm = from + seconds / 4;
	unsigned long long kernels = 0;

	while (now_s() < from + seconds) {
		must(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL),
		     "cuLaunchKernel");
		must(cuStreamSynchronize(NULL), "cuStreamSynchronize");
		if (now_s() >= warm)
			kernels++;
	}
	return 100.0 * (double)kernels * (double)kernel_ns / 1e9 / (now_s() - warm);
}

int main(int argc, char **argv)
{
	double seconds = 0, hold = 0;
	unsigned long long kernel_us = 1000;
	size_t enough = SIZE_MAX, taken, free_bytes, total_bytes;
	CUfunction kernel = NULL;
	CUresult refusal;
	CUcontext context;
	CUdevice device;
	int option, ordinal = 0;

	while ((option = getopt(argc, argv, "m:s:k:h:d:")) != -1) {
		switch (option) {
		case 'm': enough = strtoull(optarg, NULL, 10) * MIB; break;
		case 's': seconds = atof(optarg); break;
		case 'k': kernel_us = strtoull(optarg, NULL, 10); break;
		case 'h': hold = atof(optarg); break;
		case 'd': ordinal = atoi(optarg); break;
		default: return 2;
		}
	}
	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, ordinal), "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	if (seconds > 0)
		kernel = load_kernel(); /* while there is room for its code */
	taken = take_memory(enough, &refusal);
	must(cuMemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo");
	printf("total_mib=%zu free_mib=%zu got_mib=%zu refused=%d\n", total_bytes / MIB,
	       free_bytes / MIB, taken / MIB, (int)refusal);
	fflush(stdout);
	if (seconds > 0)
		printf("busy_pct=%.1f\n", work(kernel, seconds, kernel_us * 1000));
	fflush(stdout);
	if (hold > 0)
		usleep((useconds_t)(hold * 1e6));
	return 0;
}
