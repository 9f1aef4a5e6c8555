/*
 * Properties of look-ups by name, one per call: the answer, dlerror before and after, and whose code it is. The
 * bats file names them as sentences and runs each with and without the library: what they print must be the same
 * in both, but for "cuota" where a bare run says "driver".
 *
 *   lookups PROPERTY [PATH]
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include "doors/library.h"
#include "driver/cuda_abi.h"

static const char *path = "libcuda.so.1";

/* dlerror without the paths of whoever looked up. */
static const char *error_text(void)
{
	const char *text = dlerror(), *colon = text ? strstr(text, "undefined symbol") : NULL;

	return !text ? "none" : colon ? colon : "other";
}

static void *driver(void)
{
	void *handle = dlopen(path, RTLD_NOW);

	CHECK(handle, "%s", dlerror());
	return handle;
}

static void show(const char *what, const void *found)
{
	printf("%s: %s", what, owner_of(found));
	printf(", error: %s\n", error_text());
}

/* A failed look-up sets dlerror once; a good one after it leaves it clean. */
static void errors(void)
{
	void *handle = driver();

	show("absent", dlsym(handle, "cuFooNotThere"));
	printf("again: %s\n", error_text());
	dlsym(handle, "cuFooNotThere");
	show("good after bad", dlsym(handle, "cuMemAlloc_v2"));
	show("first of all", dlsym(handle, "cuMemFree_v2"));
	dlsym(handle, "cuFooNotThere");
	show("unhooked after bad", dlsym(handle, "cuDriverGetVersion"));
}

/* The same where the caller decides what is found. */
static void scope_errors(void)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	dlsym(handle, "cuFooNotThere");
	show("next after bad", dlsym(RTLD_NEXT, "cuMemAlloc_v2"));
	dlsym(handle, "cuFooNotThere");
	show("default after bad", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
	show("absent next", dlsym(RTLD_NEXT, "cuFooNotThere"));
	show("absent default", dlsym(RTLD_DEFAULT, "cuFooNotThere"));
	show("program", dlsym(dlopen(NULL, RTLD_NOW), "cuMemAlloc_v2"));
	dlsym(handle, "cuFooNotThere");
	printf("dlsym: %d, ", dlsym(RTLD_NEXT, "dlsym") != NULL);
	printf("error: %s\n", error_text());
}

