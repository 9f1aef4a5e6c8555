/*
 * NVML: memory and utilisation of a device, from the shared state.
 */
#include "nvml_types.h"

static nvmlReturn_t begin(const char *function, nvmlDevice_t device, const void *out,
			  uint32_t *ret_index)
{
	nvmlReturn_t result = nvml_begin(function);
	if (result != NVML_SUCCESS)
		return result;
	int index = nvml_index(device);
	*ret_index = (uint32_t)index;
	return index < 0 || !out ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

static void enter(uint32_t index)
{
	state_lock();
	state_reap();
	time_advance(index, time_now_ns());
}

static uint64_t used_bytes(uint32_t index)
{
	enter(index);
	uint64_t used = state_used_bytes(index);
	state_unlock();
	return used;
}

/* ---- memory: v1 counts what the driver keeps for itself as used ---- */

NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *ret);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *ret);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *ret);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *ret);

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *ret)
{
	uint32_t index;
	nvmlReturn_t result = begin("nvmlDeviceGetMemoryInfo", device, ret, &index);
	if (result != NVML_SUCCESS)
		return result;
	uint64_t reserved = sim_shared->machine.reserved_bytes[index];
	ret->total = sim_shared->machine.memory_bytes[index] + reserved;
	ret->used = used_bytes(index) + reserved;
	ret->free = ret->total - ret->used;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *ret)
{
	uint32_t index;
	nvmlReturn_t result = begin("nvmlDeviceGetMemoryInfo_v2", device, ret, &index);
	if (result != NVML_SUCCESS)
		return result;
	if (ret->version != NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	ret->reserved = sim_shared->machine.reserved_bytes[index];
	ret->total = sim_shared->machine.memory_bytes[index] + ret->reserved;
	ret->used = used_bytes(index);
	ret->free = ret->total - ret->reserved - ret->used;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *ret)
{
	uint32_t index;
	nvmlReturn_t result = begin("nvmlDeviceGetBAR1MemoryInfo", device, ret, &index);
	if (result != NVML_SUCCESS)
		return result;
	*ret = (nvmlBAR1Memory_t){262144ull << 20, 262143ull << 20, 1ull << 20};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *ret)
{
	uint32_t index;
	nvmlReturn_t result = begin("nvmlDeviceGetUtilizationRates", device, ret, &index);
	if (result != NVML_SUCCESS)
		return result;
	enter(index);
	ret->gpu = sim_shared->device[index].last_busy_pct;
	ret->memory = ret->gpu / 2;
	state_unlock();
	return NVML_SUCCESS;
}
