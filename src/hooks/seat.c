/*
 * A seat: this process's slot in the ledger of one device, taken when the device is first used.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/log.h"
#include "hooks/hooks.h"
#include "hooks/launch.h"
#include "hooks/process.h"
#include "ledger/journal.h"
#include "ledger/protocol.h"

enum attached { SEAT_NONE, SEAT_SHARED, SEAT_PRIVATE, SEAT_REFUSED };

#define GIDS_MAX 64

/* "GPU-8f3a…": as nvidia-smi prints it. A MIG instance is a device of its own. */
static int device_uuid(CUdevice device, char ret_uuid[UUID_TEXT_BYTES])
{
	const unsigned char *b;
	char name[128] = "";
	CUuuid uuid;
	CUresult rc;

	rc = real.cuDeviceGetUuid_v2 ? real.cuDeviceGetUuid_v2(&uuid, device)
				     : real.cuDeviceGetUuid(&uuid, device);
	if (rc != CUDA_SUCCESS)
		return -ENODEV;
	real.cuDeviceGetName(name, sizeof(name) - 1, device);
	b = (const unsigned char *)uuid.bytes;
	snprintf(ret_uuid, UUID_TEXT_BYTES,
		 "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 strstr(name, " MIG ") ? "MIG" : "GPU", b[0], b[1], b[2], b[3], b[4], b[5], b[6],
		 b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
	return 0;
}

struct quota tenant_ceiling(const char *uuid, uint64_t device_bytes)
{
	const struct process *process = atomic_load(&tenant_process);
	gid_t gids[GIDS_MAX];
	int count = getgroups(GIDS_MAX - 1, gids);
	struct policy_subject who = {
		.uid = (unsigned)geteuid(),
		.group = process->config.group,
		.uuid = uuid,
		.device_bytes = device_bytes,
	};
	unsigned all[GIDS_MAX];

	if (count < 0)
		count = 0;
	for (int i = 0; i < count; i++)
		all[i] = (unsigned)gids[i];
	all[count] = (unsigned)getegid();
	who.gids = all;
	who.gid_count = (size_t)count + 1;
	return policy_quota(process->policy, &who);
}

/* Under MPS the driver says that a context may be given a share of the multiprocessors. */
static int contexts_overlap(CUdevice device)
{
	int supported = 0;

	if (!real.cuDeviceGetExecAffinitySupport)
		return 0;
	if (real.cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT,
						device) != CUDA_SUCCESS)
		return 0;
	return supported;
}

static int open_ledger(struct process *process, struct device_tenant *device, struct error *err)
{
	int rc = 0;

	if (!process->dir[0])
		rc = ledger_dir(process->config.dir, process->dir, err);
	if (rc == 0)
		rc = ledger_open(process->dir, device->uuid, &device->ledger, err);
	return rc;
}

