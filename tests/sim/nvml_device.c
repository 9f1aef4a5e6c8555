/*
 * NVML: which devices there are, and their fixed properties.
 */
#include "nvml_types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Begins a call on a device; leaves its index. */
static nvmlReturn_t begin(const char *function, nvmlDevice_t device, const void *out,
			  int *ret_index)
{
	nvmlReturn_t result = nvml_begin(function);
	if (result != NVML_SUCCESS)
		return result;
	*ret_index = nvml_index(device);
	return *ret_index < 0 || !out ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

static nvmlReturn_t put_text(const char *text, char *out, unsigned length)
{
	if (length <= strlen(text))
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(out, text);
	return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *ret_count);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *ret_count);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *ret_device);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *ret_device);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *ret_device);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id,
							  nvmlDevice_t *ret_device);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id,
						       nvmlDevice_t *ret_device);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned length);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *ret_index);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *ret_minor);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *ret_pci);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *ret_pci);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *ret_pci);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor,
						  unsigned *ret_celsius);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned type,
						unsigned *ret_mhz);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned type,
						   unsigned *ret_mhz);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *ret_major,
							    int *ret_minor);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *ret_now,
					      unsigned *ret_pending);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned *ret_now,
					      unsigned *ret_pending);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned type,
						     unsigned counter,
						     unsigned long long *ret_count);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device,
								      unsigned *ret_least,
								      unsigned *ret_most);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned *ret_pct);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned which,
							     nvmlDevice_t *ret_device);
