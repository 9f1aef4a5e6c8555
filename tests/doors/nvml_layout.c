/*
 * Prints the layout of the NVML structures that the hooks fill. Compiled twice by tests/e2e/doors_nvml.bats: with
 * our declarations and, where one is installed, with the vendor's nvml.h; both must print the same.
 */
#include <stddef.h>
#include <stdio.h>

#ifdef VENDOR
#include <nvml.h>
#else
#include "hooks/nvml_abi.h"
#endif

#define SIZE(type)	   printf("%s %zu\n", #type, sizeof(type))
#define FIELD(type, field) printf("%s.%s %zu\n", #type, #field, offsetof(type, field))

int main(void)
{
	SIZE(nvmlMemory_t);
	FIELD(nvmlMemory_t, free);
	FIELD(nvmlMemory_t, used);
	SIZE(nvmlMemory_v2_t);
	FIELD(nvmlMemory_v2_t, total);
	FIELD(nvmlMemory_v2_t, reserved);
	FIELD(nvmlMemory_v2_t, free);
	FIELD(nvmlMemory_v2_t, used);
	SIZE(nvmlProcessInfo_v1_t);
	FIELD(nvmlProcessInfo_v1_t, usedGpuMemory);
	SIZE(nvmlProcessInfo_v2_t);
	FIELD(nvmlProcessInfo_v2_t, usedGpuMemory);
	FIELD(nvmlProcessInfo_v2_t, gpuInstanceId);
	FIELD(nvmlProcessInfo_v2_t, computeInstanceId);
	SIZE(nvmlUtilization_t);
	FIELD(nvmlUtilization_t, memory);
	SIZE(nvmlProcessUtilizationSample_t);
	FIELD(nvmlProcessUtilizationSample_t, timeStamp);
	FIELD(nvmlProcessUtilizationSample_t, smUtil);
	FIELD(nvmlProcessUtilizationSample_t, decUtil);
	SIZE(nvmlAccountingStats_t);
	FIELD(nvmlAccountingStats_t, memoryUtilization);
	FIELD(nvmlAccountingStats_t, maxMemoryUsage);
	FIELD(nvmlAccountingStats_t, time);
	FIELD(nvmlAccountingStats_t, startTime);
	FIELD(nvmlAccountingStats_t, isRunning);
	printf("%d %d %d %d %d %d %d %d\n", NVML_SUCCESS, NVML_ERROR_UNINITIALIZED,
	       NVML_ERROR_INVALID_ARGUMENT, NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_NOT_FOUND,
	       NVML_ERROR_INSUFFICIENT_SIZE, NVML_ERROR_LIBRARY_NOT_FOUND,
	       NVML_ERROR_FUNCTION_NOT_FOUND);
	return 0;
}
