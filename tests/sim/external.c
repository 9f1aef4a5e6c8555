/*
 * External memory and semaphores: another API's allocation, mapped. It takes no device memory here,
 * because whoever allocated it has taken it.
 */
#include "memory.h"
#include "entries.h"

#include <unistd.h>

struct external {
	struct object object;
	uint64_t bytes;
};

struct semaphore {
	struct object object;
};

CUresult sim_cuImportExternalMemory(CUexternalMemory *ret_memory,
				    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
	if (!ret_memory || !desc || !desc->size)
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) {
		if (desc->handle.fd < 0)
			return CUDA_ERROR_INVALID_VALUE;
		close(desc->handle.fd); /* the import owns it */
	}
	pthread_mutex_lock(&core_lock);
	struct external *external = object_new(OBJECT_EXTERNAL, sizeof(*external));
	external->bytes = desc->size;
	pthread_mutex_unlock(&core_lock);
	*ret_memory = (CUexternalMemory)external;
	return CUDA_SUCCESS;
}

CUresult sim_cuExternalMemoryGetMappedBuffer(CUdeviceptr *ret_address, CUexternalMemory handle,
					     const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	struct external *external = object_check(handle, OBJECT_EXTERNAL);
	if (!ret_address || !desc || !desc->size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!external)
		return CUDA_ERROR_INVALID_HANDLE;
	if (desc->offset > external->bytes || desc->size > external->bytes - desc->offset)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	uint64_t base = space_map(desc->size, false);
	struct range *range = base ? range_new(RANGE_EXTERNAL, base, desc->size) : NULL;
	if (range) {
		range->span = desc->size;
		range->device = context_current()->device;
		range->context = context_current()->host;
		*ret_address = base;
	}
	pthread_mutex_unlock(&core_lock);
	return range ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuDestroyExternalMemory(CUexternalMemory handle)
{
	struct external *external = object_check(handle, OBJECT_EXTERNAL);
	if (!external)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&core_lock);
	object_destroy(external);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuImportExternalSemaphore(CUexternalSemaphore *ret_semaphore,
				       const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc)
{
	if (!ret_semaphore || !desc)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	*ret_semaphore = object_new(OBJECT_SEMAPHORE, sizeof(struct semaphore));
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuDestroyExternalSemaphore(CUexternalSemaphore handle)
{
	if (!object_check(handle, OBJECT_SEMAPHORE))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&core_lock);
	object_destroy(handle);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

/* Semaphores of other devices are always as the program wishes. */

CUresult sim_cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
					     const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params,
					     unsigned int count, CUstream handle)
{
	struct stream *stream;
	if (!semaphores || !params || !count)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_resolve(handle, &stream);
}

CUresult sim_cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
					   const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params,
					   unsigned int count, CUstream handle)
{
	struct stream *stream;
	if (!semaphores || !params || !count)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_resolve(handle, &stream);
}
