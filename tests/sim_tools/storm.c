/*
 * A storm: guests that allocate, free, launch and fork are killed at random instants and replaced, again and again.
 *
 *   storm GUESTS KILLS [GROUPS]             the controller; starts itself as guests, under whatever LD_PRELOAD it has
 *   storm guest SEED                        one guest: runs until it is killed
 *
 * The controller itself never touches the driver. It prints how many guests it started and killed, and how many
 * ended by themselves, which is a failure: nothing may end a guest but the kill.
 */
#include <cuda.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HELD	   32
#define GUESTS_MAX 256

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry sim_spin(.param .u64 ns)\n{\nret;\n}\n";

static void must(CUresult rc, const char *what)
{
	if (rc == CUDA_SUCCESS)
		return;
	fprintf(stderr, "storm: %s: %d\n", what, (int)rc);
	_exit(3);
}

/* A child that does nothing of ours, or one that is surprised to find no device: both leave at once. */
static void have_a_child(unsigned seed)
{
	pid_t pid = fork();
	CUdeviceptr p;

	if (pid == 0) {
		if (seed % 2)
			_exit(cuMemAlloc(&p, 4096) == CUDA_SUCCESS ? 4 : 0);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static _Noreturn void guest(unsigned seed)
{
	CUdeviceptr held[HELD] = {0};
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction f;
	CUresult rc;

	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, 0), "device");
	/* The cap may be full of the others': then there is no context for us yet. */
	while ((rc = cuDevicePrimaryCtxRetain(&context, device)) == CUDA_ERROR_OUT_OF_MEMORY)
		usleep(2000);
	must(rc, "context");
	must(cuCtxSetCurrent(context), "context");
	while ((rc = cuModuleLoadData(&module, ptx)) == CUDA_ERROR_OUT_OF_MEMORY)
		usleep(2000);
	must(rc, "module");
	must(cuModuleGetFunction(&f, module, "sim_spin"), "function");
	for (unsigned n = 0;; n++) {
		unsigned at = (unsigned)rand_r(&seed) % HELD;
		unsigned long long ns = 20000;
		void *params[] = {&ns};

		if (held[at]) {
			must(cuMemFree(held[at]), "free");
			held[at] = 0;
		} else {
			rc = cuMemAlloc(&held[at], ((size_t)rand_r(&seed) % 8 + 1) << 20);
			if (rc != CUDA_ERROR_OUT_OF_MEMORY)
				must(rc, "alloc");
			else
				held[at] = 0;
		}
		if (n % 4 == 0)
			must(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), "launch");
		if (n % 32 == 31)
			have_a_child(seed);
	}
}

static pid_t start(unsigned number, unsigned groups)
{
	char seed[16], group[32];
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	snprintf(seed, sizeof(seed), "%u", number);
	snprintf(group, sizeof(group), "storm-%u", number % groups);
	setenv("CUOTA_GROUP", group, 1);
	execl("/proc/self/exe", "storm", "guest", seed, (char *)NULL);
	_exit(127);
}

static int control(unsigned count, unsigned kills, unsigned groups)
{
	pid_t guests[GUESTS_MAX];
	unsigned started = 0, ended = 0, seed = 7;

	for (unsigned i = 0; i < count; i++)
		guests[i] = start(started++, groups);
	for (unsigned k = 0; k < kills; k++) {
		unsigned at = (unsigned)rand_r(&seed) % count;
		struct timespec nap = {0, (long)((unsigned)rand_r(&seed) % 12000000u)};
		int status;

		nanosleep(&nap, NULL);
		kill(guests[at], SIGKILL);
		waitpid(guests[at], &status, 0);
		ended += !WIFSIGNALED(status);
		guests[at] = start(started++, groups);
	}
	for (unsigned i = 0; i < count; i++) {
		int status;

		kill(guests[i], SIGKILL);
		waitpid(guests[i], &status, 0);
		ended += !WIFSIGNALED(status);
	}
	printf("started %u killed %u ended_by_themselves %u\n", started, kills + count, ended);
	return ended != 0;
}

int main(int argc, char **argv)
{
	unsigned count;

	if (argc == 3 && !strcmp(argv[1], "guest"))
		guest((unsigned)atoi(argv[2]));
	if (argc < 3) {
		fprintf(stderr, "usage: storm GUESTS KILLS [GROUPS]\n");
		return 2;
	}
	count = (unsigned)atoi(argv[1]);
	if (count == 0 || count > GUESTS_MAX)
		return 2;
	return control(count, (unsigned)atoi(argv[2]), argc > 3 ? (unsigned)atoi(argv[3]) : 1);
}
