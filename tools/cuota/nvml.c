/*
 * See nvml.h. Structures and numbers below are those of NVIDIA's NVML API reference; a symbol that
 * this driver lacks leaves its field at "unknown".
 */
#include "nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/object.h"

typedef int nvml_return; /* nvmlReturn_t: 0 = success */
typedef struct nvml_device_opaque *nvml_device;

#define NVML_LIBRARY	       "libnvidia-ml.so.1"
#define NVML_INSUFFICIENT_SIZE 7

struct memory_v1 {
	unsigned long long total, free, used;
};

/* nvmlProcessInfo_t of the _v2 and _v3 list calls. */
struct process_v2 {
	unsigned int pid;
	unsigned long long used_bytes;
	unsigned int gpu_instance, compute_instance;
};

/* One row per function: a missing one stays NULL. */
#define NVML_CALLS(CALL) \
	CALL(init, "nvmlInit_v2", (void)) \
	CALL(shutdown, "nvmlShutdown", (void)) \
	CALL(driver_version, "nvmlSystemGetDriverVersion", (char *, unsigned int)) \
	CALL(device_count, "nvmlDeviceGetCount_v2", (unsigned int *)) \
	CALL(device, "nvmlDeviceGetHandleByIndex_v2", (unsigned int, nvml_device *)) \
	CALL(uuid, "nvmlDeviceGetUUID", (nvml_device, char *, unsigned int)) \
	CALL(name, "nvmlDeviceGetName", (nvml_device, char *, unsigned int)) \
	CALL(memory, "nvmlDeviceGetMemoryInfo", (nvml_device, struct memory_v1 *)) \
	CALL(compute_mode, "nvmlDeviceGetComputeMode", (nvml_device, int *)) \
	CALL(mig_mode, "nvmlDeviceGetMigMode", (nvml_device, unsigned int *, unsigned int *)) \
	CALL(mig_count, "nvmlDeviceGetMaxMigDeviceCount", (nvml_device, unsigned int *)) \
	CALL(mig_device, "nvmlDeviceGetMigDeviceHandleByIndex", \
	     (nvml_device, unsigned int, nvml_device *)) \
	CALL(compute_v3, "nvmlDeviceGetComputeRunningProcesses_v3", \
	     (nvml_device, unsigned int *, struct process_v2 *)) \
	CALL(compute_v2, "nvmlDeviceGetComputeRunningProcesses_v2", \
	     (nvml_device, unsigned int *, struct process_v2 *))

static struct {
	void *handle;
#define CALL(field, symbol, arguments) nvml_return(*field) arguments;
	NVML_CALLS(CALL)
#undef CALL
} nvml;

/*
 * The library's own function, where libcuota is preloaded into this command as well (ld.so.preload, a shell under
 * `cuota run`): its dlsym would answer with the group's view, and here the whole card is looked at.
 */
static void *own_symbol(const char *symbol)
{
	struct object object;

	if (object_by_soname(NVML_LIBRARY, &object))
		return dlsym(nvml.handle, symbol);
	return object_symbol(&object, symbol);
}

int nvml_open(struct error *err)
{
	nvml_return rc;

	if (nvml.handle)
		return 0;
	nvml.handle = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!nvml.handle)
		return error_set(err, ENOENT,
				 "no " NVML_LIBRARY ": is an NVIDIA driver installed?");
#define CALL(field, symbol, arguments) *(void **)&nvml.field = own_symbol(symbol);
	NVML_CALLS(CALL)
#undef CALL
	rc = nvml.init ? nvml.init() : -1;
	if (!rc && nvml.device_count && nvml.device && nvml.uuid)
		return 0;
	dlclose(nvml.handle);
	memset(&nvml, 0, sizeof(nvml));
	return error_set(err, EIO, "nvmlInit failed with code %d%s", rc,
			 rc == 9 ? " (driver not loaded)" : "");
}

void nvml_close(void)
{
	if (!nvml.handle)
		return;
	if (nvml.shutdown)
		nvml.shutdown();
	dlclose(nvml.handle);
	memset(&nvml, 0, sizeof(nvml));
}

