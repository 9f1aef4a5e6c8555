/*
 * loops PROCESSES KERNEL_US [PER_WAIT [SECONDS [GPU]]]
 *
 * Forks processes that each launch PER_WAIT kernels of KERNEL_US and wait, over and over, and
 * prints how many kernels per second each got and all together. It is a plain driver-API program:
 * the same binary shows how the real driver or the simulated one shares the device.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry sim_spin(.param .u64 ns)\n"
	"{\n"
	"\t.reg .pred %p;\n\t.reg .u64 %r<4>;\n"
	"\tld.param.u64 %r1, [ns];\n\tmov.u64 %r2, %globaltimer;\n\tadd.u64 %r1, %r1, %r2;\n"
	"again:\n\tmov.u64 %r3, %globaltimer;\n\tsetp.lt.u64 %p, %r3, %r1;\n\t@%p bra again;\n"
	"\tret;\n}\n";

struct shared {
	volatile int ready, go, stop;
	double rate[64];
};

static void must(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "loops: %s: %d\n", what, (int)result);
	_exit(1);
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run(struct shared *shared, int number, double kernel_us, int per_wait, double length,
		int gpu)
{
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction spin;
	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, gpu), "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	must(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	must(cuModuleGetFunction(&spin, module, "sim_spin"), "cuModuleGetFunction");

	unsigned long long ns = (unsigned long long)(kernel_us * 1000);
	void *params[1] = {&ns};
	must(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), "cuLaunchKernel");
	must(cuCtxSynchronize(), "cuCtxSynchronize");
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	while (!shared->go)
		usleep(100);

	long done = 0;
	double begin = seconds();
	while (seconds() < begin + length) {
		for (int i = 0; i < per_wait; i++)
			must(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
			     "cuLaunchKernel");
		must(cuCtxSynchronize(), "cuCtxSynchronize");
		done += per_wait;
	}
	shared->rate[number] = (double)done / (seconds() - begin);
}

int main(int argc, char **argv)
{
	int processes = argc > 1 ? atoi(argv[1]) : 2;
	double kernel_us = argc > 2 ? atof(argv[2]) : 94;
	int per_wait = argc > 3 ? atoi(argv[3]) : 1;
	double length = argc > 4 ? atof(argv[4]) : 1;
	int gpu = argc > 5 ? atoi(argv[5]) : 0;
	if (processes < 1 || processes > 64 || kernel_us <= 0 || per_wait < 1) {
		fprintf(stderr, "usage: loops PROCESSES KERNEL_US [PER_WAIT [SECONDS [GPU]]]\n");
		return 2;
	}
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	for (int i = 0; i < processes; i++) {
		if (fork() == 0) {
			run(shared, i, kernel_us, per_wait, length, gpu);
			_exit(0);
		}
	}
	while (shared->ready < processes)
		if (waitpid(-1, NULL, WNOHANG) > 0)
			return 1;
	shared->go = 1;
	int failed = 0, status;
	while (wait(&status) > 0)
		failed |= status;
	double sum = 0;
	for (int i = 0; i < processes; i++)
		sum += shared->rate[i];
	printf("%d x %.1f us x %d: %.0f kernels/s in all (", processes, kernel_us, per_wait, sum);
	for (int i = 0; i < processes; i++)
		printf("%s%.0f", i ? " " : "", shared->rate[i]);
	printf(")\n");
	return failed ? 1 : 0;
}
