/*
 * What the SM-time programs share: a kernel that occupies the device for about the nanoseconds it is told, the first
 * device, and the clock of /proc/uptime, which shell tests can read.
 */
#ifndef CUOTA_TESTS_SPIN_H
#define CUOTA_TESTS_SPIN_H

#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "spin_ptx.h"

static inline void must_at(CUresult rc, const char *what, int line)
{
	const char *name = "?";

	if (rc == CUDA_SUCCESS)
		return;
	cuGetErrorName(rc, &name);
	fprintf(stderr, "line %d: %s: %s (%d)\n", line, what, name, (int)rc);
	exit(1);
}

#define must(call) must_at(call, #call, __LINE__)

static inline double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline void use_device(void)
{
	CUdevice device;
	CUcontext context;

	must(cuInit(0));
	must(cuDeviceGet(&device, 0));
	must(cuDevicePrimaryCtxRetain(&context, device));
	must(cuCtxSetCurrent(context));
}

static inline CUfunction spin_kernel(void)
{
	CUmodule module;
	CUfunction spin;

	must(cuModuleLoadData(&module, spin_ptx));
	must(cuModuleGetFunction(&spin, module, "sim_spin"));
	return spin;
}

static inline void spin_for(CUfunction spin, double us, CUstream stream)
{
	unsigned long long ns = (unsigned long long)(us * 1e3);
	void *parameters[] = {&ns};

	must(cuLaunchKernel(spin, SPIN_GRID, 1, 1, SPIN_BLOCK, 1, 1, 0, stream, parameters, NULL));
}

#endif
