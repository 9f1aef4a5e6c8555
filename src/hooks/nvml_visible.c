/*
 * CUDA's index of a device, from NVML's and CUDA_VISIBLE_DEVICES, for a process that does not use CUDA.
 *
 * NVML counts in PCI order. CUDA does too, unless the machine holds cards of different speeds and
 * CUDA_DEVICE_ORDER is left at its default: then a quota by index is only sure by UUID (docs/environment.md).
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "hooks/nvml_view.h"

enum kind { KIND_NONE, KIND_INDEX, KIND_UUID };

static enum kind kind_of(const char *entry, size_t length)
{
	if (length && strspn(entry, "0123456789") == length)
		return KIND_INDEX;
	if (length > 4 && (strncmp(entry, "GPU-", 4) == 0 || strncmp(entry, "MIG-", 4) == 0))
		return KIND_UUID;
	return KIND_NONE;
}

int nvml_visible_index(const char *visible, unsigned index, const char *uuid)
{
	enum kind first = KIND_NONE;
	int position = 0;

	if (!visible)
		return (int)index;
	for (const char *entry = visible; *entry; position++) {
		size_t length = strcspn(entry, ",");
		enum kind kind = kind_of(entry, length);

		if (first == KIND_NONE)
			first = kind;
		/* CUDA sees nothing from the first bad entry on, nor from one of the other kind. */
		if (kind == KIND_NONE || kind != first)
			return -1;
		if (kind == KIND_INDEX && strtoul(entry, NULL, 10) == index)
			return position;
		if (kind == KIND_UUID && strncasecmp(entry, uuid, length) == 0)
			return position;
		entry += length;
		if (*entry == ',')
			entry++;
	}
	return -1;
}
