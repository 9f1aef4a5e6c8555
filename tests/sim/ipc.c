/*
 * Legacy inter-process handles of device memory. Opening one maps the same bytes; the memory
 * lives until the last process that knows it lets go.
 */
#include "memory.h"
#include "entries.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define IPC_MAGIC 0x51c7a1bcu

/* What is in the 64 bytes of a handle. */
struct ipc_handle {
	uint32_t magic;
	uint32_t share, generation;
	uint32_t process;
	uint64_t birth; /* tells a process from a later one in the same slot */
	uint64_t offset, size;
};
_Static_assert(sizeof(struct ipc_handle) <= CU_IPC_HANDLE_SIZE, "does not fit");

CUresult sim_cuIpcGetMemHandle(CUipcMemHandle *ret_handle, CUdeviceptr address)
{
	if (!ret_handle)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct range *range = range_at(address);
	struct ipc_handle handle = {.magic = IPC_MAGIC};
	int share;
	if (range && range->kind == RANGE_DEVICE && !range->freed &&
	    linear_share(range, &share, &handle.offset)) {
		state_lock();
		handle.generation = sim_shared->share[share].generation;
		handle.birth = sim_shared->process[sim.slot].birth;
		state_unlock();
		handle.share = (uint32_t)share;
		handle.process = sim.slot;
		handle.size = range->size;
		memset(ret_handle, 0, sizeof(*ret_handle));
		memcpy(ret_handle, &handle, sizeof(handle));
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

static struct range *open_share(const struct ipc_handle *handle)
{
	uint64_t bytes = sim_shared->share[handle->share].bytes;
	int fd = state_share_data(handle->share);
	if (fd < 0)
		return NULL;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	struct range *range =
		range_new(RANGE_IMPORTED, (uint64_t)at + handle->offset, handle->size);
	range->span = bytes;
	range->map_base = (uint64_t)at;
	range->share = (int)handle->share + 1;
	return range;
}

CUresult sim_cuIpcOpenMemHandle_v2(CUdeviceptr *ret_address, CUipcMemHandle opaque,
				   unsigned int flags)
{
	struct ipc_handle handle;
	memcpy(&handle, &opaque, sizeof(handle));
	if (!ret_address || (flags & ~1u) || handle.magic != IPC_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = CUDA_ERROR_MAP_FAILED;
	pthread_mutex_lock(&core_lock);
	state_lock();
	bool own =
		handle.process == sim.slot && handle.birth == sim_shared->process[sim.slot].birth;
	bool known = !own && state_share_get(handle.share, handle.generation, sim.slot);
	state_unlock();
	struct range *range = known ? open_share(&handle) : NULL;
	if (range) {
		range->device = context_current()->device;
		range->context = context_current()->host;
		*ret_address = range->base;
		result = CUDA_SUCCESS;
	} else if (known) {
		state_lock();
		state_share_put(handle.share, sim.slot);
		state_unlock();
	} else if (own) {
		result = CUDA_ERROR_INVALID_CONTEXT;
	} else {
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuIpcCloseMemHandle(CUdeviceptr address)
{
	pthread_mutex_lock(&core_lock);
	struct range *range = range_exact(address, RANGE_IMPORTED);
	if (range)
		linear_free(range);
	pthread_mutex_unlock(&core_lock);
	return range ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
