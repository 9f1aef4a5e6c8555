/*
 * Joins NVML's real entry points with the wrappers of nvml.def.
 */
#include <errno.h>

#include "hooks/hooks.h"

int hooks_load_nvml(void)
{
	return -ENOENT;
}

int hooks_load_nvml_at(const void *address)
{
	(void)address;
	return -ENOENT;
}
