/*
 * What the environment asks for. Parsed once per process, before the first CUDA call that matters;
 * knows no CUDA and no shared memory, so every combination runs in unit tests.
 */
#ifndef CUOTA_BASE_CONFIG_H
#define CUOTA_BASE_CONFIG_H

#include <limits.h>
#include <stdint.h>

#include "base/error.h"
#include "base/group_name.h"
#include "base/quota.h"
#include "base/spec.h"

#define ALIAS_DEVICES 32 /* CUDA_DEVICE_MEMORY_LIMIT_0 .. _31 are read */

enum sched_mode {
	SCHED_AUTO,  /* turns where contexts never overlap, rate under MPS */
	SCHED_TURNS, /* exclusive turns even where auto would not */
	SCHED_RATE,  /* caps only */
	SCHED_OFF,   /* no SM-time control; metering goes on */
};

struct config {
	struct spec_list mem, mem_process, sm, weight, priority;
	char group[GROUP_NAME_BYTES]; /* "" = this process alone, "auto" already resolved */
	enum sched_mode sched;
	char dir[PATH_MAX];	    /* "" = the default search */
	char policy_path[PATH_MAX]; /* CUOTA_CONFIG, or "": for policy_read() */
	int strict;
	int log_level; /* enum log_level */
	char log_file[PATH_MAX];
	int any_set; /* some quota, group, weight, priority or sched was asked for, even "none":
			attach to the ledger */
};

/*
 * Reads every variable of env.def through get() (NULL = unset), each alias only when the CUOTA_ one
 * is unset. Returns 0, or -EINVAL with one line "CUOTA_MEM='8': no unit: write 8G or 8M". *ret is
 * defined only on success, except strict, log_level and log_file: they hold what could be read, so
 * that the caller knows how to report the error. `auto` groups are resolved with group_auto_self().
 */
int config_read(struct config *ret, const char *(*get)(const char *name), struct error *err);

/*
 * The environment's quota for one device (uuid may be NULL). A percent is of device_bytes. The last
 * matching entry of a list wins, a specific one over an ALL one. A list may name devices that this
 * process does not see.
 */
struct quota config_quota(const struct config *config, unsigned cuda_index, const char *uuid,
			  uint64_t device_bytes);

#endif
