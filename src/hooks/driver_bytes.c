#include "hooks/driver_bytes.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "hooks/hooks.h"
#include "hooks/tenant.h"
#include "memory/arena.h"
#include "base/spin.h"

struct nvml {
	_Atomic uint32_t lock;
	_Atomic int state; /* 0 not tried, 1 loaded, -1 not to be had */
	nvmlReturn_t (*init)(void);
	nvmlReturn_t (*by_uuid)(const char *uuid, nvmlDevice_t *ret_device);
	__typeof__(nvmlDeviceGetComputeRunningProcesses_v3) *processes;
	__typeof__(nvmlDeviceGetMemoryInfo) *memory;
	_Atomic(nvmlDevice_t) devices[TENANT_DEVICES];
	_Atomic unsigned own_pid; /* ours as NVML numbers processes; 0 not known */
};

static struct nvml *_Atomic nvml_state;

/* Wiped in a forked child, whose parent's NVML is not its own. */
static struct nvml *state(void)
{
	struct nvml *nvml = atomic_load(&nvml_state), *none = NULL;

	if (nvml)
		return nvml;
	nvml = arena_map(sizeof(*nvml));
	if (nvml && !atomic_compare_exchange_strong(&nvml_state, &none, nvml)) {
		arena_unmap(nvml, sizeof(*nvml));
		nvml = none;
	}
	return nvml;
}

static int load(struct nvml *nvml)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
	void *(*find)(void *, const char *) = hooks_real_dlsym();

	if (!library || !find)
		return -1;
	*(void **)&nvml->init = find(library, "nvmlInit_v2");
	*(void **)&nvml->by_uuid = find(library, "nvmlDeviceGetHandleByUUID");
	*(void **)&nvml->processes = find(library, "nvmlDeviceGetComputeRunningProcesses_v3");
	*(void **)&nvml->memory = find(library, "nvmlDeviceGetMemoryInfo");
	if (!nvml->init || !nvml->by_uuid || !nvml->processes || !nvml->memory)
		return -1;
	return nvml->init() == NVML_SUCCESS ? 1 : -1;
}

/* NULL when NVML cannot be had or does not know the device. */
static struct nvml *device_of(const struct device_tenant *tenant, nvmlDevice_t *ret_device)
{
	struct nvml *nvml = state();
	_Atomic(nvmlDevice_t) *known;
	int saved = errno;

	if (!nvml)
		return NULL;
	if (!atomic_load(&nvml->state)) {
		spin_lock(&nvml->lock);
		if (!atomic_load(&nvml->state))
			atomic_store(&nvml->state, load(nvml));
		spin_unlock(&nvml->lock);
	}
	errno = saved;
	if (atomic_load(&nvml->state) < 0)
		return NULL;
	known = &nvml->devices[tenant->ordinal];
	*ret_device = atomic_load(known);
	if (!*ret_device) {
		if (nvml->by_uuid(tenant->uuid, ret_device) != NVML_SUCCESS)
			return NULL;
		atomic_store(known, *ret_device);
	}
	return nvml;
}

static int list(const struct device_tenant *tenant, nvmlProcessInfo_v2_t *infos,
		unsigned *ret_count)
{
	nvmlDevice_t device;
	struct nvml *nvml = device_of(tenant, &device);
	int saved = errno;
	nvmlReturn_t result;

	if (!nvml)
		return -ENOTSUP;
	*ret_count = LISTED_MOST;
	result = nvml->processes(device, ret_count, infos);
	errno = saved;
	return result == NVML_SUCCESS && *ret_count <= LISTED_MOST ? 0 : -ENOTSUP;
}

void driver_bytes_look(const struct device_tenant *tenant, struct listed *ret_before)
{
	nvmlProcessInfo_v2_t infos[LISTED_MOST];
	unsigned count;

	ret_before->count = LISTED_MOST + 1;
	if (list(tenant, infos, &count))
		return;
	for (unsigned i = 0; i < count; i++)
		ret_before->pids[i] = infos[i].pid;
	ret_before->count = count;
}

