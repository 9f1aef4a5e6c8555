/*
 * NVML's process lists: the processes of the own group, with PIDs as the caller sees them and memory as the
 * ledger has it. NVML's own list is of no use for this: in containers it holds host PIDs or nothing.
 *
 * The real function is still asked, with no room, so that its errors (not initialised, not supported) stay.
 */
#include <stddef.h>
#include <string.h>

#include "hooks/nvml_view.h"

enum list { LIST_COMPUTE, LIST_GRAPHICS, LIST_MPS }; /* as nvmlProcessDetailList_t.mode */

struct processes {
	unsigned count;
	struct {
		uint32_t pid;
		uint64_t used_bytes;
	} process[LEDGER_SLOTS];
};

/* Under MPS all clients of a device stand in the MPS list and none in the compute list. */
static enum list list_of_device(nvmlDevice_t device)
{
	unsigned count = 0;
	nvmlReturn_t result =
		real_nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3(device, &count, NULL);

	if (result == NVML_ERROR_FUNCTION_NOT_FOUND)
		result = real_nvml.nvmlDeviceGetMPSComputeRunningProcesses(device, &count, NULL);
	return (result == NVML_SUCCESS || result == NVML_ERROR_INSUFFICIENT_SIZE) && count > 0
		       ? LIST_MPS
		       : LIST_COMPUTE;
}

static void own_processes(const struct nvml_view *view, nvmlDevice_t device, enum list list,
			  struct processes *ret)
{
	uint32_t pids[LEDGER_SLOTS];
	const struct slot_view *slot;
	unsigned at = 0;

	ret->count = 0;
	if (list == LIST_GRAPHICS || list != list_of_device(device))
		return;
	nvml_view_pids(view, pids);
	for (unsigned i = 0; i < LEDGER_SLOTS && (slot = nvml_view_next(view, &at)); i++) {
		if (!pids[i])
			continue;
		ret->process[ret->count].pid = pids[i];
		ret->process[ret->count++].used_bytes = slot->used_bytes;
	}
}

/* `probe`: what the real function answered when asked without room. `stride` tells the versions apart. */
static nvmlReturn_t answer_list(struct nvml_view *view, nvmlDevice_t device, enum list list,
				nvmlReturn_t probe, unsigned *count, void *infos, size_t stride)
{
	struct processes own;

	if (probe != NVML_SUCCESS && probe != NVML_ERROR_INSUFFICIENT_SIZE) {
		nvml_view_close(view);
		return probe;
	}
	own_processes(view, device, list, &own);
	nvml_view_close(view);
	if (*count < own.count) {
		*count = own.count;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	if (own.count && !infos)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < own.count; i++) {
		nvmlProcessInfo_v2_t info = {.pid = own.process[i].pid,
					     .usedGpuMemory = own.process[i].used_bytes,
					     .gpuInstanceId = NVML_NO_INSTANCE,
					     .computeInstanceId = NVML_NO_INSTANCE};

		memcpy((char *)infos + i * stride, &info, stride);
	}
	*count = own.count;
	return NVML_SUCCESS;
}

_Static_assert(offsetof(nvmlProcessInfo_v1_t, usedGpuMemory) ==
		       offsetof(nvmlProcessInfo_v2_t, usedGpuMemory),
	       "the first version is the start of the second");

/* clang-format off */
#define LIST_HOOK(symbol, info, list)                                                                        \
	nvmlReturn_t symbol(nvmlDevice_t device, unsigned int *count, info *infos)                           \
	{                                                                                                    \
		struct nvml_view *view = count ? nvml_view_open(device) : NULL;                              \
		unsigned none = 0;                                                                           \
                                                                                                             \
		if (!view)                                                                                   \
			return real_nvml.symbol(device, count, infos);                                       \
		return answer_list(view, device, list, real_nvml.symbol(device, &none, NULL), count, infos,  \
				   sizeof(info));                                                            \
	}

LIST_HOOK(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, LIST_COMPUTE)
LIST_HOOK(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, LIST_COMPUTE)
LIST_HOOK(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_v2_t, LIST_COMPUTE)
LIST_HOOK(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, LIST_GRAPHICS)
LIST_HOOK(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t, LIST_GRAPHICS)
LIST_HOOK(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_v2_t, LIST_GRAPHICS)
LIST_HOOK(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, LIST_MPS)
LIST_HOOK(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, LIST_MPS)
LIST_HOOK(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_v2_t, LIST_MPS)
/* clang-format on */

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
						   nvmlProcessDetailList_t *list)
{
	struct nvml_view *view = list ? nvml_view_open(device) : NULL;
	nvmlProcessDetailList_t none;
	struct processes own;
	nvmlReturn_t probe;

	if (!view)
		return real_nvml.nvmlDeviceGetRunningProcessDetailList(device, list);
	none = (nvmlProcessDetailList_t){.version = list->version, .mode = list->mode};
	probe = real_nvml.nvmlDeviceGetRunningProcessDetailList(device, &none);
	if (probe == NVML_SUCCESS || probe == NVML_ERROR_INSUFFICIENT_SIZE)
		own_processes(view, device, (enum list)list->mode, &own);
	nvml_view_close(view);
	if (probe != NVML_SUCCESS && probe != NVML_ERROR_INSUFFICIENT_SIZE)
		return probe;
	if (list->numProcArrayEntries < own.count) {
		list->numProcArrayEntries = own.count;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	if (own.count && !list->procArray)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < own.count; i++)
		list->procArray[i] =
			(nvmlProcessDetail_v1_t){.pid = own.process[i].pid,
						 .usedGpuMemory = own.process[i].used_bytes,
						 .gpuInstanceId = NVML_NO_INSTANCE,
						 .computeInstanceId = NVML_NO_INSTANCE};
	list->numProcArrayEntries = own.count;
	return NVML_SUCCESS;
}
