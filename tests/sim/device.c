/*
 * Devices as this process sees them, and the memory they have left.
 */
#include "sim.h"
#include "entries.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

CUresult device_setup(void)
{
	uint32_t physical[SIM_MAX_DEVICES];
	state_lock();
	int visible = visible_devices(physical);
	state_unlock();
	sim.device_count = visible > 0 ? visible : 0;
	for (int i = 0; i < sim.device_count; i++)
		sim.device[i] = (struct device){.physical = physical[i]};
	if (visible < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	return visible ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

bool device_valid(CUdevice device)
{
	return device >= 0 && device < sim.device_count;
}

bool device_take(CUdevice device, uint64_t bytes)
{
	state_lock();
	bool taken = state_take_bytes(sim.slot, sim.device[device].physical, bytes);
	state_unlock();
	return taken;
}

void device_give(CUdevice device, uint64_t bytes)
{
	state_lock();
	state_give_bytes(sim.slot, sim.device[device].physical, bytes);
	state_unlock();
}

void device_memory(CUdevice device, uint64_t *ret_free, uint64_t *ret_total)
{
	uint32_t physical = sim.device[device].physical;
	state_lock();
	state_reap();
	uint64_t total = sim_shared->machine.memory_bytes[physical];
	uint64_t used = state_used_bytes(physical);
	state_unlock();
	*ret_total = total;
	*ret_free = used < total ? total - used : 0;
}

CUresult sim_cuDeviceGetCount(int *ret_count)
{
	if (!ret_count)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_count = sim.device_count;
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGet(CUdevice *ret_device, int ordinal)
{
	if (!ret_device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_device = ordinal;
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetName(char *ret_name, int length, CUdevice device)
{
	if (!ret_name || length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(ret_name, (size_t)length, "NVIDIA H200 (simulated)%s",
		 sim_shared->machine.mig ? " MIG 1g.18gb" : "");
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetUuid_v2(CUuuid *ret_uuid, CUdevice device)
{
	if (!ret_uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	uint8_t bytes[16];
	config_device_uuid(&sim_shared->machine, sim.device[device].physical, bytes);
	memcpy(ret_uuid->bytes, bytes, sizeof(bytes));
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceTotalMem_v2(size_t *ret_bytes, CUdevice device)
{
	if (!ret_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_bytes = sim_shared->machine.memory_bytes[sim.device[device].physical];
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceTotalMem(unsigned int *ret_bytes, CUdevice device)
{
	size_t bytes;
	if (!ret_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = sim_cuDeviceTotalMem_v2(&bytes, device);
	if (result == CUDA_SUCCESS)
		*ret_bytes = bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes;
	return result;
}

CUresult sim_cuDeviceGetPCIBusId(char *ret_text, int length, CUdevice device)
{
	if (!ret_text || length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(ret_text, (size_t)length, "0000:%02X:00.0",
		 config_pci_bus(sim.device[device].physical));
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetByPCIBusId(CUdevice *ret_device, const char *text)
{
	unsigned domain, bus, slot;
	if (!ret_device || !text)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
		domain = 0;
		if (sscanf(text, "%x:%x", &bus, &slot) != 2)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (int i = 0; i < sim.device_count; i++) {
		if (domain || slot || bus != config_pci_bus(sim.device[i].physical))
			continue;
		*ret_device = i;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuDeviceComputeCapability(int *ret_major, int *ret_minor, CUdevice device)
{
	if (!ret_major || !ret_minor)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_major = 9;
	*ret_minor = 0;
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetProperties(CUdevprop *ret, CUdevice device)
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret = (CUdevprop){
		.maxThreadsPerBlock = 1024,
		.maxThreadsDim = {1024, 1024, 64},
		.maxGridSize = {2147483647, 65535, 65535},
		.sharedMemPerBlock = 49152,
		.totalConstantMemory = 65536,
		.SIMDWidth = 32,
		.memPitch = 2147483647,
		.regsPerBlock = 65536,
		.clockRate = 1980000,
		.textureAlign = 512,
	};
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceCanAccessPeer(int *ret_can, CUdevice device, CUdevice peer)
{
	if (!ret_can)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device) || !device_valid(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_can = device != peer;
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetP2PAttribute(int *ret_value, CUdevice_P2PAttribute attribute,
				     CUdevice device, CUdevice peer)
{
	if (!ret_value || device == peer)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device) || !device_valid(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_value = attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : 1;
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetExecAffinitySupport(int *ret_supported, CUexecAffinityType type,
					    CUdevice device)
{
	if (!ret_supported || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_supported = sim_shared->machine.mps ? 1 : 0;
	return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetLuid(char *ret_luid, unsigned int *ret_mask, CUdevice device)
{
	(void)ret_luid;
	(void)ret_mask;
	(void)device;
	return CUDA_ERROR_NOT_SUPPORTED; /* a notion of another operating system */
}

CUresult sim_cuDeviceGetTexture1DLinearMaxWidth(size_t *ret_width, CUarray_format format,
						unsigned channels, CUdevice device)
{
	(void)format;
	if (!ret_width || !channels)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_width = 268435456;
	return CUDA_SUCCESS;
}

CUresult sim_cuMemGetInfo_v2(size_t *ret_free, size_t *ret_total)
{
	if (!ret_free && !ret_total)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t free_bytes, total;
	device_memory(context_current()->device, &free_bytes, &total);
	if (ret_free)
		*ret_free = free_bytes;
	if (ret_total)
		*ret_total = total;
	return CUDA_SUCCESS;
}

CUresult sim_cuMemGetInfo(unsigned int *ret_free, unsigned int *ret_total)
{
	size_t free_bytes, total;
	CUresult result = sim_cuMemGetInfo_v2(&free_bytes, &total);
	if (result == CUDA_SUCCESS && ret_free)
		*ret_free = free_bytes > UINT32_MAX ? UINT32_MAX : (unsigned)free_bytes;
	if (result == CUDA_SUCCESS && ret_total)
		*ret_total = total > UINT32_MAX ? UINT32_MAX : (unsigned)total;
	return result;
}
