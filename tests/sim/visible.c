/*
 * Which physical devices this process sees, and in which order: CUDA_VISIBLE_DEVICES and
 * CUDA_DEVICE_ORDER. The list ends at the first entry that names no device, an entry that is no
 * number or UUID to its end, or one of the other kind than the first; naming a device twice makes
 * cuInit fail (all as driver 580 does).
 */
#include "sim.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Fastest first unless asked for bus order: more multiprocessors count as faster. */
static void order_devices(uint32_t order[SIM_MAX_DEVICES], uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	const char *text = getenv("CUDA_DEVICE_ORDER");
	if (text && strcmp(text, "PCI_BUS_ID") == 0)
		return;
	for (uint32_t i = 1; i < count; i++) {
		uint32_t moving = order[i];
		uint32_t at = i;
		while (at &&
		       sim_shared->machine.sms[order[at - 1]] < sim_shared->machine.sms[moving]) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = moving;
	}
}

/* A full UUID or a prefix that fits exactly one device. */
static int find_uuid(const char *text, size_t length, uint32_t count)
{
	int found = -1;
	for (uint32_t i = 0; i < count; i++) {
		char uuid[48];
		config_uuid_text(&sim_shared->machine, i, uuid);
		if (length > strlen(uuid) || strncasecmp(uuid, text, length) != 0)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

static int find_entry(const char *text, size_t length, const uint32_t *order, uint32_t count)
{
	if (length > 4 && (strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0))
		return find_uuid(text, length, count);
	if (!length || !isdigit((unsigned char)text[0]))
		return -1;
	unsigned long index = strtoul(text, NULL, 10);
	return index < count ? (int)order[index] : -1;
}

int visible_devices(uint32_t ret_physical[SIM_MAX_DEVICES])
{
	uint32_t order[SIM_MAX_DEVICES];
	uint32_t count = sim_shared->machine.device_count;
	order_devices(order, count);

	const char *text = getenv("CUDA_VISIBLE_DEVICES");
	if (!text) {
		memcpy(ret_physical, order, sizeof(order));
		return (int)count;
	}
	int visible = 0;
	bool by_uuid = false;
	while (visible < SIM_MAX_DEVICES) {
		while (isspace((unsigned char)*text))
			text++;
		size_t length = strcspn(text, ", \t");
		bool uuid = !isdigit((unsigned char)*text);
		int found = find_entry(text, length, order, count);
		if (found < 0 || (visible && uuid != by_uuid))
			break;
		by_uuid = uuid;
		for (int i = 0; i < visible; i++)
			if (ret_physical[i] == (uint32_t)found)
				return -1;
		ret_physical[visible++] = (uint32_t)found;
		if (!uuid && strspn(text, "0123456789") != length)
			break;
		text += length;
		while (isspace((unsigned char)*text))
			text++;
		if (*text++ != ',')
			break;
	}
	return visible;
}
