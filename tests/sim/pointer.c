/*
 * What the driver says about an address.
 */
#include "memory.h"
#include "entries.h"
#include "vmm.h"

#include <string.h>

static bool on_host(const struct range *range)
{
	return range->kind == RANGE_HOST || range->kind == RANGE_REGISTERED ||
	       range->device == CU_DEVICE_CPU;
}

static const struct range *known(CUdeviceptr address)
{
	const struct range *range = range_at(address);
	return range && range->kind != RANGE_ARRAY && !range->freed ? range : NULL;
}

static bool has_host_pointer(const struct range *range)
{
	return on_host(range) || range->kind == RANGE_MANAGED;
}

static unsigned allowed_handles(const struct range *range)
{
	if (range->kind == RANGE_MAPPED)
		return (unsigned)range->handle->prop.requestedHandleTypes;
	return 0;
}

/* Needs core_lock; `range` is not NULL. */
static CUresult answer(const struct range *range, CUpointer_attribute attribute,
		       CUdeviceptr address, void *ret)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)ret = (CUcontext)range->context;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)ret = on_host(range) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)ret = address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!has_host_pointer(range))
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)ret = (void *)address;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(int *)ret = 0; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)ret = range->id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(int *)ret = range->kind == RANGE_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)ret = range->device; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(int *)ret = range->kind == RANGE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)ret = range->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: *(size_t *)ret = range->size; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(int *)ret = range->kind != RANGE_RESERVED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)ret = allowed_handles(range);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(int *)ret = !on_host(range);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned *)ret = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)ret = (CUmemoryPool)range->pool;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: *(int *)ret = 0; return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult sim_cuPointerGetAttribute(void *ret, CUpointer_attribute attribute, CUdeviceptr address)
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	const struct range *range = known(address);
	CUresult result = range ? answer(range, attribute, address, ret) : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&core_lock);
	return result;
}

/* Unlike the single form it does not fail for an unknown address: it answers with nothing. */
static void answer_nothing(CUpointer_attribute attribute, void *ret)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)ret = CU_DEVICE_INVALID; break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: *(int *)ret = 0; break;
	default: *(unsigned long long *)ret = 0; break;
	}
}

CUresult sim_cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes,
				    void **rets, CUdeviceptr address)
{
	if (!attributes || !rets)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	const struct range *range = known(address);
	for (unsigned i = 0; i < count; i++)
		if (!range || answer(range, attributes[i], address, rets[i]) != CUDA_SUCCESS)
			answer_nothing(attributes[i], rets[i]);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
				   CUdeviceptr address)
{
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	bool ok = known(address) != NULL;
	pthread_mutex_unlock(&core_lock);
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- managed memory: advice is taken silently; prefetching to a device makes it resident ---- */

static CUresult prefetch(CUdeviceptr address, size_t bytes, bool to_device, CUdevice device,
			 CUstream handle)
{
	struct stream *stream;
	CUresult result = stream_resolve(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (to_device && !device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&core_lock);
	struct range *range = range_at(address);
	if (!range || range->kind != RANGE_MANAGED || !bytes ||
	    bytes > range->size - (address - range->base)) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (to_device) {
		range->device = device;
		managed_touch(range);
	} else if (range->charged) {
		device_give(range->device, range->charged);
		range->charged = 0;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
	return prefetch(address, bytes, device != CU_DEVICE_CPU, device, stream);
}

CUresult sim_cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location,
				   unsigned int flags, CUstream stream)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return prefetch(address, bytes, location.type == CU_MEM_LOCATION_TYPE_DEVICE, location.id,
			stream);
}

static CUresult check_managed(CUdeviceptr address)
{
	pthread_mutex_lock(&core_lock);
	struct range *range = range_at(address);
	bool ok = range && range->kind == RANGE_MANAGED;
	pthread_mutex_unlock(&core_lock);
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device)
{
	(void)advice;
	(void)device;
	return bytes ? check_managed(address) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice,
			    CUmemLocation location)
{
	(void)advice;
	(void)location;
	return bytes ? check_managed(address) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemRangeGetAttribute(void *ret, size_t size, CUmem_range_attribute attribute,
				    CUdeviceptr address, size_t bytes)
{
	(void)attribute;
	if (!ret || !size || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = check_managed(address);
	if (result == CUDA_SUCCESS)
		memset(ret, 0, size);
	return result;
}

CUresult sim_cuMemRangeGetAttributes(void **rets, size_t *sizes, CUmem_range_attribute *attributes,
				     size_t count, CUdeviceptr address, size_t bytes)
{
	if (!rets || !sizes || !attributes)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		CUresult result = sim_cuMemRangeGetAttribute(rets[i], sizes[i], attributes[i],
							     address, bytes);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return CUDA_SUCCESS;
}
