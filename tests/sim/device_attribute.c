/*
 * Device attributes: what an H200 answers, except where the simulated machine says otherwise.
 */
#include "sim.h"
#include "entries.h"

static const struct {
	int attribute;
	int value;
} fixed[] = {
#define A(name, value) \
	{ \
		CU_DEVICE_ATTRIBUTE_##name, value \
	}
#include "device_attribute.def"
#undef A
};

static CUresult from_machine(CUdevice device, int attribute, int *ret_value)
{
	uint32_t physical = sim.device[device].physical;
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*ret_value = (int)sim_shared->machine.sms[physical];
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*ret_value = (int)config_pci_bus(physical);
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MPS_ENABLED:
		*ret_value = (int)sim_shared->machine.mps;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID:
		*ret_value = (int)physical;
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_NOT_FOUND;
	}
}

CUresult sim_cuDeviceGetAttribute(int *ret_value, CUdevice_attribute attribute, CUdevice device)
{
	if (!ret_value || (int)attribute <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (from_machine(device, (int)attribute, ret_value) == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		if (fixed[i].attribute != (int)attribute)
			continue;
		*ret_value = fixed[i].value;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}
