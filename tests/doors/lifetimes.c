/*
 * CUDA calls at the odd ends of a process's life: in a static constructor, in an atexit handler, in a destructor,
 * and after a fork. Under a quota each must work as without one.
 *
 *   lifetimes ends | fork | first-in-child | before-init | handlers
 */
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doors/library.h"
#include "driver/cuda_abi.h"

static void *handle;

static void *find(const char *name)
{
	void *found;

	if (!handle)
		handle = dlopen("libcuda.so.1", RTLD_NOW);
	found = handle ? dlsym(handle, name) : NULL;
	CHECK(found, "no %s", name);
	return found;
}

#define CALL(symbol, ...) (((__typeof__(symbol) *)find(#symbol))(__VA_ARGS__))

static void take_and_give(const char *when)
{
	CUdevice device;
	CUcontext context;
	CUdeviceptr at;

	CHECK(CALL(cuInit, 0) == CUDA_SUCCESS, "cuInit in %s", when);
	CHECK(CALL(cuDeviceGet, &device, 0) == CUDA_SUCCESS, "device in %s", when);
	CHECK(CALL(cuDevicePrimaryCtxRetain, &context, device) == CUDA_SUCCESS, "context in %s",
	      when);
	CHECK(CALL(cuCtxSetCurrent, context) == CUDA_SUCCESS, "current in %s", when);
	CHECK(CALL(cuMemAlloc_v2, &at, (size_t)8 << 30) == CUDA_ERROR_OUT_OF_MEMORY,
	      "not held in %s", when);
	CHECK(CALL(cuMemAlloc_v2, &at, 1 << 20) == CUDA_SUCCESS, "alloc in %s", when);
	CHECK(CALL(cuMemFree_v2, at) == CUDA_SUCCESS, "free in %s", when);
	printf("%s\n", when);
	fflush(stdout);
}

static const char *mode = "";

static void early(int argc, char **argv) __attribute__((constructor));

static void early(int argc, char **argv)
{
	if (argc > 1)
		mode = argv[1];
	if (strcmp(mode, "ends") == 0)
		take_and_give("constructor");
}

static void late(void) __attribute__((destructor));

static void late(void)
{
	if (strcmp(mode, "ends") == 0)
		take_and_give("destructor");
}

static void at_exit(void)
{
	take_and_give("atexit");
}

static unsigned entries(const char *path)
{
	DIR *directory = opendir(path);
	unsigned count = 0;

	while (directory && readdir(directory))
		count++;
	if (directory)
		closedir(directory);
	return count;
}

/* What a process may do before cuInit: no thread, no file of ours, and no cuInit of ours. */
static void before_init(void)
{
	unsigned files = entries("/proc/self/fd");
	void *get = find("cuGetProcAddress_v2"), *found;
	int count;
	CUresult rc;

	((__typeof__(cuGetProcAddress_v2) *)get)("cuMemAlloc", &found, 12000, 0, NULL);
	rc = CALL(cuDeviceGetCount, &count);
	printf("count before cuInit: %d\n", rc);
	printf("alloc before cuInit: %d\n", CALL(cuMemAlloc_v2, &(CUdeviceptr){0}, 1 << 20));
	printf("threads: %u\n", entries("/proc/self/task") - 2);
	printf("files: %d\n", (int)entries("/proc/self/fd") - (int)files);
}

static int wait_for(pid_t child)
{
	int status = 0;

	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The parent only looks up, as an import does; the child is the first to use CUDA. */
static void first_in_child(void)
{
	pid_t child;

	before_init();
	child = fork();
	if (child == 0) {
		take_and_give("child");
		_exit(0);
	}
	printf("child: %d\n", wait_for(child));
	take_and_give("parent");
}

/* The parent uses CUDA, the child may not, but must not crash or hurt the parent; then both go on. */
static void fork_after(void)
{
	CUdeviceptr at;
	pid_t child;

	take_and_give("parent");
	CHECK(CALL(cuMemAlloc_v2, &at, 1 << 30) == CUDA_SUCCESS, "alloc");
	for (int i = 0; i < 20; i++) {
		child = fork();
		if (child == 0) {
			CUdeviceptr other;

			CALL(cuMemAlloc_v2, &other, 1 << 20);
			_exit(0);
		}
		CHECK(wait_for(child) == 0, "child %d", i);
	}
	CHECK(CALL(cuMemFree_v2, at) == CUDA_SUCCESS, "free");
	take_and_give("parent again");
}

/* Signal handlers, umask, environment and the main thread's mask are the program's. */
static void handlers(void)
{
	extern char **environ;
	unsigned variables = 0, handled = 0;
	struct sigaction action;
	sigset_t mask;
	mode_t mask_of_files;

	take_and_give("main");
	for (int i = 1; i < 64; i++)
		if (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
		    action.sa_handler != SIG_IGN)
			handled++;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	mask_of_files = umask(0);
	for (char **v = environ; *v; v++)
		variables += strncmp(*v, "LD_PRELOAD", 10) != 0;
	printf("handlers: %u, umask: %o, variables: %u, blocked: %d\n", handled, mask_of_files,
	       variables, sigismember(&mask, SIGINT));
}

int main(void)
{
	if (strcmp(mode, "ends") == 0) {
		atexit(at_exit);
		take_and_give("main");
	} else if (strcmp(mode, "fork") == 0) {
		fork_after();
	} else if (strcmp(mode, "first-in-child") == 0) {
		first_in_child();
	} else if (strcmp(mode, "before-init") == 0) {
		before_init();
	} else if (strcmp(mode, "handlers") == 0) {
		handlers();
	} else {
		fprintf(stderr, "usage: lifetimes ends|fork|first-in-child|before-init|handlers\n");
		return 2;
	}
	return 0;
}
