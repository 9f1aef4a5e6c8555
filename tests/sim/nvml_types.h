/*
 * The NVML binary interface as far as the simulated library has it: own declarations of public
 * types, named as in NVML so that a reader can look them up. Values and layouts are facts of the
 * interface; nvml.h is not needed.
 */
#ifndef SIM_NVML_TYPES_H
#define SIM_NVML_TYPES_H

#include "shared_state.h"

#define NVML_EXPORT __attribute__((visibility("default")))

typedef enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NO_PERMISSION = 4,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_FUNCTION_NOT_FOUND = 13,
	NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

typedef struct sim_nvml_device *nvmlDevice_t;

typedef struct {
	unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
	unsigned version;
	unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
	unsigned long long bar1Total, bar1Free, bar1Used;
} nvmlBAR1Memory_t;

typedef struct {
	unsigned gpu, memory;
} nvmlUtilization_t;

typedef struct {
	unsigned pid;
	unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct {
	unsigned pid;
	unsigned long long usedGpuMemory;
	unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t;

typedef struct {
	unsigned pid;
	unsigned long long usedGpuMemory;
	unsigned gpuInstanceId, computeInstanceId;
	unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;

typedef struct {
	unsigned version, mode, numProcArrayEntries;
	nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_v1_t;

typedef struct {
	unsigned pid;
	unsigned long long timeStamp;
	unsigned smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct {
	unsigned long long timeStamp;
	unsigned pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;

typedef struct {
	unsigned version, processSamplesCount;
	unsigned long long lastSeenTimeStamp;
	nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_v1_t;

typedef struct {
	unsigned gpuUtilization, memoryUtilization;
	unsigned long long maxMemoryUsage, time, startTime;
	unsigned isRunning, reserved[5];
} nvmlAccountingStats_t;

typedef struct {
	char busIdLegacy[16];
	unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

#define NVML_STRUCT_VERSION(type, version) ((unsigned)(sizeof(type) | ((version) << 24)))

/*
 * nvml_begin: what every call but a few asks first. CUOTA_SIM_NVML_FAIL: see shared_fail.c.
 */
nvmlReturn_t nvml_begin(const char *function);
/* The physical index behind a handle, or -1. */
int nvml_index(nvmlDevice_t device);
nvmlDevice_t nvml_device(uint32_t index);

#endif
