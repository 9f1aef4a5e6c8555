/*
 * NVML's accounting under a quota: of the living processes of the own group. Where accounting is off or not
 * supported the real functions say so, and that stays.
 */
#include <stddef.h>
#include <time.h>

#include "base/clock.h"
#include "hooks/nvml_view.h"

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned int *count,
					 unsigned int *pids)
{
	struct nvml_view *view = count ? nvml_view_open(device) : NULL;
	uint32_t own[LEDGER_SLOTS];
	unsigned none = 0, found, listed = 0;
	nvmlReturn_t probe;

	if (!view)
		return real_nvml.nvmlDeviceGetAccountingPids(device, count, pids);
	probe = real_nvml.nvmlDeviceGetAccountingPids(device, &none, NULL);
	found = nvml_view_pids(view, own);
	nvml_view_close(view);
	if (probe != NVML_SUCCESS && probe != NVML_ERROR_INSUFFICIENT_SIZE)
		return probe;
	for (unsigned i = 0; i < found; i++)
		if (own[i])
			own[listed++] = own[i];
	if (*count < listed) {
		*count = listed;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	if (listed && !pids)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < listed; i++)
		pids[i] = own[i];
	*count = listed;
	return NVML_SUCCESS;
}

static const struct slot_view *slot_of_pid(const struct nvml_view *view, unsigned pid)
{
	uint32_t pids[LEDGER_SLOTS];
	unsigned count = nvml_view_pids(view, pids), at = 0;
	const struct slot_view *slot;

	for (unsigned i = 0; i < count && (slot = nvml_view_next(view, &at)); i++)
		if (pids[i] == pid)
			return slot;
	return NULL;
}

/* start_ns is on the monotonic clock. */
static void fill_stats(const struct slot_view *slot, nvmlAccountingStats_t *ret)
{
	uint64_t now_ns = clock_now_ns();
	uint64_t age_ns = now_ns > slot->start_ns ? now_ns - slot->start_ns : 1;
	uint64_t pct = slot->busy_ns / (age_ns / 100 + 1);
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	*ret = (nvmlAccountingStats_t){
		.gpuUtilization = (unsigned)(pct > 100 ? 100 : pct),
		.maxMemoryUsage = slot->peak_bytes,
		.time = age_ns / NS_PER_MS,
		.startTime = ((uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec - age_ns) /
			     NS_PER_US,
		.isRunning = 1,
	};
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
					  nvmlAccountingStats_t *stats)
{
	struct nvml_view *view = stats ? nvml_view_open(device) : NULL;
	nvmlAccountingStats_t real_stats;
	const struct slot_view *slot;
	nvmlReturn_t probe;

	if (!view)
		return real_nvml.nvmlDeviceGetAccountingStats(device, pid, stats);
	probe = real_nvml.nvmlDeviceGetAccountingStats(device, pid, &real_stats);
	/* NOT_FOUND: NVML may know the process by another PID than the caller does. */
	if (probe == NVML_SUCCESS || probe == NVML_ERROR_NOT_FOUND) {
		slot = slot_of_pid(view, pid);
		probe = slot ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
		if (slot)
			fill_stats(slot, stats);
	}
	nvml_view_close(view);
	return probe;
}
