/*
 * NVML: start and end, failure injection, and what is asked of the system.
 */
#include "nvml_types.h"

#include <stdio.h>
#include <string.h>

struct sim_nvml_device {
	uint32_t index;
};

static struct sim_nvml_device devices[SIM_MAX_DEVICES];
static unsigned users;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char fail_variable[] = "CUOTA_SIM_NVML_FAIL";

static nvmlReturn_t injected(const char *function)
{
	return fail_configured() ? (nvmlReturn_t)fail_consult(function) : NVML_SUCCESS;
}

nvmlReturn_t nvml_begin(const char *function)
{
	nvmlReturn_t result = injected(function);
	if (result != NVML_SUCCESS)
		return result;
	return users ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

int nvml_index(nvmlDevice_t device)
{
	if (device < devices || device >= devices + SIM_MAX_DEVICES ||
	    device->index >= sim_shared->machine.device_count)
		return -1;
	return (int)device->index;
}

nvmlDevice_t nvml_device(uint32_t index)
{
	return &devices[index];
}

static nvmlReturn_t start(const char *function)
{
	nvmlReturn_t result = injected(function);
	if (result != NVML_SUCCESS)
		return result;
	if (state_open() != 0)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < SIM_MAX_DEVICES; i++)
		devices[i].index = i;
	users++;
	pthread_mutex_unlock(&lock);
	return NVML_SUCCESS;
}

NVML_EXPORT nvmlReturn_t nvmlInit(void);
NVML_EXPORT nvmlReturn_t nvmlInit_v2(void);
NVML_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags);
NVML_EXPORT nvmlReturn_t nvmlShutdown(void);
NVML_EXPORT const char *nvmlErrorString(nvmlReturn_t result);
NVML_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length);
NVML_EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length);
NVML_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *ret_version);
NVML_EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *ret_version);
NVML_EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length);

nvmlReturn_t nvmlInit(void)
{
	return start("nvmlInit");
}

nvmlReturn_t nvmlInit_v2(void)
{
	return start("nvmlInit_v2");
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
	(void)flags;
	return start("nvmlInitWithFlags");
}

nvmlReturn_t nvmlShutdown(void)
{
	nvmlReturn_t result = NVML_SUCCESS;
	pthread_mutex_lock(&lock);
	if (users)
		users--;
	else
		result = NVML_ERROR_UNINITIALIZED;
	pthread_mutex_unlock(&lock);
	return result;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
	switch (result) {
	case NVML_SUCCESS: return "Success";
	case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_FUNCTION_NOT_FOUND: return "Function Not Found";
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument Version Mismatch";
	default: return "Unknown Error";
	}
}

static nvmlReturn_t put_text(const char *function, const char *text, char *out, unsigned length)
{
	nvmlReturn_t result = nvml_begin(function);
	if (result != NVML_SUCCESS)
		return result;
	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (length <= strlen(text))
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(out, text);
	return NVML_SUCCESS;
}

/* Driver releases of the CUDA versions; the newest that is not newer counts. */
static const char *driver_release(void)
{
	static const struct {
		int cuda;
		const char *release;
	} known[] = {
		{13010, "590.48.01"},  {13000, "580.159.04"}, {12090, "575.64.05"},
		{12080, "570.211.01"}, {12060, "560.35.05"},  {12040, "550.163.01"},
		{12020, "535.288.01"}, {12000, "525.147.05"}, {11080, "520.61.05"},
		{11040, "470.256.02"},
	};
	int cuda = config_driver_version();
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (cuda >= known[i].cuda)
			return known[i].release;
	return "470.256.02";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	return put_text("nvmlSystemGetDriverVersion", driver_release(), version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
	char text[64];
	int cuda = config_driver_version();
	snprintf(text, sizeof(text), "%d.%s", cuda / 1000, driver_release());
	return put_text("nvmlSystemGetNVMLVersion", text, version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *ret_version)
{
	nvmlReturn_t result = nvml_begin("nvmlSystemGetCudaDriverVersion");
	if (result != NVML_SUCCESS)
		return result;
	if (!ret_version)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_version = config_driver_version();
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *ret_version)
{
	return nvmlSystemGetCudaDriverVersion(ret_version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
	nvmlReturn_t result = nvml_begin("nvmlSystemGetProcessName");
	if (result != NVML_SUCCESS)
		return result;
	if (!name || !length)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = NVML_ERROR_NOT_FOUND;
	state_lock();
	for (uint32_t i = 0; i < sim_shared->process_top; i++) {
		const struct sim_process *process = &sim_shared->process[i];
		if (!process->used || (unsigned)process->pid != pid)
			continue;
		snprintf(name, length, "%s", process->name);
		result = NVML_SUCCESS;
	}
	state_unlock();
	return result;
}
