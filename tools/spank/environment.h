/*
 * A job's environment, read and written through functions, because it is this process's own in srun
 * and sbatch and the job's in slurmstepd.
 */
#ifndef CUOTA_SPANK_ENVIRONMENT_H
#define CUOTA_SPANK_ENVIRONMENT_H

#include <limits.h>
#include <stddef.h>

#include "request.h"
#include "settings.h"

#define ENVIRONMENT_BYTES (2 * PATH_MAX)

/* Where a batch step leaves the job's own shards for the steps that it starts: "JOB:SHARDS". */
#define SHARDS_VARIABLE "CUOTA_SLURM_SHARDS"

struct environment {
	void *handle;
	/* 1 and the value, or 0 when it is unset or longer than the buffer. */
	int (*get)(void *handle, const char *name, char *buf, size_t bytes);
	/* 0 or -errno. */
	int (*set)(void *handle, const char *name, const char *value);
	void (*unset)(void *handle, const char *name);
};

/*
 * Drops what was set for another job: sbatch inside a job passes that job's variables on. job 0: for
 * whatever job it was.
 */
void environment_forget_other(const struct environment *env, unsigned job);

/* What CUOTA_MEM, CUOTA_SM and CUOTA_WEIGHT ask for, as far as each is a single value. */
void environment_request(const struct environment *env, struct request *ret);

/*
 * Puts the library first in LD_PRELOAD, whatever else is there kept, and sets directory, group and
 * what the request asks for. 0 or -errno.
 */
int environment_apply(const struct environment *env, const struct settings *settings,
		      const char *group, const struct request *request);

/* 1 if LD_PRELOAD names the library. */
int environment_has_library(const struct environment *env, const struct settings *settings);

#endif
