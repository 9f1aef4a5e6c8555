/*
 * The allocating functions that the table of doors goes through, one row per ABI: how cuGetProcAddress is asked
 * for exactly that one, and how it is called.
 */
#ifndef CUOTA_DOORS_ABI_H
#define CUOTA_DOORS_ABI_H

#include "driver/cuda_abi.h"

struct abi {
	const char *symbol; /* exact exported name */
	const char *base;   /* what a program asks cuGetProcAddress for */
	int version;	    /* and the CUDA version with which it gets this one */
	int ptds;	    /* only with CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
	CUresult (*take)(void *function, size_t bytes);
};

static inline CUresult take_linear(void *function, size_t bytes)
{
	CUdeviceptr at;

	return ((__typeof__(cuMemAlloc_v2) *)function)(&at, bytes);
}

static inline CUresult take_pitch(void *function, size_t bytes)
{
	CUdeviceptr at;
	size_t pitch;

	return ((__typeof__(cuMemAllocPitch_v2) *)function)(&at, &pitch, 1 << 16, bytes >> 16, 16);
}

static inline CUresult take_managed(void *function, size_t bytes)
{
	CUdeviceptr at;

	return ((__typeof__(cuMemAllocManaged) *)function)(&at, bytes, CU_MEM_ATTACH_GLOBAL);
}

static inline CUresult take_async(void *function, size_t bytes)
{
	CUdeviceptr at;

	return ((__typeof__(cuMemAllocAsync) *)function)(&at, bytes, NULL);
}

static inline CUresult take_virtual(void *function, size_t bytes)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
	CUmemGenericAllocationHandle handle;

	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE; /* device 0 */
	return ((__typeof__(cuMemCreate) *)function)(&handle, bytes, &prop, 0);
}

static inline CUresult take_array(void *function, size_t bytes)
{
	CUDA_ARRAY_DESCRIPTOR desc = {.Width = 1 << 14,
				      .Height = bytes >> 16,
				      .NumChannels = 4,
				      .Format = CU_AD_FORMAT_UNSIGNED_INT8};
	CUarray array;

	return ((__typeof__(cuArrayCreate_v2) *)function)(&array, &desc);
}

static inline CUresult take_array3d(void *function, size_t bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 1 << 10,
					.Height = 1 << 10,
					.Depth = bytes >> 22,
					.NumChannels = 4,
					.Format = CU_AD_FORMAT_UNSIGNED_INT8};
	CUarray array;

	return ((__typeof__(cuArray3DCreate_v2) *)function)(&array, &desc);
}

#define ABI_ROWS(ROW) \
	ROW(cuMemAlloc_v2, "cuMemAlloc", 3020, 0, take_linear) \
	ROW(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, 0, take_pitch) \
	ROW(cuMemAllocManaged, "cuMemAllocManaged", 6000, 0, take_managed) \
	ROW(cuMemAllocAsync, "cuMemAllocAsync", 11020, 0, take_async) \
	ROW(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, 1, take_async) \
	ROW(cuMemCreate, "cuMemCreate", 10020, 0, take_virtual) \
	ROW(cuArrayCreate_v2, "cuArrayCreate", 3020, 0, take_array) \
	ROW(cuArray3DCreate_v2, "cuArray3DCreate", 3020, 0, take_array3d)

/* Where a row's function has no twin for per-thread streams, the flag gives the same one. */
#define ABI_HAS_TWIN(symbol) (strstr(symbol, "Async") != NULL)

#endif