/* The scheduler's tables are a few hundred KiB, and no business of a forked child's. */
static int make_sched(struct process *process, struct device_tenant *device)
{
	struct launcher *launcher = mmap(NULL, sizeof(*launcher), PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (launcher == MAP_FAILED)
		return -ENOMEM;
	sched_init(&launcher->sched, &device->member, process->config.sched,
		   contexts_overlap(device->device));
	launcher->device = device;
	device->sched = &launcher->sched;
	return 0;
}

/* For `cuota status` and prices, where no NVML answers. */
static void note_device_name(struct device_tenant *device)
{
	char name[64] = "";

	if (real.cuDeviceGetName(name, sizeof(name) - 1, device->device) == CUDA_SUCCESS)
		words_store(device->ledger.file->header.device_name, 8, name);
}

static enum attached refuse_without_ledger(const struct device_tenant *device,
					   const struct error *err)
{
	log_must("%s: no ledger, and CUOTA_STRICT is set: %s", device->uuid, err->text);
	return SEAT_REFUSED;
}

static int join_shared(struct process *process, struct device_tenant *device, struct error *err)
{
	int rc = open_ledger(process, device, err);

	if (rc != 0)
		return rc;
	rc = service_join(process, device, err->text);
	if (rc != 0)
		ledger_close(&device->ledger);
	else
		journal_setup(process->dir);
	return rc;
}

/* In the shared ledger; where that cannot be had, or has no room, in one of this process's own unless CUOTA_STRICT is set. */
static enum attached sit_down(struct process *process, struct device_tenant *device)
{
	struct error err = {""};

	if (join_shared(process, device, &err) == 0)
		return SEAT_SHARED;
	if (process->config.strict)
		return refuse_without_ledger(device, &err);
	log_must("%s: no ledger: caps hold within this process alone: %s", device->uuid, err.text);
	if (ledger_open_private(device->uuid, &device->ledger, &err) == 0) {
		if (service_join(process, device, err.text) == 0)
			return SEAT_PRIVATE;
		ledger_close(&device->ledger);
	}
	log_must("%s: no ledger of its own either: %s", device->uuid, err.text);
	return SEAT_REFUSED;
}

static enum attached attach(struct process *process, struct device_tenant *device)
{
	enum attached how;
	size_t total = 0;

	if (device_uuid(device->device, device->uuid) != 0 ||
	    real.cuDeviceTotalMem_v2(&total, device->device) != CUDA_SUCCESS)
		return SEAT_NONE;
	device->device_bytes = total;
	device->asked =
		config_quota(&process->config, (unsigned)device->ordinal, device->uuid, total);
	device->ceiling = tenant_ceiling(device->uuid, total);
	how = sit_down(process, device);
	if (how == SEAT_REFUSED)
		return how;
	atomic_store(&device->ledger.file->header.device_bytes, total);
	note_device_name(device);
	if (make_sched(process, device) != 0)
		return SEAT_REFUSED;
	log_line(LOG_INFO, "joined %s as slot %u", device->uuid, device->member.slot);
	return how;
}

static void note_seat(struct process *process, struct device_tenant *device)
{
	struct device_tenant *only = atomic_fetch_add(&process->seats, 1) == 0 ? device : NULL;

	atomic_store(&process->only, only);
	atomic_store(&process->only_sched, only ? only->sched : NULL);
}

static void lock_seats(struct process *process)
{
	uint32_t unlocked = 0;

	while (!atomic_compare_exchange_strong(&process->seat_lock, &unlocked, 1)) {
		futex_wait(&process->seat_lock, 1, NS_PER_MS);
		unlocked = 0;
	}
}

static void unlock_seats(struct process *process)
{
	atomic_store(&process->seat_lock, 0);
	futex_wake(&process->seat_lock, 1);
}

/* The first use of a device, or one that may not be used. */
static __attribute__((noinline)) struct device_tenant *take_seat(CUdevice cuda_device)
{
	struct process *process;
	struct device_tenant *device;
	uint32_t attached;
	int saved = errno;

	if (tenant_state() != TENANT_ON || cuda_device < 0 || cuda_device >= TENANT_DEVICES)
		return NULL;
	process = atomic_load(&tenant_process);
	device = &process->devices[cuda_device];
	attached = atomic_load_explicit(&device->attached, memory_order_acquire);
	if (attached != SEAT_NONE)
		return attached == SEAT_REFUSED ? NULL : device;
	lock_seats(process);
	attached = atomic_load(&device->attached);
	if (attached == SEAT_NONE) {
		device->device = cuda_device;
		device->ordinal = cuda_device;
		attached = attach(process, device);
		atomic_store_explicit(&device->attached, attached, memory_order_release);
		if (attached == SEAT_SHARED || attached == SEAT_PRIVATE)
			note_seat(process, device);
	}
	unlock_seats(process);
	errno = saved;
	return attached == SEAT_SHARED || attached == SEAT_PRIVATE ? device : NULL;
}

/* Opens the ledger and lets it go: a program that starts may never use this device. */
static void look_for_ledger(struct process *process, CUdevice cuda_device)
{
	struct device_tenant *device = &process->devices[cuda_device];
	struct error err = {""};

	if (atomic_load(&device->attached) != SEAT_NONE ||
	    device_uuid(cuda_device, device->uuid) != 0)
		return;
	if (open_ledger(process, device, &err) == 0)
		ledger_close(&device->ledger);
	else
		atomic_store_explicit(&device->attached, refuse_without_ledger(device, &err),
				      memory_order_release);
}

int tenant_start_refused(void)
{
	struct process *process;
	int count = 0, refused = 0, saved = errno;

	if (tenant_state() != TENANT_ON)
		return tenant_state() == TENANT_REFUSED;
	process = atomic_load(&tenant_process);
	if (!process->config.strict || real.cuDeviceGetCount(&count) != CUDA_SUCCESS)
		return 0;
	if (count > TENANT_DEVICES)
		count = TENANT_DEVICES;
	lock_seats(process);
	for (int i = 0; i < count; i++) {
		if (!process->ledgers_looked_for)
			look_for_ledger(process, i);
		refused |= tenant_refused(i);
	}
	process->ledgers_looked_for = 1;
	unlock_seats(process);
	errno = saved;
	return refused;
}

struct device_tenant *tenant_of_device(CUdevice device)
{
	struct device_tenant *taken = seat_taken(device);

	return __builtin_expect(taken != NULL, 1) ? taken : take_seat(device);
}

struct device_tenant *tenant_of_current(void)
{
	CUdevice device;

	if (tenant_state() != TENANT_ON || !real.cuCtxGetDevice ||
	    real.cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return NULL;
	return tenant_of_device(device);
}

/* With one seat there is nothing to ask the driver for. */
struct device_tenant *tenant_of_launch(void)
{
	struct process *process = atomic_load_explicit(&tenant_process, memory_order_relaxed);
	struct device_tenant *only = atomic_load_explicit(&process->only, memory_order_acquire);

	return only ? only : tenant_of_current();
}

struct device_tenant *tenant_of_stream(CUstream stream)
{
	struct device_tenant *device = NULL;
	CUcontext context;

	if (!real.cuStreamGetCtx || real.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS ||
	    real.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return NULL;
	device = tenant_of_current();
	real.cuCtxPopCurrent_v2(&context);
	return device;
}

void tenant_wake(struct device_tenant *device, unsigned wake)
{
	struct slot_sm *sm;

	if (wake == 0 || wake > LEDGER_SLOTS)
		return;
	sm = &device->ledger.file->slot[wake - 1].sm;
	atomic_fetch_add(&sm->turn_futex, 1);
	futex_wake(&sm->turn_futex, INT32_MAX);
}

int tenant_refused(CUdevice device)
{
	struct process *process = atomic_load(&tenant_process);

	return process && device >= 0 && device < TENANT_DEVICES &&
	       atomic_load(&process->devices[device].attached) == SEAT_REFUSED;
}

struct device_tenant *tenant_of_uuid(const char *uuid)
{
	struct process *process = atomic_load(&tenant_process);

	for (int i = 0; process && i < TENANT_DEVICES; i++) {
		struct device_tenant *device = &process->devices[i];
		uint32_t attached = atomic_load_explicit(&device->attached, memory_order_acquire);

		if ((attached == SEAT_SHARED || attached == SEAT_PRIVATE) &&
		    strcmp(device->uuid, uuid) == 0)
			return device;
	}
	return NULL;
}
