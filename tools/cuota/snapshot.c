/*
 * See snapshot.h. Ledgers and NVML are matched by UUID, processes by start time and PID: a process
 * in a container has another PID for itself than for NVML.
 */
#include "snapshot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "books.h"
#include "effective.h"

#define MINUTE_TAIL (64u << 10)	      /* bytes of each journal file that hold the last minutes */
#define MPS_SERVER  "nvidia-cuda-mps" /* as comm cuts it: the server's memory is its clients' */

static struct gpu_state *add_gpu(struct snapshot *snapshot)
{
	struct gpu_state *more = realloc(snapshot->gpus,
					 (snapshot->gpu_count + 1) * sizeof(*snapshot->gpus)),
			 *gpu;

	if (!more)
		return NULL;
	snapshot->gpus = more;
	gpu = &more[snapshot->gpu_count++];
	memset(gpu, 0, sizeof(*gpu));
	gpu->index = -1;
	gpu->used_bytes = NVML_BYTES_UNKNOWN;
	gpu->compute_mode = MODE_UNKNOWN;
	return gpu;
}

/* The file's name is the UUID also where the file itself is beyond reading. */
static void uuid_from_path(const char *path, char ret[UUID_TEXT_BYTES])
{
	const char *base = strrchr(path, '/');
	size_t length;

	base = base ? base + 1 : path;
	length = strcspn(base, ".");
	snprintf(ret, UUID_TEXT_BYTES, "%.*s", (int)(length < 47 ? length : 47), base);
}

/*
 * Leaves the dead out of the copy: their memory is free already, whoever needs it next takes their slots
 * back (ledger_reap).
 */
static void forget_the_dead(struct gpu_state *gpu)
{
	struct ledger_view *view = gpu->view;
	unsigned kept = 0;

	for (unsigned i = 0; i < view->slot_count; i++) {
		const struct slot_view *slot = &view->slots[i];
		struct group_view *group = view->groups;

		if (slot->alive) {
			view->slots[kept++] = *slot;
			continue;
		}
		gpu->dead_count++;
		while (group < view->groups + view->group_count && group->index != slot->group)
			group++;
		if (group == view->groups + view->group_count)
			continue;
		group->members--;
		group->used_bytes -=
			slot->used_bytes < group->used_bytes ? slot->used_bytes : group->used_bytes;
		for (unsigned k = 0; k < CHARGE_KINDS; k++)
			group->kind_bytes[k] -= slot->kind_bytes[k];
	}
	view->slot_count = kept;
	kept = 0;
	for (unsigned i = 0; i < view->group_count; i++)
		if (view->groups[i].members)
			view->groups[kept++] = view->groups[i];
	view->group_count = kept;
}

static void fill_groups(struct gpu_state *gpu)
{
	char dir[PATH_MAX], limits[PATH_MAX + 16];

	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(gpu->ledger_path, '/') - gpu->ledger_path),
		 gpu->ledger_path);
	snprintf(limits, sizeof(limits), "%s/limits", dir);
	if (access(limits, F_OK))
		dir[0] = '\0'; /* nothing was ever set: no need to look for each group */
	for (unsigned i = 0; i < gpu->group_count; i++) {
		struct group_state *group = &gpu->groups[i];

		group->view = &gpu->view->groups[i];
		group->caps = effective_quota(dir, gpu->view, group->view);
		group->share = NAN;
		group->share_minute = NAN;
	}
}

