/*
 * Processes of jobs that are still in a ledger. A job's end proves nothing about its processes
 * (kill -9 of slurmstepd leaves them running under proctrack/linuxproc), so nobody's charge is taken
 * from it here: only the dead are reaped, and the kernel says who is dead.
 */
#ifndef CUOTA_SPANK_SURVIVORS_H
#define CUOTA_SPANK_SURVIVORS_H

#include <stdint.h>

#include "base/error.h"
#include "base/group_name.h"
#include "base/spec.h"

struct survivor {
	char group[GROUP_NAME_BYTES];
	char uuid[UUID_TEXT_BYTES];
	char comm[17];
	uint32_t pid; /* as its own PID namespace sees it */
	uint64_t used_bytes;
};

struct survivors {
	unsigned count;
	struct survivor *list; /* free(list) */
};

/*
 * Reaps the dead in every ledger of dir, and finds the living whose group is a job's. A ledger that
 * cannot be read is passed over and told in err; -errno only when there is no memory.
 */
int survivors_find(const char *dir, struct survivors *ret, struct error *err);

/* 1 if the group is the job's or one of its steps'. */
int group_is_job(const char *group, unsigned job);

#endif
