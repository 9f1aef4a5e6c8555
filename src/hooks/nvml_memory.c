/*
 * NVML's memory figures under a cap: total is the cap, used is what the group may not take any more.
 */
#include <stddef.h>

#include "hooks/nvml_view.h"
#include "hooks/view.h"

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	nvmlReturn_t result = real_nvml.nvmlDeviceGetMemoryInfo(device, memory);
	struct nvml_view *view = result == NVML_SUCCESS ? nvml_view_open(device) : NULL;

	if (!view)
		return result;
	if (view->cap_bytes != UINT64_MAX) {
		struct view_memory seen =
			view_memory(memory->total, memory->free, view->cap_bytes, view->room_bytes);

		memory->total = seen.total_bytes;
		memory->free = seen.free_bytes;
		memory->used = seen.used_bytes;
	}
	nvml_view_close(view);
	return result;
}

/* Here what others have taken of the room shows as reserved, so that the four figures still add up. */
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	nvmlReturn_t result = real_nvml.nvmlDeviceGetMemoryInfo_v2(device, memory);
	struct nvml_view *view = result == NVML_SUCCESS ? nvml_view_open(device) : NULL;

	if (!view)
		return result;
	if (view->cap_bytes != UINT64_MAX) {
		struct view_memory seen =
			view_memory(memory->total, memory->free, view->cap_bytes, view->room_bytes);

		memory->total = seen.total_bytes;
		memory->free = seen.free_bytes;
		memory->used = seen.used_bytes;
		memory->reserved = seen.total_bytes - seen.used_bytes - seen.free_bytes;
	}
	nvml_view_close(view);
	return result;
}
