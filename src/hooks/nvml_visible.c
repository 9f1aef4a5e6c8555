/*
 * CUDA's index of a device, from NVML's and CUDA_VISIBLE_DEVICES, for a process that does not use CUDA.
 *
 * NVML counts in PCI order. CUDA does too, unless the machine holds cards of different speeds and
 * CUDA_DEVICE_ORDER is left at its default: then a quota by index is only sure by UUID (docs/environment.md).
 */
#include <stdlib.h>
#include <string.h>

#include "hooks/nvml_view.h"

int nvml_visible_index(const char *visible, unsigned index, const char *uuid)
{
	int position = 0;

	if (!visible)
		return (int)index;
	for (const char *entry = visible; *entry; position++) {
		size_t length = strcspn(entry, ",");
		char *end;
		unsigned long number = strtoul(entry, &end, 10);

		if (*entry >= '0' && *entry <= '9' && end == entry + length) {
			if (number == index)
				return position;
		} else if (length < 5 ||
			   (strncmp(entry, "GPU-", 4) != 0 && strncmp(entry, "MIG-", 4) != 0)) {
			return -1; /* CUDA sees nothing from the first bad entry on */
		} else if (strncmp(entry, uuid, length) == 0) {
			return position;
		}
		entry += length;
		if (*entry == ',')
			entry++;
	}
	return -1;
}
