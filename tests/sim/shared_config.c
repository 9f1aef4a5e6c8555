/*
 * The simulated machine as the environment describes it (CUOTA_SIM_*). A list separated by commas
 * gives one value per device; its last value also serves the devices after it. What cannot be
 * read falls back to the H200 of the measurements, with one line on stderr: a test that asks for
 * something unreadable should notice.
 */
#include "shared_state.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024ull * 1024ull)
/* The card has 143,771 MiB, of which the driver keeps some for itself. */
#define DEFAULT_MEMORY	  150109880320ull
#define DEFAULT_RESERVED  (143771ull * MIB - DEFAULT_MEMORY)
#define DEFAULT_SMS	  132
#define DEFAULT_SLICE_US  2090
#define DEFAULT_SWITCH_US 150
#define DEFAULT_DRIVER	  13000

static void complain(const char *name, const char *value)
{
	fprintf(stderr, "cuota-sim: cannot read %s=%s, using the default\n", name, value);
}

bool config_parse_size(const char *text, uint64_t *ret_bytes, const char **ret_end)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);
	if (end == text)
		return false;

	uint64_t unit = 1;
	switch (tolower((unsigned char)*end)) {
	case 't': unit = MIB * MIB; break;
	case 'g': unit = 1024 * MIB; break;
	case 'm': unit = MIB; break;
	case 'k': unit = 1024; break;
	default: break;
	}
	if (unit != 1) {
		end++;
		if (*end == 'i' || *end == 'I')
			end++;
	}
	if (*end == 'b' || *end == 'B')
		end++;
	*ret_bytes = number * unit;
	*ret_end = end;
	return true;
}

static uint64_t read_number(const char *name, uint64_t fallback, uint64_t least, uint64_t most)
{
	const char *text = getenv(name);
	if (!text || !*text)
		return fallback;

	const char *end;
	uint64_t value;
	if (!config_parse_size(text, &value, &end) || *end || value < least || value > most) {
		complain(name, text);
		return fallback;
	}
	return value;
}

static void read_list(const char *name, uint64_t fallback, uint64_t ret_values[SIM_MAX_DEVICES])
{
	for (int i = 0; i < SIM_MAX_DEVICES; i++)
		ret_values[i] = fallback;
	const char *text = getenv(name);
	if (!text || !*text)
		return;

	const char *at = text;
	uint64_t value = fallback;
	for (int i = 0; i < SIM_MAX_DEVICES; i++) {
		if (*at) {
			const char *end;
			if (!config_parse_size(at, &value, &end) || (*end && *end != ',') ||
			    !value) {
				complain(name, text);
				return;
			}
			at = *end ? end + 1 : end;
		}
		ret_values[i] = value;
	}
}

void config_read_machine(struct sim_machine *ret_machine)
{
	memset(ret_machine, 0, sizeof(*ret_machine));
	ret_machine->device_count =
		(uint32_t)read_number("CUOTA_SIM_DEVICES", 1, 0, SIM_MAX_DEVICES);
	ret_machine->mig = (uint32_t)read_number("CUOTA_SIM_MIG", 0, 0, 1);
	ret_machine->mps = (uint32_t)read_number("CUOTA_SIM_MPS", 0, 0, 1);
	ret_machine->slice_ns =
		read_number("CUOTA_SIM_SLICE_US", DEFAULT_SLICE_US, 1, 60000000) * 1000;
	ret_machine->switch_ns =
		read_number("CUOTA_SIM_SWITCH_US", DEFAULT_SWITCH_US, 0, 60000000) * 1000;
	read_list("CUOTA_SIM_MEMORY", DEFAULT_MEMORY, ret_machine->memory_bytes);
	for (int i = 0; i < SIM_MAX_DEVICES; i++)
		if (ret_machine->memory_bytes[i] == DEFAULT_MEMORY)
			ret_machine->reserved_bytes[i] = DEFAULT_RESERVED;

	uint64_t sms[SIM_MAX_DEVICES];
	read_list("CUOTA_SIM_SMS", DEFAULT_SMS, sms);
	for (int i = 0; i < SIM_MAX_DEVICES; i++)
		ret_machine->sms[i] = (uint32_t)sms[i];
}

/* "13.0", "12.9" or "13000" */
int config_driver_version(void)
{
	const char *text = getenv("CUOTA_SIM_DRIVER");
	if (!text || !*text)
		return DEFAULT_DRIVER;

	char *end;
	long major = strtol(text, &end, 10);
	long version = major;
	if (*end == '.') {
		long minor = strtol(end + 1, &end, 10);
		version = major * 1000 + minor * 10;
	} else if (major < 100) {
		version = major * 1000;
	}
	if (*end || version < 11040 || version > 13990) {
		complain("CUOTA_SIM_DRIVER", text);
		return DEFAULT_DRIVER;
	}
	return (int)version;
}

/* Fixed per index, and different in every byte that a prefix match would look at first. */
void config_device_uuid(const struct sim_machine *machine, uint32_t device, uint8_t ret_uuid[16])
{
	uint64_t mix = 0x9e3779b97f4a7c15ull * (device + 1 + (machine->mig ? 1000u : 0u));
	for (int i = 0; i < 16; i++) {
		mix ^= mix >> 29;
		mix *= 0xbf58476d1ce4e5b9ull;
		ret_uuid[i] = (uint8_t)(mix >> 56);
	}
	ret_uuid[6] = (uint8_t)((ret_uuid[6] & 0x0f) | 0x40);
	ret_uuid[8] = (uint8_t)((ret_uuid[8] & 0x3f) | 0x80);
}

void config_uuid_text(const struct sim_machine *machine, uint32_t device, char ret_text[48])
{
	uint8_t b[16];
	config_device_uuid(machine, device, b);
	snprintf(ret_text, 48,
		 "%s%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 machine->mig ? "MIG-" : "GPU-", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7],
		 b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

unsigned config_pci_bus(uint32_t device)
{
	return 0x1b + 4 * device;
}
