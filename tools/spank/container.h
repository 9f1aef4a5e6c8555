/*
 * Steps in an OCI container (srun --container). Slurm 22.05 passes on only what the submitting
 * process had in its own environment; what a plugin sets on the node is lost without a word. So the
 * plugin sets it at submission, and here, on the node, makes sure that it has arrived.
 */
#ifndef CUOTA_SPANK_CONTAINER_H
#define CUOTA_SPANK_CONTAINER_H

#include "environment.h"

/* 1 and the bundle's directory when the step runs in a container. */
int container_bundle(const struct environment *env, char ret_path[PATH_MAX]);

/*
 * 0 when the container's environment holds a cap as strict as `wanted` and the bundle has the
 * library; -EINVAL with what is missing and what to do.
 */
int container_check(const struct environment *env, const struct settings *settings,
		    const char *bundle, const struct request *wanted, struct error *err);

#endif