static int add_ledger(struct snapshot *snapshot, const struct ledger_entry *entry)
{
	struct gpu_state *gpu = add_gpu(snapshot);

	if (!gpu)
		return -ENOMEM;
	snprintf(gpu->ledger_path, sizeof(gpu->ledger_path), "%s", entry->path);
	uuid_from_path(entry->path, gpu->uuid);
	gpu->problem = entry->problem;
	if (gpu->problem.text[0])
		return 0;
	gpu->view = calloc(1, sizeof(*gpu->view));
	if (!gpu->view)
		return -ENOMEM;
	ledger_view(&entry->ledger, gpu->view);
	snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", gpu->view->uuid);
	snprintf(gpu->name, sizeof(gpu->name), "%s", gpu->view->device_name);
	gpu->total_bytes = gpu->view->device_bytes;
	forget_the_dead(gpu);
	gpu->group_count = gpu->view->group_count;
	gpu->groups = calloc(gpu->group_count ? gpu->group_count : 1, sizeof(*gpu->groups));
	if (!gpu->groups)
		return -ENOMEM;
	fill_groups(gpu);
	return 0;
}

static int in_ledger(const struct gpu_state *gpu, const struct process *process)
{
	for (unsigned i = 0; gpu->view && i < gpu->view->slot_count; i++)
		if (process_owns(process, &gpu->view->slots[i]))
			return 1;
	return 0;
}

static void match_processes(struct gpu_state *gpu, const struct nvml_gpu *device)
{
	int sees_all = process_sees_all();

	gpu->unattached =
		calloc(device->process_count ? device->process_count : 1, sizeof(*gpu->unattached));
	for (unsigned i = 0; gpu->unattached && i < device->process_count; i++) {
		struct unattached *entry = &gpu->unattached[gpu->unattached_count];

		if (!sees_all || process_read((pid_t)device->processes[i].pid, &entry->process)) {
			gpu->invisible++;
			continue;
		}
		if (in_ledger(gpu, &entry->process) || !strcmp(entry->process.comm, MPS_SERVER))
			continue;
		entry->used_bytes = device->processes[i].used_bytes;
		gpu->unattached_count++;
	}
}

static int add_device(struct snapshot *snapshot, const struct nvml_gpu *device)
{
	struct gpu_state *gpu = NULL;

	for (unsigned i = 0; i < snapshot->gpu_count && !gpu; i++)
		if (!strcmp(snapshot->gpus[i].uuid, device->uuid))
			gpu = &snapshot->gpus[i];
	if (!gpu)
		gpu = add_gpu(snapshot);
	if (!gpu)
		return -ENOMEM;
	snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", device->uuid);
	snprintf(gpu->name, sizeof(gpu->name), "%s", device->name);
	gpu->index = (int)device->index;
	gpu->total_bytes = device->total_bytes;
	gpu->used_bytes = device->used_bytes;
	gpu->compute_mode = device->compute_mode;
	gpu->is_mig = device->is_mig;
	match_processes(gpu, device);
	return 0;
}

static int read_devices(struct snapshot *snapshot)
{
	struct nvml_state *state;
	int rc = 0;

	if (nvml_open(&snapshot->nvml_problem))
		return 0;
	state = malloc(sizeof(*state));
	if (!state)
		return -ENOMEM;
	if (nvml_read(state))
		error_set(&snapshot->nvml_problem, EIO, "NVML does not list the GPUs");
	memcpy(snapshot->driver, state->driver, sizeof(snapshot->driver));
	for (unsigned i = 0; !rc && i < state->gpu_count; i++)
		rc = add_device(snapshot, &state->gpus[i]);
	nvml_state_free(state);
	free(state);
	return rc;
}

/* NVML's order; GPUs that only a ledger knows come last. */
static int by_index(const void *a, const void *b)
{
	const struct gpu_state *x = a, *y = b;

	if (x->index != y->index)
		return (unsigned)x->index < (unsigned)y->index ? -1 : 1;
	return strcmp(x->uuid, y->uuid);
}

int snapshot_read(struct snapshot *ret, struct error *err)
{
	struct ledger_list list;
	struct timespec wall;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = ledgers_open(&list, err);
	if (rc)
		return rc;
	clock_gettime(CLOCK_REALTIME, &wall);
	ret->wall_s = (double)wall.tv_sec + (double)wall.tv_nsec / 1e9;
	ret->monotonic_ns = clock_now_ns();
	ret->dirs = list.dirs;
	for (unsigned i = 0; !rc && i < list.count; i++)
		rc = add_ledger(ret, &list.entries[i]);
	ledgers_close(&list);
	if (!rc)
		rc = read_devices(ret);
	if (rc) {
		snapshot_free(ret);
		return error_set(err, -rc, "%s", strerror(-rc));
	}
	if (ret->gpu_count > 1)
		qsort(ret->gpus, ret->gpu_count, sizeof(*ret->gpus), by_index);
	return 0;
}

