/*
 * A device as this process's group sees it, see nvml_view.h.
 *
 * The copy of the ledger is too big for a stack that is not ours, and NVML is asked seldom: it has a mapping of
 * its own for as long as one call lasts. Nothing is kept between calls but the UUIDs of handles.
 */
#include "hooks/nvml_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hooks/hooks.h"
#include "hooks/tenant.h"

#define HANDLES 64

/* Handles are pointers that stay the same while NVML is loaded. `device` is set last. */
static struct {
	_Atomic uint32_t claimed;
	_Atomic(nvmlDevice_t) device;
	char uuid[UUID_TEXT_BYTES];
} handles[HANDLES];

static int remembered(nvmlDevice_t device, char ret_uuid[UUID_TEXT_BYTES])
{
	for (unsigned i = 0; i < HANDLES; i++) {
		nvmlDevice_t held = atomic_load_explicit(&handles[i].device, memory_order_acquire);

		if (!held)
			return 0;
		if (held == device) {
			memcpy(ret_uuid, handles[i].uuid, UUID_TEXT_BYTES);
			return 1;
		}
	}
	return 0;
}

static void remember(nvmlDevice_t device, const char uuid[UUID_TEXT_BYTES])
{
	for (unsigned i = 0; i < HANDLES; i++) {
		uint32_t no = 0;

		if (!atomic_compare_exchange_strong(&handles[i].claimed, &no, 1))
			continue;
		memcpy(handles[i].uuid, uuid, UUID_TEXT_BYTES);
		atomic_store_explicit(&handles[i].device, device, memory_order_release);
		return;
	}
}

static int device_uuid(nvmlDevice_t device, char ret_uuid[UUID_TEXT_BYTES])
{
	char uuid[NVML_UUID_BYTES] = "";

	if (remembered(device, ret_uuid))
		return 0;
	if (!real_nvml.nvmlDeviceGetUUID ||
	    real_nvml.nvmlDeviceGetUUID(device, uuid, sizeof(uuid)) != NVML_SUCCESS)
		return -ENODEV;
	if (strlen(uuid) >= UUID_TEXT_BYTES)
		return -ENODEV;
	memset(ret_uuid, 0, UUID_TEXT_BYTES);
	memcpy(ret_uuid, uuid, strlen(uuid));
	remember(device, ret_uuid);
	return 0;
}

static uint64_t least(uint64_t cap, uint64_t other)
{
	return other == QUOTA_UNSET || other > cap ? cap : other;
}

static void copy_ledger(struct nvml_view *view, const struct ledger *ledger, const char *group)
{
	view->own = NULL;
	ledger_view(ledger, &view->ledger);
	for (unsigned i = 0; i < view->ledger.group_count && group[0]; i++)
		if (strcmp(view->ledger.groups[i].name, group) == 0)
			view->own = &view->ledger.groups[i];
}

/* Without joining and without making anything. */
static void read_ledger(struct nvml_view *view, const char *group, char ret_dir[PATH_MAX])
{
	static const char *const usual[] = {"/run/cuota", "/dev/shm/cuota", NULL};
	const char *configured[] = {tenant_config()->dir, NULL};
	const char *const *dir = configured[0][0] ? configured : usual;
	char path[PATH_MAX + UUID_TEXT_BYTES + 16];
	struct ledger ledger;

	view->own = NULL;
	view->ledger.group_count = view->ledger.slot_count = 0;
	view->ledger.device_bytes = 0;
	ret_dir[0] = '\0';
	for (; *dir && !ret_dir[0]; dir++) {
		snprintf(path, sizeof(path), "%s/%s.ledger", *dir, view->uuid);
		if (ledger_open_read(path, &ledger, NULL))
			continue;
		copy_ledger(view, &ledger, group);
		ledger_close(&ledger);
		snprintf(ret_dir, PATH_MAX, "%s", *dir);
	}
}

/* What CUDA calls the device's total, of which a percentage is taken: without what the driver reserves. */
static uint64_t cuda_total(nvmlDevice_t device, const struct nvml_view *view)
{
	nvmlMemory_v2_t two = {.version = (unsigned)sizeof(two) | 2u << 24};
	nvmlMemory_t one;

	if (view->ledger.device_bytes)
		return view->ledger.device_bytes; /* as a process with a seat has seen it */
	if (real_nvml.nvmlDeviceGetMemoryInfo_v2(device, &two) == NVML_SUCCESS)
		return two.total - two.reserved;
	return real_nvml.nvmlDeviceGetMemoryInfo(device, &one) == NVML_SUCCESS ? one.total : 0;
}

