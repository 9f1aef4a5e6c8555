/*
 * A tool that is preloaded and stands in for the driver: it exports some of its functions, gets the true ones from
 * the driver's ELF tables and thus round every look-up, and hooks dlopen so that a program which opens the
 * driver gets this library. It asks dladdr for the file of its own dlopen to know what to open, as a profiler does;
 * when cuota is loaded before, that dlopen is cuota's.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cuda_abi.h"
#include "base/object.h"

static unsigned counted;

static void *next_open(const char *file, int mode)
{
	void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");

	return next(file, mode);
}

void *dlopen(const char *file, int mode)
{
	Dl_info info;

	if (!file || strcmp(file, "libcuda.so.1") != 0 || !dladdr((void *)dlopen, &info))
		return next_open(file, mode);
	return next_open(info.dli_fname, mode);
}

static void *behind(const char *name)
{
	static struct object driver;

	if (!driver.dynamic) {
		next_open("libcuda.so.1", RTLD_NOW);
		if (object_by_soname("libcuda.so.1", &driver))
			abort();
	}
	counted++;
	return object_symbol(&driver, name);
}

#define BEHIND(function) ((__typeof__(function) *)behind(#function))

CUresult cuInit(unsigned flags)
{
	return BEHIND(cuInit)(flags);
}

CUresult cuDriverGetVersion(int *version)
{
	return BEHIND(cuDriverGetVersion)(version);
}

CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	return BEHIND(cuGetExportTable)(table, id);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	return BEHIND(cuDevicePrimaryCtxRetain)(context, device);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	return BEHIND(cuCtxSetCurrent)(context);
}

CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
	return BEHIND(cuMemAlloc_v2)(at, bytes);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **found, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	return BEHIND(cuGetProcAddress_v2)(symbol, found, version, flags, status);
}

static void tell(void) __attribute__((destructor));

static void tell(void)
{
	if (getenv("STANDS_TELLS"))
		fprintf(stderr, "stand-in: %s\n", counted ? "called" : "not called");
}
