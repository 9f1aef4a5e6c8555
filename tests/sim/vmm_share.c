/*
 * Handles of physical memory between processes: export as a file descriptor, import from one.
 */
#include "entries.h"
#include "vmm.h"

#include <sys/mman.h>
#include <unistd.h>

/* The handle's bytes move into a share: contents too, and every mapping follows. */
static bool make_share(struct handle *handle)
{
	if (handle->share)
		return true;
	if (!handle_on_device(handle))
		return false;
	uint32_t physical = sim.device[handle->prop.location.id].physical;
	state_lock();
	int share = state_share_new(sim.slot, physical, handle->bytes);
	state_unlock();
	int fd = share < 0 ? -1 : state_share_data((uint32_t)share);
	if (fd < 0)
		return false;
	void *from = mmap(NULL, handle->bytes, PROT_READ, MAP_SHARED, memory_file,
			  (off_t)handle->offset);
	for (uint64_t at = 0; from != MAP_FAILED && at < handle->bytes; at += 4096) {
		off_t data = lseek(memory_file, (off_t)(handle->offset + at), SEEK_DATA);
		if (data < 0 || (uint64_t)data >= handle->offset + handle->bytes)
			break;
		at = ((uint64_t)data - handle->offset) & ~4095ull;
		if (pwrite(fd, (char *)from + at, 4096, (off_t)at) != 4096)
			break;
	}
	if (from != MAP_FAILED)
		munmap(from, handle->bytes);
	handle->share = share + 1;
	for (size_t i = 0; i < range_count(); i++) {
		struct range *range = range_number(i);
		if (range->kind == RANGE_MAPPED && range->handle == handle)
			handle_map(handle, range->base, range->size, PROT_READ | PROT_WRITE);
	}
	return true;
}

CUresult sim_cuMemExportToShareableHandle(void *ret_shareable, CUmemGenericAllocationHandle value,
					  CUmemAllocationHandleType type, unsigned long long flags)
{
	if (!ret_shareable || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct handle *handle = handle_of(value);
	if (handle && ((int)handle->prop.requestedHandleTypes & (int)type) && make_share(handle)) {
		state_lock();
		int fd = state_share_export((uint32_t)handle->share - 1);
		state_unlock();
		if (fd >= 0)
			*(int *)ret_shareable = fd;
		result = fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

static CUdevice device_with(uint32_t physical)
{
	for (int i = 0; i < sim.device_count; i++)
		if (sim.device[i].physical == physical)
			return i;
	return -1;
}

CUresult sim_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *ret_handle,
					    void *shareable, CUmemAllocationHandleType type)
{
	if (!ret_handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	state_lock();
	int share = state_share_of((int)(intptr_t)shareable);
	bool known = share >= 0 && state_share_get((uint32_t)share,
						   sim_shared->share[share].generation, sim.slot);
	uint64_t bytes = known ? sim_shared->share[share].bytes : 0;
	CUdevice device = known ? device_with(sim_shared->share[share].device) : -1;
	if (known && device < 0)
		state_share_put((uint32_t)share, sim.slot);
	state_unlock();
	if (device >= 0) {
		CUmemAllocationProp prop = {
			.type = CU_MEM_ALLOCATION_TYPE_PINNED,
			.requestedHandleTypes = type,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
		};
		struct handle *handle = object_new(OBJECT_HANDLE, sizeof(*handle));
		handle->prop = prop;
		handle->bytes = bytes;
		handle->refs = 1;
		handle->share = share + 1;
		handle->offset = NO_OFFSET;
		*ret_handle = (CUmemGenericAllocationHandle)(uintptr_t)handle;
	}
	pthread_mutex_unlock(&core_lock);
	return device < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
