/*
 * A tool that is preloaded and hooks dlopen to see who opens the driver. It asks in which file a function of the
 * driver's is and opens that file: under cuota libcuota.so, whose handle the program then takes for the driver's.
 *
 *   FINDS=handle     the function that dlsym answers for the driver's handle
 *   FINDS=default    the same with RTLD_DEFAULT
 *   FINDS=linked     the one that the loader bound at start; the driver itself is opened only when there is none
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

extern int cuInit(unsigned flags) __attribute__((weak));
extern int nvmlDeviceGetMemoryInfo(void *device, void *memory) __attribute__((weak));

static const char *way(void)
{
	const char *set = getenv("FINDS");

	return set ? set : "handle";
}

static int ends_with(const char *file, const char *end)
{
	size_t n = file ? strlen(file) : 0, e = strlen(end);

	return n >= e && strcmp(file + n - e, end) == 0;
}

static void *next_open(const char *file, int mode)
{
	void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");

	return next(file, mode);
}

/* Where the function is, as this tool finds it; *ret_handle is what the program gets otherwise. */
static void *find(const char *file, int mode, const char *function, void *bound, void **ret_handle)
{
	if (strcmp(way(), "linked") == 0 && bound)
		return bound;
	*ret_handle = next_open(file, strcmp(way(), "default") == 0 ? mode | RTLD_GLOBAL : mode);
	return dlsym(strcmp(way(), "default") == 0 ? RTLD_DEFAULT : *ret_handle, function);
}

void *dlopen(const char *file, int mode)
{
	int nvml = ends_with(file, "libnvidia-ml.so.1");
	void *handle = NULL, *found;
	Dl_info info;

	if (!nvml && !ends_with(file, "libcuda.so.1") && !ends_with(file, "vendor-driver.so"))
		return next_open(file, mode);
	if (nvml)
		found = find(file, mode, "nvmlDeviceGetMemoryInfo", (void *)nvmlDeviceGetMemoryInfo,
			     &handle);
	else
		found = find(file, mode, "cuInit", (void *)cuInit, &handle);
	if (!found || !dladdr(found, &info))
		return handle;
	return next_open(info.dli_fname, mode);
}
