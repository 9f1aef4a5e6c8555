/*
 * NVML's utilisation under a quota: of the own group and its processes, from the ledger, instead of the whole
 * card's. Errors of the real functions (not initialised, not supported) stay.
 */
#include <time.h>

#include "base/clock.h"
#include "hooks/nvml_meter.h"

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	nvmlReturn_t result = real_nvml.nvmlDeviceGetUtilizationRates(device, utilization);
	struct nvml_view *view = result == NVML_SUCCESS ? nvml_view_open(device) : NULL;
	struct nvml_meter meter;

	if (!view)
		return result;
	nvml_meter_read(view, &meter);
	nvml_view_close(view);
	utilization->gpu = meter.group_pct;
	/* The memory's share of the time is not known per group: no more than the card's or the group's. */
	if (utilization->memory > meter.group_pct)
		utilization->memory = meter.group_pct;
	return result;
}

static uint64_t epoch_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / NS_PER_US;
}

struct samples {
	unsigned count;
	uint64_t at_us;
	struct {
		uint32_t pid;
		unsigned pct;
	} sample[LEDGER_SLOTS];
};

/* One sample for each process of the group, new since last_seen. */
static void own_samples(struct nvml_view *view, uint64_t last_seen, struct samples *ret)
{
	uint32_t pids[LEDGER_SLOTS];
	struct nvml_meter meter;
	unsigned count;

	nvml_meter_read(view, &meter);
	count = nvml_view_pids(view, pids);
	ret->count = 0;
	ret->at_us = epoch_us();
	for (unsigned i = 0; i < count && i < meter.count && ret->at_us > last_seen; i++) {
		if (!pids[i])
			continue;
		ret->sample[ret->count].pid = pids[i];
		ret->sample[ret->count++].pct = meter.process_pct[i];
	}
}

/* NOT_FOUND: no process of anybody has used the device lately; the group's may have, in the ledger. */
static int is_answer(nvmlReturn_t probe)
{
	return probe == NVML_SUCCESS || probe == NVML_ERROR_INSUFFICIENT_SIZE ||
	       probe == NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
					     nvmlProcessUtilizationSample_t *samples,
					     unsigned int *count, unsigned long long last_seen)
{
	struct nvml_view *view = count ? nvml_view_open(device) : NULL;
	struct samples own;
	nvmlReturn_t probe;
	unsigned none = 0;

	if (!view)
		return real_nvml.nvmlDeviceGetProcessUtilization(device, samples, count, last_seen);
	probe = real_nvml.nvmlDeviceGetProcessUtilization(device, NULL, &none, last_seen);
	if (is_answer(probe))
		own_samples(view, last_seen, &own);
	nvml_view_close(view);
	if (!is_answer(probe))
		return probe;
	if (!own.count) {
		*count = 0;
		return NVML_ERROR_NOT_FOUND;
	}
	if (!samples || *count < own.count) {
		*count = own.count;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (unsigned i = 0; i < own.count; i++)
		samples[i] = (nvmlProcessUtilizationSample_t){.pid = own.sample[i].pid,
							      .timeStamp = own.at_us,
							      .smUtil = own.sample[i].pct};
	*count = own.count;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
						   nvmlProcessesUtilizationInfo_t *info)
{
	struct nvml_view *view = info ? nvml_view_open(device) : NULL;
	nvmlProcessesUtilizationInfo_t none;
	struct samples own;
	nvmlReturn_t probe;

	if (!view)
		return real_nvml.nvmlDeviceGetProcessesUtilizationInfo(device, info);
	none = (nvmlProcessesUtilizationInfo_t){.version = info->version,
						.lastSeenTimeStamp = info->lastSeenTimeStamp};
	probe = real_nvml.nvmlDeviceGetProcessesUtilizationInfo(device, &none);
	if (is_answer(probe))
		own_samples(view, info->lastSeenTimeStamp, &own);
	nvml_view_close(view);
	if (!is_answer(probe))
		return probe;
	if (!own.count) {
		info->processSamplesCount = 0;
		return NVML_ERROR_NOT_FOUND;
	}
	if (!info->procUtilArray || info->processSamplesCount < own.count) {
		info->processSamplesCount = own.count;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (unsigned i = 0; i < own.count; i++)
		info->procUtilArray[i] =
			(nvmlProcessUtilizationInfo_v1_t){.timeStamp = own.at_us,
							  .pid = own.sample[i].pid,
							  .smUtil = own.sample[i].pct};
	info->processSamplesCount = own.count;
	info->lastSeenTimeStamp = own.at_us;
	return NVML_SUCCESS;
}
