/*
 * A library that loads the driver for itself, as the static CUDA runtime inside cuBLAS does: opened deeply
 * bound, its dlopen and dlsym are the C library's own.
 */
#include <dlfcn.h>
#include <stddef.h>

void *loads_symbol(const char *symbol);
int loads_memory(void);

/* Bound at the first call, which may never come; nothing here is linked to NVML. */
extern int nvmlDeviceGetMemoryInfo(void *device, void *memory) __attribute__((weak));

int loads_memory(void)
{
	return nvmlDeviceGetMemoryInfo(NULL, NULL);
}

void *loads_symbol(const char *symbol)
{
	static void *handle;

	if (!handle)
		handle = dlopen("libcuda.so.1", RTLD_NOW);
	return handle ? dlsym(handle, symbol) : NULL;
}
