/*
 * What the environment asks for. Parsed once per process, before the first CUDA call that matters;
 * knows no CUDA and no shared memory, so every combination runs in unit tests.
 */
#ifndef CUOTA_BASE_CONFIG_H
#define CUOTA_BASE_CONFIG_H

#include <limits.h>
#include <stdint.h>

#include "base/error.h"
#include "base/quota.h"

#define GROUP_NAME_BYTES 64
#define UUID_TEXT_BYTES	 48 /* "GPU-" or "MIG-" and 36 characters, terminated */
#define CONFIG_DEVICES	 64 /* entries in one device list */

enum sched_mode {
	SCHED_AUTO,  /* turns where contexts never overlap, rate under MPS */
	SCHED_TURNS, /* exclusive turns even where auto would not */
	SCHED_RATE,  /* caps only */
	SCHED_OFF,   /* no SM-time control; metering goes on */
};

enum spec_unit { SPEC_UNSET, SPEC_BYTES, SPEC_PERCENT_BP, SPEC_NONE };

/* One value of a device list: for every device, one CUDA index, or a UUID or prefix of one. */
struct spec {
	enum { SPEC_ALL, SPEC_INDEX, SPEC_UUID } which;
	unsigned index;
	char uuid[UUID_TEXT_BYTES];
	enum spec_unit unit;
	uint64_t value; /* bytes, hundredths of a percent, weight or priority */
};

struct spec_list {
	unsigned count;
	struct spec specs[CONFIG_DEVICES];
};

struct config {
	struct spec_list mem, mem_process, sm, weight, priority;
	char group[GROUP_NAME_BYTES]; /* "" = this process alone, "auto" already resolved */
	enum sched_mode sched;
	char dir[PATH_MAX];	   /* "" = the default search */
	char policy_path[PATH_MAX]; /* CUOTA_CONFIG or the default */
	int strict;
	int log_level; /* enum log_level */
	char log_file[PATH_MAX];
	int any_set; /* some quota, group, weight, priority or sched was asked for: attach to the ledger */
};

/*
 * Reads every variable of env.def through get() (NULL = unset). Returns 0, or -EINVAL with one line
 * "CUOTA_MEM='8': no unit: write 8G or 8M". *ret is defined only on success. `auto` groups are
 * resolved with group_auto().
 */
int config_read(struct config *ret, const char *(*get)(const char *name), struct error *err);

/*
 * The environment's quota for one device. A percent is of device_bytes. The last matching entry of
 * a list wins, a specific one over an ALL one. -EINVAL if a list names no devices that match at all is
 * not an error here: lists may name devices this process does not see.
 */
struct quota config_quota(const struct config *config, unsigned cuda_index, const char *uuid,
			  uint64_t device_bytes);

/* Container or Slurm job: SLURM_JOB_ID, then pod or container id from `cgroup_text` (the text of
 * /proc/self/cgroup), then "uid-N". */
void group_auto(const char *slurm_job_id, const char *cgroup_text, unsigned uid,
		char ret_name[GROUP_NAME_BYTES]);

/* 0 if the name may be a group: 1..63 bytes of [A-Za-z0-9._:@+-], not "auto". */
int group_name_check(const char *name, struct error *err);

#endif
