/*
 * `cuota status`: one look at every GPU. Reads the ledgers and NVML and changes nothing.
 */
#include "status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/spec.h"

static const struct argp_option options[] = {
	{"json", 'j', NULL, 0, "print JSON (docs/status-schema.md)", 0},
	{"interval", 'i', "SECONDS", 0,
	 "measure the shares over this time (default 0.25; 0: do not measure)", 0},
	{"processes", 'p', NULL, 0, "list the members of each group", 0},
	{"gpu", 'g', "GPU", 0, "only this GPU: index, UUID or the beginning of one", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct status_options *in = state->input;
	struct error err;

	switch (key) {
	case 'j': in->json = 1; return 0;
	case 'p': in->processes = 1; return 0;
	case 'g': in->gpu = arg; return 0;
	case 'i':
		if (cli_duration(arg, &in->interval_s, &err))
			argp_error(state, "--interval %s", err.text);
		return 0;
	case ARGP_KEY_ARG:
		in->groups = state->argv + state->next - 1;
		in->group_count = state->argc - state->next + 1;
		state->next = state->argc;
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* Asked for groups, a GPU that has none of them is left out. */
static int has_wanted_group(const struct status_options *in, const struct gpu_state *gpu)
{
	for (unsigned i = 0; i < gpu->group_count; i++)
		if (status_wants_group(in, gpu->groups[i].view))
			return 1;
	return 0;
}

int status_wants_gpu(const struct status_options *in, const struct gpu_state *gpu)
{
	char *end;
	long index;

	if (in->group_count && !has_wanted_group(in, gpu))
		return 0;
	if (!in->gpu)
		return 1;
	index = strtol(in->gpu, &end, 10);
	if (end != in->gpu && !*end)
		return gpu->index == (int)index;
	return *in->gpu && spec_uuid_matches(in->gpu, gpu->uuid);
}

int status_wants_group(const struct status_options *in, const struct group_view *group)
{
	for (int i = 0; i < in->group_count; i++)
		if (!strcmp(in->groups[i], group->name))
			return 1;
	return !in->group_count;
}

/* A name that nobody has is a mistake of the caller's, not an empty table. */
static int check_names(const struct snapshot *snapshot, const struct status_options *in)
{
	int gpus = 0;

	for (unsigned g = 0; g < snapshot->gpu_count; g++)
		gpus += status_wants_gpu(in, &snapshot->gpus[g]);
	if (in->gpu && !in->group_count && !gpus) {
		cli_error("no GPU '%s'", in->gpu);
		return -ENOENT;
	}
	for (int i = 0; i < in->group_count; i++) {
		int found = 0;

		for (unsigned g = 0; g < snapshot->gpu_count; g++)
			for (unsigned n = 0; n < snapshot->gpus[g].group_count; n++)
				found |= !strcmp(snapshot->gpus[g].groups[n].view->name,
						 in->groups[i]);
		if (!found) {
			cli_error("no group '%s'", in->groups[i]);
			return -ENOENT;
		}
	}
	return 0;
}

static int damaged(const struct snapshot *snapshot)
{
	int count = 0;

	for (unsigned g = 0; g < snapshot->gpu_count; g++) {
		if (!snapshot->gpus[g].problem.text[0])
			continue;
		cli_error("%s", snapshot->gpus[g].problem.text);
		count++;
	}
	return count;
}

int command_status(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[GROUP...]",
		.doc = "Shows per GPU and group: caps, what is used, the share of SM time and who "
		       "waits.\v"
		       "Exit code: 1 when a group or GPU does not exist or a ledger cannot be "
		       "read.",
	};
	struct status_options in = {.interval_s = 0.25};
	struct snapshot snapshot;
	struct error err = {""};
	int rc;

	cli_parse(&argp, argc, argv, CLI_USAGE, &in);
	if (snapshot_sample(&snapshot, in.interval_s, &err)) {
		cli_error("%s", err.text);
		return CLI_FAILED;
	}
	rc = check_names(&snapshot, &in);
	if (!rc && in.json)
		status_json(&snapshot, &in);
	else if (!rc)
		status_text(&snapshot, &in);
	if (damaged(&snapshot))
		rc = -EPROTO;
	snapshot_free(&snapshot);
	nvml_close();
	return cli_finish(rc ? CLI_FAILED : CLI_OK);
}