/* What this process would be held to if it took a seat now: as ledger_join reckons it. */
static int reckon_unseated(struct nvml_view *view, nvmlDevice_t device)
{
	const struct config *config = tenant_config();
	uint64_t total, used = 0;
	unsigned index = UINT32_MAX;
	struct quota limits = {0};
	char dir[PATH_MAX];
	int cuda_index = -1;

	if (real_nvml.nvmlDeviceGetIndex &&
	    real_nvml.nvmlDeviceGetIndex(device, &index) == NVML_SUCCESS)
		cuda_index = nvml_visible_index(getenv("CUDA_VISIBLE_DEVICES"), index, view->uuid);
	read_ledger(view, config->group, dir);
	total = cuda_total(device, view);

	struct quota asked = config_quota(
		config, cuda_index < 0 ? UINT32_MAX : (unsigned)cuda_index, view->uuid, total);
	struct quota ceiling = tenant_ceiling(view->uuid, total);

	if (config->group[0] && dir[0])
		limits_read(dir, config->group, (unsigned)geteuid(), &limits, NULL);
	if (!config->group[0] && !quota_any(&asked) && !quota_any(&ceiling))
		return 0;
	view->cap_bytes = least(UINT64_MAX, ceiling.mem_bytes);
	if (limits.mem_bytes != QUOTA_UNSET) {
		view->cap_bytes = least(view->cap_bytes, limits.mem_bytes);
	} else {
		view->cap_bytes = least(view->cap_bytes, asked.mem_bytes);
		if (view->own)
			view->cap_bytes = least(view->cap_bytes, view->own->mem_cap_bytes);
	}
	if (view->own)
		used = view->own->used_bytes;
	view->room_bytes = view->cap_bytes == UINT64_MAX ? UINT64_MAX
			   : used < view->cap_bytes	 ? view->cap_bytes - used
							 : 0;
	uint64_t process_cap = least(least(UINT64_MAX, ceiling.mem_process_bytes),
				     limits.mem_process_bytes ? limits.mem_process_bytes
							      : asked.mem_process_bytes);

	view->cap_bytes = least(view->cap_bytes, process_cap);
	if (view->room_bytes > process_cap)
		view->room_bytes = process_cap;
	return 1;
}

static void reckon_seated(struct nvml_view *view, const struct device_tenant *tenant)
{
	uint64_t process_cap = ledger_process_cap(&tenant->member);

	copy_ledger(view, &tenant->ledger, tenant->member.name);
	view->cap_bytes = ledger_group_cap(&tenant->member);
	if (process_cap < view->cap_bytes)
		view->cap_bytes = process_cap;
	view->room_bytes = ledger_room(&tenant->member);
}

struct nvml_view *nvml_view_open(nvmlDevice_t device)
{
	const struct device_tenant *tenant;
	struct nvml_view *view;
	int saved = errno, applies = 1;

	if (tenant_state() != TENANT_ON || hooks_load_nvml() || !device)
		return NULL;
	view = mmap(NULL, sizeof(*view), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (view == MAP_FAILED) {
		errno = saved;
		return NULL;
	}
	if (device_uuid(device, view->uuid)) {
		applies = 0;
	} else {
		tenant = tenant_of_uuid(view->uuid);
		if (tenant)
			reckon_seated(view, tenant);
		else
			applies = reckon_unseated(view, device);
	}
	if (!applies) {
		nvml_view_close(view);
		view = NULL;
	}
	errno = saved;
	return view;
}

void nvml_view_close(struct nvml_view *view)
{
	int saved = errno;

	munmap(view, sizeof(*view));
	errno = saved;
}

void nvml_view_again(struct nvml_view *view)
{
	const struct device_tenant *tenant = tenant_of_uuid(view->uuid);
	char dir[PATH_MAX];

	if (tenant)
		copy_ledger(view, &tenant->ledger, tenant->member.name);
	else
		read_ledger(view, tenant_config()->group, dir);
}

const struct slot_view *nvml_view_next(const struct nvml_view *view, unsigned *slot)
{
	while (view->own && *slot < view->ledger.slot_count) {
		const struct slot_view *found = &view->ledger.slots[(*slot)++];

		if (found->alive && found->group == view->own->index)
			return found;
	}
	return NULL;
}
