/*
 * Virtual memory management: physical memory as handles (cuMemCreate), address ranges, and maps of
 * the one into the other. A handle lives until it was released, unmapped everywhere and, if it was
 * exported, every descriptor of it is closed. Memory of the host takes nothing from a device.
 *
 * The bytes are those of a memory file of this process, or of the share once exported, so that two
 * mappings of a handle, and those of two processes, show the same.
 */
#include "memory.h"
#include "entries.h"
#include "vmm.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int memory_file = -1;
static uint64_t memory_file_end;

struct handle *handle_of(CUmemGenericAllocationHandle handle)
{
	return object_check((void *)(uintptr_t)handle, OBJECT_HANDLE);
}

static bool open_memory_file(void)
{
	if (memory_file < 0)
		memory_file = memfd_create("cuota-sim-memory", MFD_CLOEXEC);
	return memory_file >= 0;
}

static struct handle *handle_new(const CUmemAllocationProp *prop, uint64_t bytes)
{
	if (!open_memory_file())
		return NULL;
	uint64_t end = memory_file_end + bytes;
	if (ftruncate(memory_file, (off_t)end) != 0)
		return NULL;
	struct handle *handle = object_new(OBJECT_HANDLE, sizeof(*handle));
	handle->prop = *prop;
	handle->bytes = bytes;
	handle->refs = 1;
	handle->offset = memory_file_end;
	memory_file_end = end;
	return handle;
}

/* Gone when neither released nor mapped anywhere. */
static void handle_drop(struct handle *handle)
{
	if (handle->refs || handle->maps)
		return;
	if (handle->share) {
		state_lock();
		state_share_put((uint32_t)handle->share - 1, sim.slot);
		state_unlock();
	} else if (handle_on_device(handle)) {
		device_give(handle->prop.location.id, handle->bytes);
	}
	if (handle->offset != NO_OFFSET)
		fallocate(memory_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)handle->offset, (off_t)handle->bytes);
	object_destroy(handle);
}

