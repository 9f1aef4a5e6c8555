/*
 * Linear device memory: cuMemAlloc, pitched, managed, each ABI, and the free that takes any of them.
 *
 * Charged by the 2 MiB pages that the driver's answer stands on (memory/blocks.h).
 */
#include "hooks/mem_call.h"
#include "hooks/mem_pool.h"

/* Rows of pitched memory start at multiples of this on every device so far; made true after the call. */
#define PITCH_BYTES 512u

/* What is not ours (0, imports, graph memory, unknown) goes straight on. */
static CUresult give_back(CUdeviceptr address)
{
	struct memory *memory = mem_of_process();
	struct charge entry;
	CUresult result;

	/* Off before the driver is asked: the instant it has let go, another thread may get the same address. */
	if (!memory || mem_take_address(memory, address, &entry))
		return real.cuMemFree_v2(address);
	result = real.cuMemFree_v2(address);
	mem_freed_address(memory, &entry, result);
	return result;
}

static CUresult linear_end(struct mem_call *call, CUresult result, CUdeviceptr address,
			   uint64_t bytes)
{
	struct charge entry;

	if (result != CUDA_SUCCESS)
		return mem_drop(call, result);
	entry = mem_entry(call, AT_ADDRESS, address, bytes);
	if (memory_enter_linear(call->memory, &call->hold, &entry, &call->refusal)) {
		real.cuMemFree_v2(address);
		return mem_refuse(call);
	}
	if (!mem_outgrown(call))
		return CUDA_SUCCESS;
	give_back(address);
	return mem_refuse_made(call);
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	struct mem_call call;
	CUdeviceptr address = 0;
	CUresult result;

	if (!dptr || !bytesize)
		return real.cuMemAlloc_v2(dptr, bytesize);
	switch (mem_begin_linear(&call, CHARGE_LINEAR, bytesize)) {
	case MEM_PASS: return real.cuMemAlloc_v2(dptr, bytesize);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuMemAlloc_v2(&address, bytesize);
	result = linear_end(&call, result, address, bytesize);
	if (result == CUDA_SUCCESS)
		*dptr = address;
	return result;
}

CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
	struct mem_call call;
	CUdeviceptr_v1 address = 0;
	CUresult result;

	if (!dptr || !bytesize)
		return real.cuMemAlloc(dptr, bytesize);
	switch (mem_begin_linear(&call, CHARGE_LINEAR, bytesize)) {
	case MEM_PASS: return real.cuMemAlloc(dptr, bytesize);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuMemAlloc(&address, bytesize);
	result = linear_end(&call, result, address, bytesize);
	if (result == CUDA_SUCCESS)
		*dptr = address;
	return result;
}

/* The worst row that the driver may choose; saturates. */
static uint64_t pitched_bytes(uint64_t width, uint64_t height)
{
	uint64_t pitch = (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES, bytes;

	if (pitch < width || __builtin_mul_overflow(pitch, height, &bytes))
		return UINT64_MAX;
	return bytes;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
			    unsigned int ElementSizeBytes)
{
	uint64_t most = pitched_bytes(WidthInBytes, Height);
	struct mem_call call;
	CUdeviceptr address = 0;
	size_t pitch = 0;
	CUresult result;

	if (!dptr || !pPitch || !most)
		return real.cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height,
					       ElementSizeBytes);
	switch (mem_begin_linear(&call, CHARGE_LINEAR, most)) {
	case MEM_PASS:
		return real.cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height,
					       ElementSizeBytes);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuMemAllocPitch_v2(&address, &pitch, WidthInBytes, Height, ElementSizeBytes);
	result = linear_end(&call, result, address, (uint64_t)pitch * Height);
	if (result == CUDA_SUCCESS) {
		*dptr = address;
		*pPitch = pitch;
	}
	return result;
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch, unsigned int WidthInBytes,
			 unsigned int Height, unsigned int ElementSizeBytes)
{
	uint64_t most = pitched_bytes(WidthInBytes, Height);
	struct mem_call call;
	CUdeviceptr_v1 address = 0;
	unsigned int pitch = 0;
	CUresult result;

	if (!dptr || !pPitch || !most)
		return real.cuMemAllocPitch(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
	switch (mem_begin_linear(&call, CHARGE_LINEAR, most)) {
	case MEM_PASS:
		return real.cuMemAllocPitch(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuMemAllocPitch(&address, &pitch, WidthInBytes, Height, ElementSizeBytes);
	result = linear_end(&call, result, address, (uint64_t)pitch * Height);
	if (result == CUDA_SUCCESS) {
		*dptr = address;
		*pPitch = pitch;
	}
	return result;
}

/* Where managed memory is changes under way; it may all be on the device, so it is charged as if it were. */
CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	struct mem_call call;
	CUdeviceptr address = 0;
	CUresult result;

	if (!dptr || !bytesize)
		return real.cuMemAllocManaged(dptr, bytesize, flags);
	switch (mem_begin_linear(&call, CHARGE_MANAGED, bytesize)) {
	case MEM_PASS: return real.cuMemAllocManaged(dptr, bytesize, flags);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuMemAllocManaged(&address, bytesize, flags);
	result = linear_end(&call, result, address, bytesize);
	if (result == CUDA_SUCCESS)
		*dptr = address;
	return result;
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	return give_back(dptr);
}

CUresult cuMemFree(CUdeviceptr_v1 dptr)
{
	struct memory *memory = mem_of_process();
	struct charge entry;
	CUresult result;

	if (!memory || mem_take_address(memory, dptr, &entry))
		return real.cuMemFree(dptr);
	result = real.cuMemFree(dptr);
	mem_freed_address(memory, &entry, result);
	return result;
}