NVML_EXPORT nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, unsigned mode);

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *ret_count)
{
	nvmlReturn_t result = nvml_begin("nvmlDeviceGetCount_v2");
	if (result != NVML_SUCCESS)
		return result;
	if (!ret_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_count = sim_shared->machine.device_count;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned *ret_count)
{
	return nvmlDeviceGetCount_v2(ret_count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *ret_device)
{
	nvmlReturn_t result = nvml_begin("nvmlDeviceGetHandleByIndex_v2");
	if (result != NVML_SUCCESS)
		return result;
	if (!ret_device || index >= sim_shared->machine.device_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_device = nvml_device(index);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *ret_device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, ret_device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *ret_device)
{
	nvmlReturn_t result = nvml_begin("nvmlDeviceGetHandleByUUID");
	if (result != NVML_SUCCESS)
		return result;
	if (!uuid || !ret_device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < sim_shared->machine.device_count; i++) {
		char text[48];
		config_uuid_text(&sim_shared->machine, i, text);
		if (strcasecmp(text, uuid) != 0)
			continue;
		*ret_device = nvml_device(i);
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *ret_device)
{
	unsigned domain, bus, slot;
	nvmlReturn_t result = nvml_begin("nvmlDeviceGetHandleByPciBusId_v2");
	if (result != NVML_SUCCESS)
		return result;
	if (!bus_id || !ret_device || sscanf(bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < sim_shared->machine.device_count; i++) {
		if (domain || slot || bus != config_pci_bus(i))
			continue;
		*ret_device = nvml_device(i);
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *ret_device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(bus_id, ret_device);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
	int index;
	nvmlReturn_t result = begin("nvmlDeviceGetName", device, name, &index);
	if (result != NVML_SUCCESS)
		return result;
	return put_text("NVIDIA H200 (simulated)", name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
	int index;
	nvmlReturn_t result = begin("nvmlDeviceGetUUID", device, uuid, &index);
	if (result != NVML_SUCCESS)
		return result;
	char text[48];
	config_uuid_text(&sim_shared->machine, (uint32_t)index, text);
	return put_text(text, uuid, length);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned length)
{
	int index;
	nvmlReturn_t result = begin("nvmlDeviceGetSerial", device, serial, &index);
	if (result != NVML_SUCCESS)
		return result;
	char text[32];
	snprintf(text, sizeof(text), "16537240%05d", index);
	return put_text(text, serial, length);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *ret_index)
{
	int index;
	nvmlReturn_t result = begin("nvmlDeviceGetIndex", device, ret_index, &index);
	if (result != NVML_SUCCESS)
		return result;
	*ret_index = (unsigned)index;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *ret_minor)
{
	int index;
	nvmlReturn_t result = begin("nvmlDeviceGetMinorNumber", device, ret_minor, &index);
	if (result != NVML_SUCCESS)
		return result;
	*ret_minor = (unsigned)index;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *ret_pci)
{
	int index;
	nvmlReturn_t result = begin("nvmlDeviceGetPciInfo_v3", device, ret_pci, &index);
	if (result != NVML_SUCCESS)
		return result;
	memset(ret_pci, 0, sizeof(*ret_pci));
	ret_pci->bus = config_pci_bus((uint32_t)index);
	ret_pci->pciDeviceId = 0x233510de;
	ret_pci->pciSubSystemId = 0x18bf10de;
	snprintf(ret_pci->busId, sizeof(ret_pci->busId), "00000000:%02X:00.0", ret_pci->bus);
	snprintf(ret_pci->busIdLegacy, sizeof(ret_pci->busIdLegacy), "0000:%02X:00.0",
		 ret_pci->bus);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *ret_pci)
{
	return nvmlDeviceGetPciInfo_v3(device, ret_pci);
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *ret_pci)
{
	return nvmlDeviceGetPciInfo_v3(device, ret_pci);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *ret_celsius)
{
	int index;
	nvmlReturn_t result = begin("nvmlDeviceGetTemperature", device, ret_celsius, &index);
	if (result != NVML_SUCCESS)
		return result;
	*ret_celsius = 38;
	return sensor ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned type, unsigned *ret_mhz)
{
	int index;
	nvmlReturn_t result = begin("nvmlDeviceGetClockInfo", device, ret_mhz, &index);
	if (result != NVML_SUCCESS)
		return result;
	static const unsigned mhz[4] = {1980, 1980, 3201, 1830};
	if (type > 3)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_mhz = mhz[type];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned type, unsigned *ret_mhz)
{
	return nvmlDeviceGetClockInfo(device, type, ret_mhz);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *ret_major, int *ret_minor)
{
	int index;
	nvmlReturn_t result =
		begin("nvmlDeviceGetCudaComputeCapability", device, ret_major, &index);
	if (result != NVML_SUCCESS)
		return result;
	if (!ret_minor)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_major = 9;
	*ret_minor = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *ret_now, unsigned *ret_pending)
{
	int index;
	nvmlReturn_t result = begin("nvmlDeviceGetMigMode", device, ret_now, &index);
	if (result != NVML_SUCCESS)
		return result;
	if (!ret_pending)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_now = *ret_pending = sim_shared->machine.mig;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned *ret_now, unsigned *ret_pending)
{
	int index;
	nvmlReturn_t result = begin("nvmlDeviceGetEccMode", device, ret_now, &index);
	if (result != NVML_SUCCESS)
		return result;
	if (!ret_pending)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_now = *ret_pending = 1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned type, unsigned counter,
					 unsigned long long *ret_count)
{
	int index;
	nvmlReturn_t result = begin("nvmlDeviceGetTotalEccErrors", device, ret_count, &index);
	if (result != NVML_SUCCESS)
		return result;
	(void)type;
	(void)counter;
	*ret_count = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned *ret_least,
							  unsigned *ret_most)
{
	int index;
	nvmlReturn_t result =
		begin("nvmlDeviceGetPowerManagementLimitConstraints", device, ret_least, &index);
	if (result != NVML_SUCCESS)
		return result;
	if (!ret_most)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_least = 200000;
	*ret_most = 700000;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned *ret_pct)
{
	int index;
	nvmlReturn_t result = begin("nvmlDeviceGetFanSpeed", device, ret_pct, &index);
	if (result != NVML_SUCCESS)
		return result;
	return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned which,
						 nvmlDevice_t *ret_device)
{
	int index;
	nvmlReturn_t result =
		begin("nvmlDeviceGetMigDeviceHandleByIndex", device, ret_device, &index);
	if (result != NVML_SUCCESS)
		return result;
	(void)which;
	return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, unsigned mode)
{
	int index;
	nvmlReturn_t result = begin("nvmlDeviceSetComputeMode", device, device, &index);
	if (result != NVML_SUCCESS)
		return result;
	return mode ? NVML_ERROR_NO_PERMISSION : NVML_SUCCESS;
}

/* Properties that are one number. */
#define NUMBER(name, number) \
	NVML_EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned *ret); \
	nvmlReturn_t name(nvmlDevice_t device, unsigned *ret) \
	{ \
		int index; \
		nvmlReturn_t result = begin(#name, device, ret, &index); \
		if (result == NVML_SUCCESS) \
			*ret = number; \
		return result; \
	}
NUMBER(nvmlDeviceGetBrand, 14)
NUMBER(nvmlDeviceGetArchitecture, 9)
NUMBER(nvmlDeviceGetComputeMode, 0)
NUMBER(nvmlDeviceGetPersistenceMode, 1)
NUMBER(nvmlDeviceGetDisplayMode, 0)
NUMBER(nvmlDeviceGetDisplayActive, 0)
NUMBER(nvmlDeviceGetPerformanceState, 0)
NUMBER(nvmlDeviceGetPowerUsage, 125740)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, 700000)
NUMBER(nvmlDeviceGetPowerManagementLimit, 700000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, 700000)
NUMBER(nvmlDeviceGetMultiGpuBoard, 0)
NUMBER(nvmlDeviceGetBoardId, config_pci_bus((uint32_t)index) << 8)
NUMBER(nvmlDeviceGetMemoryBusWidth, 6016)
NUMBER(nvmlDeviceGetNumGpuCores, sim_shared->machine.sms[index] * 128)
NUMBER(nvmlDeviceGetAccountingMode, 1)
NUMBER(nvmlDeviceGetAccountingBufferSize, 4000)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, 0)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 16)
NUMBER(nvmlDeviceIsMigDeviceHandle, sim_shared->machine.mig)
