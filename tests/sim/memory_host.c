/*
 * Host memory the device can reach: allocated page-locked, registered, and managed. Its device
 * pointer is its host pointer. Managed memory takes device memory on its first use there.
 */
#include "memory.h"
#include "entries.h"

static CUresult host_alloc(void **ret_pointer, uint64_t bytes, unsigned flags, bool low)
{
	CUresult result = capture_forbids();
	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_pointer || !bytes || (flags & ~7u))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	uint64_t base = space_map(bytes, low);
	struct range *range = base ? range_new(RANGE_HOST, base, bytes) : NULL;
	if (range) {
		range->span = bytes;
		range->flags = flags;
		range->device = context_current()->device;
		range->context = context_current()->host;
		*ret_pointer = (void *)base;
	}
	pthread_mutex_unlock(&core_lock);
	return range ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuMemHostAlloc(void **ret_pointer, size_t bytes, unsigned int flags)
{
	return host_alloc(ret_pointer, bytes, flags, false);
}

CUresult sim_cuMemAllocHost_v2(void **ret_pointer, size_t bytes)
{
	return host_alloc(ret_pointer, bytes, 0, false);
}

CUresult sim_cuMemAllocHost(void **ret_pointer, unsigned int bytes)
{
	return host_alloc(ret_pointer, bytes, 0, true);
}

CUresult sim_cuMemFreeHost(void *pointer)
{
	CUresult result = capture_forbids();
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&core_lock);
	struct range *range = range_exact((uint64_t)pointer, RANGE_HOST);
	struct context *context = range ? range->context : NULL;
	pthread_mutex_unlock(&core_lock);
	if (!range)
		return CUDA_ERROR_INVALID_VALUE;
	queue_wait_context(context);
	pthread_mutex_lock(&core_lock);
	range = range_exact((uint64_t)pointer, RANGE_HOST);
	if (range)
		linear_free(range);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
	CUresult result = capture_forbids();
	if (result != CUDA_SUCCESS)
		return result;
	if (!pointer || !bytes || (flags & ~0xfu))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	if (range_at((uint64_t)pointer) || range_at((uint64_t)pointer + bytes - 1)) {
		result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	} else {
		struct range *range = range_new(RANGE_REGISTERED, (uint64_t)pointer, bytes);
		range->flags = flags;
		range->device = context_current()->device;
		range->context = context_current()->host;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuMemHostRegister(void *pointer, size_t bytes, unsigned int flags)
{
	return sim_cuMemHostRegister_v2(pointer, bytes, flags);
}

CUresult sim_cuMemHostUnregister(void *pointer)
{
	pthread_mutex_lock(&core_lock);
	struct range *range = range_exact((uint64_t)pointer, RANGE_REGISTERED);
	if (range)
		linear_free(range);
	pthread_mutex_unlock(&core_lock);
	return range ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

static struct range *host_range(const void *pointer)
{
	struct range *range = range_at((uint64_t)pointer);
	if (!range || (range->kind != RANGE_HOST && range->kind != RANGE_REGISTERED))
		return NULL;
	return range;
}

CUresult sim_cuMemHostGetDevicePointer_v2(CUdeviceptr *ret_address, void *pointer,
					  unsigned int flags)
{
	if (!ret_address || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	bool known = host_range(pointer) != NULL;
	pthread_mutex_unlock(&core_lock);
	if (!known)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_address = (CUdeviceptr)(uintptr_t)pointer;
	return CUDA_SUCCESS;
}

CUresult sim_cuMemHostGetDevicePointer(CUdeviceptr_v1 *ret_address, void *pointer,
				       unsigned int flags)
{
	CUdeviceptr address;
	CUresult result = sim_cuMemHostGetDevicePointer_v2(&address, pointer, flags);
	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_address || address > UINT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_address = (CUdeviceptr_v1)address;
	return CUDA_SUCCESS;
}

CUresult sim_cuMemHostGetFlags(unsigned int *ret_flags, void *pointer)
{
	if (!ret_flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct range *range = host_range(pointer);
	if (range)
		*ret_flags = range->flags;
	pthread_mutex_unlock(&core_lock);
	return range ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemAllocManaged(CUdeviceptr *ret_address, size_t bytes, unsigned int flags)
{
	CUresult result = capture_forbids();
	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_address || !bytes ||
	    (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	uint64_t base = space_map(bytes, false);
	struct range *range = base ? range_new(RANGE_MANAGED, base, bytes) : NULL;
	if (range) {
		range->span = bytes;
		range->flags = flags;
		range->device = context_current()->device;
		range->context = context_current()->host;
		*ret_address = base;
	}
	pthread_mutex_unlock(&core_lock);
	return range ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* As much as fits: managed memory may be larger than the device. */
void managed_touch(struct range *range)
{
	if (range->kind != RANGE_MANAGED || range->charged)
		return;
	uint64_t free_bytes, total;
	uint64_t want = round_up(range->size, LARGE_PAGE);
	device_memory(range->device, &free_bytes, &total);
	if (want > free_bytes)
		want = free_bytes / LARGE_PAGE * LARGE_PAGE;
	if (want && device_take(range->device, want))
		range->charged = want;
}