int nvml_has(const char *symbol)
{
	return nvml.handle && own_symbol(symbol);
}

static void read_processes(nvml_device device, struct nvml_gpu *gpu)
{
	nvml_return (*list)(nvml_device, unsigned int *, struct process_v2 *) =
		nvml.compute_v3 ? nvml.compute_v3 : nvml.compute_v2;
	struct process_v2 *raw = NULL;
	unsigned int count = 64;
	nvml_return rc = NVML_INSUFFICIENT_SIZE;

	/* The list may grow between two calls: ask again with what it says, and some. */
	for (int tries = 0; list && rc == NVML_INSUFFICIENT_SIZE && tries < 5; tries++) {
		unsigned int room = count + 64;

		free(raw);
		raw = calloc(room, sizeof(*raw));
		if (!raw)
			return;
		count = room;
		rc = list(device, &count, raw);
	}
	if (!rc && list && count)
		gpu->processes = calloc(count, sizeof(*gpu->processes));
	for (unsigned i = 0; gpu->processes && i < count; i++) {
		gpu->processes[i].pid = raw[i].pid;
		gpu->processes[i].used_bytes = raw[i].used_bytes;
	}
	gpu->process_count = gpu->processes ? count : 0;
	free(raw);
}

static int read_gpu(nvml_device device, struct nvml_gpu *gpu)
{
	struct memory_v1 memory = {0};
	int mode = MODE_UNKNOWN;

	if (nvml.uuid(device, gpu->uuid, sizeof(gpu->uuid)))
		return -EIO;
	if (nvml.name && nvml.name(device, gpu->name, sizeof(gpu->name)))
		gpu->name[0] = '\0';
	if (nvml.memory && !nvml.memory(device, &memory)) {
		gpu->total_bytes = memory.total;
		gpu->used_bytes = memory.used;
	}
	if (nvml.compute_mode && nvml.compute_mode(device, &mode))
		mode = MODE_UNKNOWN;
	gpu->compute_mode =
		mode < 0 || mode > MODE_UNKNOWN ? MODE_UNKNOWN : (enum nvml_compute_mode)mode;
	read_processes(device, gpu);
	return 0;
}

/* The slices of a GPU in MIG mode, each a GPU of its own. */
static void read_slices(nvml_device parent, unsigned index, struct nvml_state *ret)
{
	unsigned int slices = 0;

	if (!nvml.mig_count || !nvml.mig_device || nvml.mig_count(parent, &slices))
		return;
	for (unsigned i = 0; i < slices && ret->gpu_count < NVML_GPUS; i++) {
		struct nvml_gpu *gpu = &ret->gpus[ret->gpu_count];
		nvml_device slice;

		if (nvml.mig_device(parent, i, &slice))
			continue;
		memset(gpu, 0, sizeof(*gpu));
		gpu->index = index;
		gpu->is_mig = 1;
		if (!read_gpu(slice, gpu))
			ret->gpu_count++;
	}
}

int nvml_read(struct nvml_state *ret)
{
	unsigned int count = 0;

	memset(ret, 0, sizeof(*ret));
	if (!nvml.handle)
		return -ENODEV;
	if (nvml.driver_version && nvml.driver_version(ret->driver, sizeof(ret->driver)))
		ret->driver[0] = '\0';
	if (nvml.device_count(&count))
		return -EIO;
	for (unsigned i = 0; i < count && ret->gpu_count < NVML_GPUS; i++) {
		struct nvml_gpu *gpu = &ret->gpus[ret->gpu_count];
		unsigned int mig = 0, pending = 0;
		nvml_device device;

		if (nvml.device(i, &device))
			continue;
		gpu->index = i;
		if (read_gpu(device, gpu))
			continue;
		ret->gpu_count++;
		if (nvml.mig_mode && !nvml.mig_mode(device, &mig, &pending) && mig) {
			gpu->mig_enabled = 1;
			read_slices(device, i, ret);
		}
	}
	return 0;
}

void nvml_state_free(struct nvml_state *state)
{
	for (unsigned i = 0; i < state->gpu_count; i++)
		free(state->gpus[i].processes);
	memset(state, 0, sizeof(*state));
}