/* A name we export is not there for a program whose driver is not. */
static void no_driver(void)
{
	show("default", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
	show("next", dlsym(RTLD_NEXT, "cuMemAlloc_v2"));
	show("program", dlsym(dlopen(NULL, RTLD_NOW), "cuMemAlloc_v2"));
	show("nvml", dlsym(RTLD_DEFAULT, "nvmlDeviceGetMemoryInfo"));
	show("libc", dlsym(dlopen("libc.so.6", RTLD_NOW), "cuMemAlloc_v2"));
}

/* Loaded, but in nobody's global scope. */
static void local_driver(void)
{
	driver();
	show("default", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
	show("next", dlsym(RTLD_NEXT, "cuMemAlloc_v2"));
	show("program", dlsym(dlopen(NULL, RTLD_NOW), "cuMemAlloc_v2"));
}

/* Names of other libraries that begin as the driver's do. */
static void other_names(void)
{
	static const char *const names[] = {"cudnnCreate", "cublasCreate_v2", "curl_easy_init",
					    "cuserid", "nvtxMark"};

	driver();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		show(names[i], dlsym(RTLD_DEFAULT, names[i]));
}

/* The same look-up twice on a thread, and by RTLD_NEXT and RTLD_DEFAULT: no loop, the same answer. */
static void twice(void)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	printf("%d %d %d\n", dlsym(handle, "cuMemAlloc_v2") == dlsym(handle, "cuMemAlloc_v2"),
	       dlsym(RTLD_NEXT, "cuMemAlloc_v2") == dlsym(RTLD_NEXT, "cuMemAlloc_v2"),
	       dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") == dlsym(handle, "cuMemAlloc_v2"));
	show("again", dlsym(RTLD_NEXT, "malloc"));
}

/* A handle of a library that does not have it, and of one whose dependency does. */
static void other_handles(void)
{
	void *linked = dlopen(path, RTLD_NOW);

	show("libm", dlsym(dlopen("libm.so.6", RTLD_NOW), "cuMemAlloc_v2"));
	show("linked to the driver", dlsym(linked, "cuMemAlloc_v2"));
}

/* A library of its own that defines and forwards a hooked name keeps it. */
static void wrapping_library(void)
{
	void *library = dlopen(path, RTLD_NOW);
	CUresult (*init)(unsigned) = (CUresult(*)(unsigned))dlsym(library, "cuInit");

	CHECK(library && init, "%s", dlerror());
	printf("its own: %d\n", strstr(owner_of((void *)init), "lib_wraps") != NULL);
	printf("cuInit: %d\n", init(0));
}

static void *look_up(void *handle)
{
	return dlsym(handle, "cuMemAlloc_v2");
}

/* Many threads at the first look-up. */
static void threads(void)
{
	void *handle = driver(), *answer[32], *first;
	pthread_t thread[32];

	for (int i = 0; i < 32; i++)
		pthread_create(&thread[i], NULL, look_up, handle);
	for (int i = 0; i < 32; i++)
		pthread_join(thread[i], &answer[i]);
	first = answer[0];
	for (int i = 1; i < 32; i++)
		CHECK(answer[i] == first, "two answers");
	show("all", first);
}

/* A program that closes the driver and opens it again goes on. */
static void reopened(void)
{
	for (int i = 0; i < 3; i++) {
		void *handle = driver();
		int version = 0;

		show("open", dlsym(handle, "cuMemAlloc_v2"));
		((__typeof__(cuDriverGetVersion) *)dlsym(handle, "cuDriverGetVersion"))(&version);
		printf("version known: %d\n", version > 0);
		dlclose(handle);
	}
}

/* The known bypass: a second copy of the driver in one process. */
static void second_copy(void)
{
	void *first = dlopen("libcuda.so.1", RTLD_NOW);

	show("first", dlsym(first, "cuMemAlloc_v2"));
	show("second", dlsym(driver(), "cuMemAlloc_v2"));
	show("first again", dlsym(first, "cuMemFree_v2"));
}

/* A driver that lacks what we export: nothing of it is offered, in no scope. */
static void lacking(void)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	show("has", dlsym(handle, "cuMemAlloc_v2"));
	show("by handle", dlsym(handle, "cuMemAllocAsync"));
	show("default", dlsym(RTLD_DEFAULT, "cuMemAllocAsync"));
	show("next", dlsym(RTLD_NEXT, "cuMemAllocAsync"));
	show("program", dlsym(dlopen(NULL, RTLD_NOW), "cuMemAllocAsync"));
}

/* A deeply bound library with a reference that nothing of its own defines. */
static void deep_open(void)
{
	void *library = dlopen(path, RTLD_LAZY | RTLD_DEEPBIND);

	printf("opened: %d, error: %s\n", library != NULL, error_text());
	library = dlopen("/no/such/library.so", RTLD_LAZY | RTLD_DEEPBIND);
	printf("opened: %d, error: %s\n", library != NULL, error_text());
}

/* Whatever handle the program was given for the driver, all of the driver is behind it. */
static void driver_handle(void)
{
	static const char *const names[] = {
		"cuInit",	    "cuMemAlloc_v2",	   "cuMemAllocAsync",
		"cuGetProcAddress", "cuGetProcAddress_v2", "cuDriverGetVersion",
		"cuGetErrorName",   "cuCtxGetApiVersion",  "cuFooNotThere"};
	void *handle = driver(), *found = NULL;
	int version = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		show(names[i], dlsym(handle, names[i]));
	dlsym(handle, "cuFooNotThere");
	show("good after bad", dlsym(handle, "cuDriverGetVersion"));
	show("with its version", dlvsym(handle, "cuMemAlloc_v2", "DRIVER_1"));
	show("unhooked with its version", dlvsym(handle, "cuDriverGetVersion", "DRIVER_1"));
	show("of no version", dlvsym(handle, "cuDriverGetVersion", "DRIVER_2"));
	printf("init %d\n", ((__typeof__(cuInit) *)dlsym(handle, "cuInit"))(0));
	((__typeof__(cuDriverGetVersion) *)dlsym(handle, "cuDriverGetVersion"))(&version);
	printf("version known: %d\n", version > 0);
	((__typeof__(cuGetProcAddress_v2) *)dlsym(handle, "cuGetProcAddress_v2"))(
		"cuMemAlloc", &found, 12000, 0, NULL);
	show("asked for", found);
}

/* The same of NVML. */
static void nvml_handle(void)
{
	void *handle = driver();

	show("hooked", dlsym(handle, "nvmlDeviceGetMemoryInfo"));
	show("unhooked", dlsym(handle, "nvmlInit_v2"));
	show("absent", dlsym(handle, "nvmlFooNotThere"));
	printf("init %d\n", ((int (*)(void))dlsym(handle, "nvmlInit_v2"))());
}

/* errno is the program's. */
static void error_number(void)
{
	void *handle = driver();

	errno = 77;
	dlsym(handle, "cuMemAlloc_v2");
	dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	dlsym(RTLD_NEXT, "cuMemFree_v2");
	printf("errno %d\n", errno);
}

static const struct {
	const char *name;
	void (*show)(void);
} properties[] = {
	{"errors", errors},
	{"scope-errors", scope_errors},
	{"no-driver", no_driver},
	{"local-driver", local_driver},
	{"other-names", other_names},
	{"twice", twice},
	{"other-handles", other_handles},
	{"wrapping-library", wrapping_library},
	{"threads", threads},
	{"reopened", reopened},
	{"second-copy", second_copy},
	{"driver-handle", driver_handle},
	{"nvml-handle", nvml_handle},
	{"errno", error_number},
	{"lacking", lacking},
	{"deep-open", deep_open},
};

int main(int argc, char **argv)
{
	if (argc > 2)
		path = argv[2];
	for (size_t i = 0; argc > 1 && i < sizeof(properties) / sizeof(properties[0]); i++) {
		if (strcmp(properties[i].name, argv[1]) == 0) {
			properties[i].show();
			return 0;
		}
	}
	fprintf(stderr, "usage: lookups PROPERTY [PATH]\n");
	return 2;
}
