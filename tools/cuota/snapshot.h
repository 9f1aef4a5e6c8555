/*
 * Everything known about the GPUs of this host at one moment: the ledgers' contents joined with
 * what the driver says. Read by status, top, the exporter, reap and doctor; whoever wants shares
 * takes two.
 */
#ifndef CUOTA_CLI_SNAPSHOT_H
#define CUOTA_CLI_SNAPSHOT_H

#include <stdint.h>

#include "ledgers.h"
#include "nvml.h"
#include "process.h"

struct group_state {
	const struct group_view *view;
	struct quota caps; /* what binds the group now (effective.h) */
	double share; /* of the device's time since the earlier snapshot, 0..1; NAN = unknown */
	double share_minute; /* over the last minute; NAN = unknown */
};

struct unattached {
	struct process process;
	uint64_t used_bytes; /* or NVML_BYTES_UNKNOWN */
};

struct gpu_state {
	char uuid[UUID_TEXT_BYTES];
	char name[96];
	int index;	      /* NVML's; -1 = unknown */
	uint64_t total_bytes; /* 0 = unknown */
	uint64_t used_bytes;  /* as NVML says, everybody's; NVML_BYTES_UNKNOWN */
	enum nvml_compute_mode compute_mode;
	int is_mig;
	char ledger_path[PATH_MAX]; /* "" = no ledger: nobody under a quota has used this GPU */
	struct error problem;	    /* the ledger is there and cannot be read */
	struct ledger_view *view;   /* NULL = none */
	unsigned dead_count;	    /* slots of ended processes, not counted below */
	unsigned group_count;	    /* groups with a living member */
	struct group_state *groups;
	unsigned unattached_count; /* processes on the GPU that are in no ledger */
	struct unattached *unattached;
	unsigned invisible; /* on the GPU, but not to be seen from this PID namespace */
};

struct snapshot {
	uint64_t monotonic_ns;
	double wall_s;
	char driver[32];
	struct error nvml_problem; /* "" = NVML answered */
	struct cli_dirs dirs;
	unsigned gpu_count;
	struct gpu_state *gpus;
};

/* -EACCES, -ENOMEM; no GPU, no driver and no ledger are no errors. NVML stays open (nvml_close()).
 */
int snapshot_read(struct snapshot *ret, struct error *err);

/* Fills the shares of `now` from what was charged since `before`. */
void snapshot_shares(struct snapshot *now, const struct snapshot *before);

void snapshot_free(struct snapshot *snapshot);

/* Fills the shares over the last minute from the journal; unknown where it does not reach back. */
void snapshot_minute_shares(struct snapshot *snapshot);

/* Two snapshots `seconds` apart, the second with its shares; one when seconds is 0. Minute shares
 * too. */
int snapshot_sample(struct snapshot *ret, double seconds, struct error *err);

/* Bytes that are no allocation of the program: contexts, code, what only the driver's figure shows.
 */
uint64_t group_overhead_bytes(const struct group_view *group);

const char *priority_name(uint32_t priority);

#endif
