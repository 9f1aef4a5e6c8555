/*
 * For the tests of the simulated driver: each test runs in a process of its own (Check forks), on
 * a shared state of its own, with the variables it sets before its first call.
 */
#ifndef SIM_HELP_H
#define SIM_HELP_H

#include <check.h>
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define M (1ull << 20)
#define G (1ull << 30)

static char sim_directory[PATH_MAX];
static char sim_state[PATH_MAX];

/* From argv[0]: the simulated driver lies beside the tests, or where make builds it by default. */
static inline void sim_find(const char *program)
{
	char path[PATH_MAX], library[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s", program);
	snprintf(sim_directory, sizeof(sim_directory), "%s/../sim", dirname(path));
	snprintf(library, sizeof(library), "%s/libcuda.so.1", sim_directory);
	if (access(library, R_OK) != 0)
		snprintf(sim_directory, sizeof(sim_directory), "build/sim");
}

static inline void sim_setup(void)
{
	static const char *const variables[] = {
		"DEVICES",  "MEMORY",	 "SMS", "DRIVER", "CONTEXT",   "FAIL",
		"SLICE_US", "SWITCH_US", "MIG", "MPS",	  "NVML_FAIL",
	};
	char name[64];

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		snprintf(name, sizeof(name), "CUOTA_SIM_%s", variables[i]);
		unsetenv(name);
	}
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("CUDA_DEVICE_ORDER");
	unsetenv("CUDA_MODULE_LOADING");
	snprintf(sim_state, sizeof(sim_state), "/dev/shm/check-sim-%d", (int)getpid());
	setenv("CUOTA_SIM_STATE", sim_state, 1);
	setenv("CUOTA_SIM_MEMORY", "16G", 1);
}

static inline void sim_teardown(void)
{
	unlink(sim_state);
}

static inline void *sim_library(const char *name)
{
	char path[PATH_MAX + 32];
	void *library;

	snprintf(path, sizeof(path), "%s/%s", sim_directory, name);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		ck_abort_msg("%s", dlerror());
	return library;
}

static inline void *sim_symbol(const char *name)
{
	static void *library;
	void *symbol;

	if (!library)
		library = sim_library("libcuda.so.1");
	symbol = dlsym(library, name);
	if (!symbol)
		ck_abort_msg("%s is not exported", name);
	return symbol;
}

/* CU(cuMemAlloc)(...) calls the ABI that cuda.h means by the name. */
#define SIM_TEXT(name) #name
#define SIM_NAME(name) SIM_TEXT(name)
#define CU(name)       ((__typeof__(&name))sim_symbol(SIM_NAME(name)))
#define OK(call)       ck_assert_int_eq((call), CUDA_SUCCESS)
#define IS(call, code) ck_assert_int_eq((call), CUDA_ERROR_##code)

static inline CUcontext sim_context(void)
{
	CUcontext context;

	OK(CU(cuInit)(0));
	OK(CU(cuDevicePrimaryCtxRetain)(&context, 0));
	OK(CU(cuCtxSetCurrent)(context));
	return context;
}

static inline unsigned long long sim_free_bytes(void)
{
	size_t free_bytes, total;

	OK(CU(cuMemGetInfo)(&free_bytes, &total));
	return free_bytes;
}

static const char sim_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			      ".visible .entry sim_spin(.param .u64 ns) { ret; }\n"
			      ".visible .entry quick() { ret; }\n";

static inline CUfunction sim_kernel(const char *name)
{
	CUmodule module;
	CUfunction function;

	OK(CU(cuModuleLoadData)(&module, sim_ptx));
	OK(CU(cuModuleGetFunction)(&function, module, name));
	return function;
}

static inline CUresult sim_launch(CUfunction spin, unsigned long long ns, CUstream stream)
{
	void *params[1] = {&ns};

	return CU(cuLaunchKernel)(spin, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static inline double sim_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Memory that a forked child sees too. */
static inline void *sim_common(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	return at;
}

static inline void sim_wait_for(volatile int *flag, int value)
{
	while (*flag < value)
		usleep(200);
}

static inline int sim_run(Suite *suite, const char *program)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	sim_find(program);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
