/*
 * NVML: which processes use a device, how much of its memory and time.
 */
#include "nvml_types.h"

#include <string.h>

/* A copy of what the shared state says about one process on one device. */
struct row {
	unsigned pid;
	uint64_t memory_bytes, busy_ns, start_ns;
	unsigned busy_pct;
};

static __thread struct row rows[SIM_MAX_PROCESSES];

static nvmlReturn_t begin(const char *function, nvmlDevice_t device, uint32_t *ret_count)
{
	nvmlReturn_t result = nvml_begin(function);
	if (result != NVML_SUCCESS)
		return result;
	int index = nvml_index(device);
	if (index < 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_count = 0;
	state_lock();
	state_reap();
	time_advance((uint32_t)index, time_now_ns());
	for (uint32_t i = 0; i < sim_shared->process_top; i++) {
		const struct sim_process *process = &sim_shared->process[i];
		const struct sim_usage *usage = &process->usage[index];
		if (!process->used || (!usage->contexts && !usage->memory_bytes))
			continue;
		rows[(*ret_count)++] = (struct row){
			(unsigned)process->pid, usage->memory_bytes,  usage->busy_ns,
			process->start_ns,	usage->last_busy_pct,
		};
	}
	state_unlock();
	/* The world goes on before the caller has its figures: a rule can make that long. */
	if (fail_configured())
		fail_consult("nvmlProcessesRead");
	return NVML_SUCCESS;
}

/* ---- running processes: *count is the room, and becomes the number; too little room is 7 ---- */

static nvmlReturn_t running_v1(const char *function, nvmlDevice_t device, unsigned *count,
			       nvmlProcessInfo_v1_t *infos, bool any)
{
	uint32_t found;
	nvmlReturn_t result = begin(function, device, &found);
	if (result != NVML_SUCCESS)
		return result;
	if (!count || (*count && !infos))
		return NVML_ERROR_INVALID_ARGUMENT;
	unsigned room = *count;
	*count = any ? found : 0;
	if (*count > room)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < *count; i++)
		infos[i] = (nvmlProcessInfo_v1_t){rows[i].pid, rows[i].memory_bytes};
	return NVML_SUCCESS;
}

static nvmlReturn_t running_v2(const char *function, nvmlDevice_t device, unsigned *count,
			       nvmlProcessInfo_v2_t *infos, bool any)
{
	uint32_t found;
	nvmlReturn_t result = begin(function, device, &found);
	if (result != NVML_SUCCESS)
		return result;
	if (!count || (*count && !infos))
		return NVML_ERROR_INVALID_ARGUMENT;
	unsigned room = *count;
	*count = any ? found : 0;
	if (*count > room)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < *count; i++)
		infos[i] = (nvmlProcessInfo_v2_t){
			rows[i].pid,
			rows[i].memory_bytes,
			~0u,
			~0u,
		};
	return NVML_SUCCESS;
}

/* Asked before begin() has looked whether NVML is initialised at all. */
static bool under_mps(void)
{
	return sim_shared && sim_shared->machine.mps;
}

#define RUNNING_V1(name, any) \
	NVML_EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned *count, \
				      nvmlProcessInfo_v1_t *infos); \
	nvmlReturn_t name(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *infos) \
	{ \
		return running_v1(#name, device, count, infos, any); \
	}
#define RUNNING_V2(name, any) \
	NVML_EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned *count, \
				      nvmlProcessInfo_v2_t *infos); \
	nvmlReturn_t name(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos) \
	{ \
		return running_v2(#name, device, count, infos, any); \
	}

RUNNING_V1(nvmlDeviceGetComputeRunningProcesses, !under_mps())
RUNNING_V2(nvmlDeviceGetComputeRunningProcesses_v2, !under_mps())
RUNNING_V2(nvmlDeviceGetComputeRunningProcesses_v3, !under_mps())
RUNNING_V1(nvmlDeviceGetGraphicsRunningProcesses, false)
RUNNING_V2(nvmlDeviceGetGraphicsRunningProcesses_v2, false)
RUNNING_V2(nvmlDeviceGetGraphicsRunningProcesses_v3, false)
RUNNING_V1(nvmlDeviceGetMPSComputeRunningProcesses, under_mps())
RUNNING_V2(nvmlDeviceGetMPSComputeRunningProcesses_v2, under_mps())
RUNNING_V2(nvmlDeviceGetMPSComputeRunningProcesses_v3, under_mps())

NVML_EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
							       nvmlProcessDetailList_v1_t *list);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
							 nvmlProcessUtilizationSample_t *samples,
							 unsigned *count,
							 unsigned long long since_us);