int driver_bytes_known(void)
{
	struct nvml *nvml = state();

	return nvml && atomic_load(&nvml->own_pid);
}

static int was_listed(const struct listed *before, unsigned pid)
{
	for (unsigned i = 0; i < before->count; i++)
		if (before->pids[i] == pid)
			return 1;
	return 0;
}

/*
 * Our own number when it is new, or the only new one. With nothing new (we held memory before our first
 * context) our own number, if it is there.
 */
static unsigned pick(const struct listed *before, const nvmlProcessInfo_v2_t *infos, unsigned count)
{
	unsigned own = (unsigned)getpid(), newcomer = 0, newcomers = 0;
	int own_is_listed = 0;

	for (unsigned i = 0; i < count; i++) {
		int is_new = !was_listed(before, infos[i].pid);

		if (infos[i].pid == own && is_new)
			return own;
		own_is_listed |= infos[i].pid == own;
		if (is_new && infos[i].pid != newcomer) {
			newcomer = infos[i].pid;
			newcomers++;
		}
	}
	/* Somebody else came at the same instant: better no figure than theirs. */
	if (newcomers)
		return newcomers == 1 ? newcomer : 0;
	return own_is_listed ? own : 0;
}

void driver_bytes_learn(const struct device_tenant *tenant, const struct listed *before)
{
	nvmlProcessInfo_v2_t infos[LISTED_MOST];
	struct nvml *nvml = state();
	unsigned count;

	if (nvml && before->count <= LISTED_MOST && !list(tenant, infos, &count))
		atomic_store(&nvml->own_pid, pick(before, infos, count));
}

int driver_bytes_of_all(const struct device_tenant *tenant, struct figures *ret)
{
	struct nvml *nvml = state();

	if (!nvml)
		return -ENOTSUP;
	ret->own = atomic_load(&nvml->own_pid);
	return ret->own ? list(tenant, ret->of, &ret->count) : -ENOTSUP;
}

/* One process may be listed once per instance of a divided device. NVML_NOT_AVAILABLE when one is not known. */
static uint64_t sum_of(const struct figures *figures, unsigned pid)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < figures->count; i++) {
		if (figures->of[i].pid != pid)
			continue;
		if (figures->of[i].usedGpuMemory == NVML_NOT_AVAILABLE)
			return NVML_NOT_AVAILABLE;
		bytes += figures->of[i].usedGpuMemory;
	}
	return bytes;
}

int driver_bytes_own(const struct figures *figures, uint64_t *ret_bytes)
{
	uint64_t bytes = sum_of(figures, figures->own);

	if (bytes == NVML_NOT_AVAILABLE)
		return -ENOTSUP;
	*ret_bytes = bytes;
	return 0;
}

uint64_t driver_bytes_in(const struct figures *figures, unsigned pid)
{
	uint64_t bytes = sum_of(figures, pid);

	return bytes == NVML_NOT_AVAILABLE ? 0 : bytes;
}

int driver_bytes_of_process(const struct device_tenant *tenant, uint64_t *ret_bytes)
{
	struct figures figures;
	int result = driver_bytes_of_all(tenant, &figures);

	return result ? result : driver_bytes_own(&figures, ret_bytes);
}

int driver_bytes_of_device(const struct device_tenant *tenant, uint64_t *ret_used)
{
	nvmlDevice_t device;
	struct nvml *nvml = device_of(tenant, &device);
	nvmlMemory_t info;
	int saved = errno;
	nvmlReturn_t result;

	if (!nvml)
		return -ENOTSUP;
	result = nvml->memory(device, &info);
	errno = saved;
	if (result != NVML_SUCCESS)
		return -ENOTSUP;
	*ret_used = info.used;
	return 0;
}