static CUresult check_prop(const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	switch (prop->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return device_valid(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return prop->location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult sim_cuMemCreate(CUmemGenericAllocationHandle *ret_handle, size_t bytes,
			 const CUmemAllocationProp *prop, unsigned long long flags)
{
	if (!ret_handle || !bytes || flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = check_prop(prop);
	if (result != CUDA_SUCCESS)
		return result;
	if (bytes % LARGE_PAGE)
		return CUDA_ERROR_INVALID_VALUE;
	bool device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	pthread_mutex_lock(&core_lock);
	if (device && !device_take(prop->location.id, bytes)) {
		pthread_mutex_unlock(&core_lock);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	struct handle *handle = handle_new(prop, bytes);
	if (!handle && device)
		device_give(prop->location.id, bytes);
	pthread_mutex_unlock(&core_lock);
	if (!handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_handle = (CUmemGenericAllocationHandle)(uintptr_t)handle;
	return CUDA_SUCCESS;
}

void handle_let_go(struct handle *handle)
{
	handle->maps--;
	handle_drop(handle);
}

CUresult sim_cuMemRelease(CUmemGenericAllocationHandle value)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct handle *handle = handle_of(value);
	if (handle && handle->refs) {
		handle->refs--;
		handle_drop(handle);
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuMemAddressReserve(CUdeviceptr *ret_address, size_t bytes, size_t alignment,
				 CUdeviceptr hint, unsigned long long flags)
{
	if (!ret_address || !bytes || bytes % LARGE_PAGE || flags ||
	    (alignment && (alignment & (alignment - 1))))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t align = alignment > LARGE_PAGE ? alignment : LARGE_PAGE;
	uint64_t slack = align - 4096;
	char *at = mmap((void *)hint, bytes + slack, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t base = round_up((uint64_t)at, align);
	uint64_t before = base - (uint64_t)at;
	if (before)
		munmap(at, before);
	if (slack > before)
		munmap((void *)(base + bytes), slack - before);
	pthread_mutex_lock(&core_lock);
	struct range *range = range_new(RANGE_RESERVED, base, bytes);
	range->span = bytes;
	pthread_mutex_unlock(&core_lock);
	*ret_address = base;
	return CUDA_SUCCESS;
}

/* Calls fn for each mapping inside [base, base + bytes); false when they do not fill it exactly. */
static bool each_map(uint64_t base, uint64_t bytes, void (*fn)(struct range *, void *), void *data)
{
	uint64_t at = base;
	while (at < base + bytes) {
		struct range *range = range_exact(at, RANGE_MAPPED);
		if (!range || range->base + range->size > base + bytes)
			return false;
		at += range->size;
		if (fn)
			fn(range, data);
	}
	return true;
}

static bool any_map(uint64_t base, uint64_t bytes)
{
	for (size_t i = range_first(base); i < range_count(); i++) {
		struct range *range = range_number(i);
		if (range->base >= base + bytes)
			break;
		if (range->kind == RANGE_MAPPED)
			return true;
	}
	struct range *range = range_at(base);
	return range && range->kind == RANGE_MAPPED;
}

CUresult sim_cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct range *range = range_exact(address, RANGE_RESERVED);
	if (range && range->size == bytes && !any_map(address, bytes)) {
		space_unmap(address, bytes);
		range_delete(range);
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

void *handle_map(struct handle *handle, uint64_t address, uint64_t bytes, int prot)
{
	int fd = handle->share ? state_share_data((uint32_t)handle->share - 1) : memory_file;
	if (fd < 0)
		return MAP_FAILED;
	void *at = mmap((void *)address, bytes, prot, MAP_SHARED | MAP_FIXED, fd,
			handle->share ? 0 : (off_t)handle->offset);
	return at;
}

static struct range *reserved_around(uint64_t address, uint64_t bytes)
{
	for (size_t i = range_first(address + 1); i; i--) {
		struct range *range = range_number(i - 1);
		if (range->kind == RANGE_RESERVED)
			return address + bytes <= range->base + range->size ? range : NULL;
		if (range->kind != RANGE_MAPPED)
			return NULL;
	}
	return NULL;
}

CUresult sim_cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
		      CUmemGenericAllocationHandle value, unsigned long long flags)
{
	if (!address || !bytes || address % LARGE_PAGE || bytes % LARGE_PAGE || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (offset)
		return CUDA_ERROR_NOT_SUPPORTED; /* as driver 580 */
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct handle *handle = handle_of(value);
	if (handle && bytes <= handle->bytes && reserved_around(address, bytes) &&
	    !any_map(address, bytes) &&
	    handle_map(handle, address, bytes, PROT_NONE) != MAP_FAILED) {
		struct range *range = range_new(RANGE_MAPPED, address, bytes);
		range->handle = handle;
		range->device = handle_on_device(handle) ? handle->prop.location.id : CU_DEVICE_CPU;
		handle->maps++;
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

static void unmap(struct range *range, void *unused)
{
	(void)unused;
	struct handle *handle = range->handle;
	mmap((void *)range->base, range->size, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	range_delete(range);
	handle_let_go(handle);
}

CUresult sim_cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	if (!address || !bytes)
		return result;
	pthread_mutex_lock(&core_lock);
	if (each_map(address, bytes, NULL, NULL)) {
		each_map(address, bytes, unmap, NULL);
		result = CUDA_SUCCESS;
	} else if (reserved_around(address, bytes) && !any_map(address, bytes)) {
		result = CUDA_SUCCESS; /* nothing there: fine with driver 580 */
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

static void set_access(struct range *range, void *data)
{
	const CUmemAccessDesc *desc = data;
	if (desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		range->access = (int)desc->flags;
	/* the simulator's copies need to read and write wherever a device may */
	if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
		mprotect((void *)range->base, range->size, PROT_READ | PROT_WRITE);
}

CUresult sim_cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *desc,
			    size_t count)
{
	if (!address || !bytes || !desc || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
		    !device_valid(desc[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	if (each_map(address, bytes, NULL, NULL)) {
		for (size_t i = 0; i < count; i++)
			each_map(address, bytes, set_access, (void *)(uintptr_t)&desc[i]);
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuMemGetAccess(unsigned long long *ret_flags, const CUmemLocation *location,
			    CUdeviceptr address)
{
	if (!ret_flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct range *range = range_at(address);
	bool mapped = range && range->kind == RANGE_MAPPED;
	if (mapped)
		*ret_flags = (unsigned long long)range->access;
	pthread_mutex_unlock(&core_lock);
	return mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemGetAllocationGranularity(size_t *ret_bytes, const CUmemAllocationProp *prop,
					   CUmemAllocationGranularity_flags option)
{
	if (!ret_bytes || (unsigned)option > 1)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = check_prop(prop);
	if (result == CUDA_SUCCESS)
		*ret_bytes = LARGE_PAGE;
	return result;
}

CUresult sim_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *ret_prop,
						    CUmemGenericAllocationHandle value)
{
	pthread_mutex_lock(&core_lock);
	struct handle *handle = handle_of(value);
	if (handle && ret_prop)
		*ret_prop = handle->prop;
	pthread_mutex_unlock(&core_lock);
	return handle && ret_prop ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *ret_handle, void *address)
{
	if (!ret_handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	struct range *range = range_at((uint64_t)address);
	bool mapped = range && range->kind == RANGE_MAPPED;
	if (mapped) {
		range->handle->refs++;
		*ret_handle = (CUmemGenericAllocationHandle)(uintptr_t)range->handle;
	}
	pthread_mutex_unlock(&core_lock);
	return mapped ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
