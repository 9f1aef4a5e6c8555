/*
 * The two faces of `cuota status`: a table for people and JSON for programs
 * (docs/status-schema.md).
 */
#ifndef CUOTA_CLI_STATUS_H
#define CUOTA_CLI_STATUS_H

#include "snapshot.h"

#define STATUS_SCHEMA_VERSION 1

struct status_options {
	double interval_s;
	int json, processes;
	const char *gpu; /* index, UUID or prefix of one; NULL = every GPU */
	char **groups;	 /* names asked for; none = every group */
	int group_count;
};

int status_wants_gpu(const struct status_options *options, const struct gpu_state *gpu);
int status_wants_group(const struct status_options *options, const struct group_view *group);

void status_text(const struct snapshot *snapshot, const struct status_options *options);
void status_json(const struct snapshot *snapshot, const struct status_options *options);

#endif