NVML_EXPORT nvmlReturn_t
nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_v1_t *info);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned *count,
						     unsigned *pids);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid,
						      nvmlAccountingStats_t *ret);

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
						   nvmlProcessDetailList_v1_t *list)
{
	uint32_t found;
	nvmlReturn_t result = begin("nvmlDeviceGetRunningProcessDetailList", device, &found);
	if (result != NVML_SUCCESS)
		return result;
	if (!list)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (list->version != NVML_STRUCT_VERSION(nvmlProcessDetailList_v1_t, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	unsigned room = list->procArray ? list->numProcArrayEntries : 0;
	bool mps = list->mode == 2;
	list->numProcArrayEntries =
		list->mode == 1 || mps != (bool)sim_shared->machine.mps ? 0 : found;
	if (list->numProcArrayEntries > room)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < list->numProcArrayEntries; i++)
		list->procArray[i] = (nvmlProcessDetail_v1_t){
			rows[i].pid, rows[i].memory_bytes, ~0u, ~0u, 0,
		};
	return NVML_SUCCESS;
}

/* ---- utilisation: a sample per process, of the last sixth of a second; wants room for 72 ---- */

enum { SAMPLE_ROOM = 72 };

static unsigned long long now_us(void)
{
	return time_now_ns() / 1000;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
					     nvmlProcessUtilizationSample_t *samples,
					     unsigned *count, unsigned long long since_us)
{
	uint32_t found;
	nvmlReturn_t result = begin("nvmlDeviceGetProcessUtilization", device, &found);
	if (result != NVML_SUCCESS)
		return result;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!samples || *count < SAMPLE_ROOM) {
		*count = SAMPLE_ROOM;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	unsigned long long now = now_us();
	unsigned put = 0;
	for (uint32_t i = 0; i < found && put < SAMPLE_ROOM && now > since_us; i++)
		if (rows[i].busy_pct)
			samples[put++] = (nvmlProcessUtilizationSample_t){
				rows[i].pid, now, rows[i].busy_pct, rows[i].busy_pct / 2, 0, 0,
			};
	*count = put;
	return put ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
						   nvmlProcessesUtilizationInfo_v1_t *info)
{
	uint32_t found;
	nvmlReturn_t result = begin("nvmlDeviceGetProcessesUtilizationInfo", device, &found);
	if (result != NVML_SUCCESS)
		return result;
	if (!info)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (info->version != NVML_STRUCT_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!info->procUtilArray || info->processSamplesCount < SAMPLE_ROOM) {
		info->processSamplesCount = SAMPLE_ROOM;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	unsigned put = 0;
	for (uint32_t i = 0; i < found && put < SAMPLE_ROOM; i++)
		if (rows[i].busy_pct)
			info->procUtilArray[put++] = (nvmlProcessUtilizationInfo_v1_t){
				now_us(), rows[i].pid, rows[i].busy_pct, rows[i].busy_pct / 2, 0, 0,
				0,	  0,
			};
	info->processSamplesCount = put;
	return put ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* ---- accounting: of living processes ---- */

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned *count, unsigned *pids)
{
	uint32_t found;
	nvmlReturn_t result = begin("nvmlDeviceGetAccountingPids", device, &found);
	if (result != NVML_SUCCESS)
		return result;
	if (!count || (*count && !pids))
		return NVML_ERROR_INVALID_ARGUMENT;
	unsigned room = *count;
	*count = found;
	if (found > room)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (uint32_t i = 0; i < found; i++)
		pids[i] = rows[i].pid;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid,
					  nvmlAccountingStats_t *ret)
{
	uint32_t found;
	nvmlReturn_t result = begin("nvmlDeviceGetAccountingStats", device, &found);
	if (result != NVML_SUCCESS)
		return result;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < found; i++) {
		if (rows[i].pid != pid)
			continue;
		uint64_t age_ns = time_now_ns() - rows[i].start_ns;
		memset(ret, 0, sizeof(*ret));
		ret->gpuUtilization = (unsigned)(rows[i].busy_ns * 100 / (age_ns ? age_ns : 1));
		ret->maxMemoryUsage = rows[i].memory_bytes;
		ret->time = age_ns / 1000000;
		ret->isRunning = 1;
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}
