/*
 * The arguments of the plugin's line in plugstack.conf: what the admin decides. The only list of
 * them is the table in settings.c; docs/slurm.md explains each.
 */
#ifndef CUOTA_SPANK_SETTINGS_H
#define CUOTA_SPANK_SETTINGS_H

#include <limits.h>
#include <stdint.h>

#include "base/error.h"

enum shard_sm {
	SHARD_SM_CAP,	 /* a share of the shards is a hard cap of SM time */
	SHARD_SM_WEIGHT, /* it counts only while others compete */
	SHARD_SM_NONE,
};

struct settings {
	char library[PATH_MAX];	   /* libcuota.so on the nodes */
	char dir[PATH_MAX];	   /* of the ledgers */
	char policy_dir[PATH_MAX]; /* "" = no policy file per job */
	unsigned shards_per_gpu;   /* 0 = not told */
	uint64_t gpu_bytes;	   /* 0 = not told */
	enum shard_sm shard_sm;
	int attach_all; /* every job that has a GPU, not only those that ask for a cap */
	int strict;
};

/* -EINVAL with the argument and the reason; *ret is always defined. */
int settings_read(int argc, char **argv, struct settings *ret, struct error *err);

#endif
