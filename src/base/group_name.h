/*
 * Names of groups: which are allowed, and the one that "auto" stands for.
 */
#ifndef CUOTA_BASE_GROUP_NAME_H
#define CUOTA_BASE_GROUP_NAME_H

#include <stdint.h>

#include "base/error.h"

#define GROUP_NAME_BYTES 64

/* What tells jobs, pods and containers apart; any text may be NULL or "". */
struct group_hints {
	const char *slurm_job_id;   /* SLURM_JOB_ID */
	const char *cgroup_text;    /* /proc/self/cgroup: v1, v2 or hybrid */
	const char *mountinfo_text; /* /proc/self/mountinfo: tells even where a cgroup namespace
				       hides the rest (all containers read "0::/" there) */
	uint64_t cgroup_namespace;  /* inode of /proc/self/ns/cgroup, 0 = unknown */
	unsigned uid;
};

/*
 * The first that is known of "slurm-JOB", "pod-UID", "ctr-ID" (12 hex digits), "cgns-INODE" (a
 * cgroup namespace that is not the host's), "uid-N". Always a name that group_name_check() takes.
 */
void group_auto(const struct group_hints *hints, char ret_name[GROUP_NAME_BYTES]);

/* group_auto() from this process's /proc and effective user. */
void group_auto_self(const char *slurm_job_id, char ret_name[GROUP_NAME_BYTES]);

/* 0 if the name may be a group: 1..63 bytes of [A-Za-z0-9._:@+-], not "auto". */
int group_name_check(const char *name, struct error *err);

#endif