static const struct group_view *same_group(const struct snapshot *before, const char *ledger_path,
					   const struct group_view *group)
{
	for (unsigned g = 0; g < before->gpu_count; g++) {
		const struct gpu_state *gpu = &before->gpus[g];

		if (!gpu->view || strcmp(gpu->ledger_path, ledger_path))
			continue;
		for (unsigned i = 0; i < gpu->group_count; i++) {
			const struct group_view *view = gpu->groups[i].view;

			if (view->index == group->index && view->created_ns == group->created_ns &&
			    !strcmp(view->name, group->name))
				return view;
		}
	}
	return NULL;
}

void snapshot_shares(struct snapshot *now, const struct snapshot *before)
{
	double elapsed_ns = (double)now->monotonic_ns - (double)before->monotonic_ns;

	for (unsigned g = 0; g < now->gpu_count; g++) {
		struct gpu_state *gpu = &now->gpus[g];

		for (unsigned i = 0; i < gpu->group_count; i++) {
			const struct group_view *view = gpu->groups[i].view, *old;

			old = same_group(before, gpu->ledger_path, view);
			if (!old || elapsed_ns <= 0 || view->busy_ns < old->busy_ns)
				continue;
			gpu->groups[i].share = (double)(view->busy_ns - old->busy_ns) / elapsed_ns;
		}
	}
}

void snapshot_free(struct snapshot *snapshot)
{
	for (unsigned i = 0; i < snapshot->gpu_count; i++) {
		free(snapshot->gpus[i].view);
		free(snapshot->gpus[i].groups);
		free(snapshot->gpus[i].unattached);
	}
	free(snapshot->gpus);
	snapshot->gpus = NULL;
	snapshot->gpu_count = 0;
}

void snapshot_minute_shares(struct snapshot *snapshot)
{
	struct books books;

	if (books_read(&snapshot->dirs, BOOKS_SAMPLES, snapshot->wall_s - 120, MINUTE_TAIL, &books,
		       NULL))
		return;
	for (unsigned g = 0; g < snapshot->gpu_count; g++) {
		struct gpu_state *gpu = &snapshot->gpus[g];

		for (unsigned i = 0; i < gpu->group_count; i++)
			gpu->groups[i].share_minute =
				books_share(&books, gpu->uuid, gpu->groups[i].view,
					    snapshot->wall_s, snapshot->monotonic_ns, 60);
	}
	books_free(&books);
}

int snapshot_sample(struct snapshot *ret, double seconds, struct error *err)
{
	struct timespec pause = {(time_t)seconds,
				 (long)((seconds - (double)(time_t)seconds) * 1e9)};
	struct snapshot before = {0};
	int rc = 0;

	if (seconds > 0) {
		rc = snapshot_read(&before, err);
		if (rc)
			return rc;
		nanosleep(&pause, NULL);
	}
	rc = snapshot_read(ret, err);
	if (!rc && seconds > 0)
		snapshot_shares(ret, &before);
	if (!rc)
		snapshot_minute_shares(ret);
	snapshot_free(&before);
	return rc;
}

uint64_t group_overhead_bytes(const struct group_view *group)
{
	return group->kind_bytes[CHARGE_CONTEXT] + group->kind_bytes[CHARGE_MODULE] +
	       group->kind_bytes[CHARGE_OVERHEAD];
}

const char *priority_name(uint32_t priority)
{
	switch (priority) {
	case PRIORITY_LOW: return "low";
	case PRIORITY_HIGH: return "high";
	default: return "normal";
	}
}
