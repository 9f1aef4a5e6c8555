/*
 * `cuota set`: changes the caps of a running group. Only the group's owner and root may; the
 * admin's policy stays a ceiling. A memory cap below what is in use takes nothing away: it refuses
 * what comes next.
 */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/group_name.h"
#include "base/size.h"
#include "base/spec.h"
#include "ledgers.h"
#include "snapshot.h"

enum { KEY_RESET = 0x100 };

static const struct argp_option options[] = {
	{"mem", 'm', "SIZE", 0, "memory cap of the group on each GPU: 8G, 50%, none", 0},
	{"mem-per-process", 'p', "SIZE", 0, "memory cap of each process in it", 0},
	{"sm", 's', "PERCENT", 0, "SM-time cap: 30, 30%, none", 0},
	{"weight", 'w', "N", 0, "share when groups compete, 1..10000", 0},
	{"priority", 'P', "CLASS", 0, "high, normal or low", 0},
	{"reset", KEY_RESET, NULL, 0, "forget what was set: back to what its members asked for", 0},
	{0},
};

struct input {
	const char *group, *mem, *mem_process, *sm, *weight, *priority;
	int reset;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	switch (key) {
	case KEY_RESET: in->reset = 1; return 0;
	case 'm': in->mem = arg; return 0;
	case 'p': in->mem_process = arg; return 0;
	case 's': in->sm = arg; return 0;
	case 'w': in->weight = arg; return 0;
	case 'P': in->priority = arg; return 0;
	case ARGP_KEY_ARG:
		if (in->group)
			argp_error(state, "one group at a time: '%s' is one too many", arg);
		in->group = arg;
		return 0;
	case ARGP_KEY_END:
		if (!in->group)
			argp_error(state, "no group given");
		if (!in->mem && !in->mem_process && !in->sm && !in->weight && !in->priority) {
			if (!in->reset)
				argp_error(state, "nothing to set");
		} else if (in->reset) {
			argp_error(state, "--reset goes alone");
		}
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* By the parser of `run` and of the environment; what is not given stays unset. */
static int parse_value(enum spec_kind kind, const char *option, const char *text, struct spec *ret)
{
	struct error err = {""};
	int rc;

	*ret = (struct spec){.unit = SPEC_UNSET};
	if (!text)
		return 0;
	rc = strpbrk(text, ",=") ? error_set(&err, EINVAL, "one value for all devices, no list")
				 : spec_parse_value(kind, text, ret, &err);
	if (rc)
		cli_error("%s '%s': %s", option, text, err.text);
	return rc;
}

/* A percent is of the device: device_bytes is 0 when the group's devices do not agree on that. */
static int parse_size(const char *option, const char *text, uint64_t device_bytes, uint64_t *ret)
{
	struct spec spec;
	int rc = parse_value(SPEC_MEM, option, text, &spec);

	if (rc)
		return rc;
	if (spec.unit == SPEC_PERCENT_BP && !device_bytes) {
		cli_error("%s '%s': the group is on GPUs of several sizes: write bytes", option,
			  text);
		return -EINVAL;
	}
	*ret = spec_bytes(&spec, device_bytes);
	return 0;
}

static int parse_quota(const struct input *in, uint64_t device_bytes, struct quota *ret)
{
	struct spec sm, weight, priority;

	if (parse_size("--mem", in->mem, device_bytes, &ret->mem_bytes) ||
	    parse_size("--mem-per-process", in->mem_process, device_bytes,
		       &ret->mem_process_bytes) ||
	    parse_value(SPEC_SM, "--sm", in->sm, &sm) ||
	    parse_value(SPEC_WEIGHT, "--weight", in->weight, &weight) ||
	    parse_value(SPEC_PRIORITY, "--priority", in->priority, &priority))
		return -EINVAL;
	ret->sm_bp = spec_sm_bp(&sm);
	ret->weight = spec_number(&weight);
	ret->priority = spec_number(&priority);
	return 0;
}

/* Where the group is: its directories, and what all of its devices have in common. */
struct place {
	unsigned dir_count;
	char dirs[CLI_DIRS][PATH_MAX];
	uint64_t device_bytes; /* 0 when they differ */
	uint64_t used_bytes;   /* the most on one device */
	uint32_t owner_uid;
	int found;
};

/*
 * What a percent is of: the total that CUDA shows, as a member noted it. Members may write there: never more than NVML says,
 * whose total is a little larger.
 */
static uint64_t whole_device(const struct gpu_state *gpu)
{
	uint64_t noted = gpu->view->device_bytes;

	return noted && (!gpu->total_bytes || noted < gpu->total_bytes) ? noted : gpu->total_bytes;
}

static void add_place(struct place *place, const struct gpu_state *gpu,
		      const struct group_view *group)
{
	size_t length = (size_t)(strrchr(gpu->ledger_path, '/') - gpu->ledger_path);
	unsigned i;

	if (!place->found++)
		place->device_bytes = whole_device(gpu);
	else if (place->device_bytes != whole_device(gpu))
		place->device_bytes = 0;
	place->owner_uid = group->owner_uid;
	if (group->used_bytes > place->used_bytes)
		place->used_bytes = group->used_bytes;
	for (i = 0; i < place->dir_count; i++)
		if (!strncmp(place->dirs[i], gpu->ledger_path, length) && !place->dirs[i][length])
			return;
	if (i < CLI_DIRS)
		snprintf(place->dirs[place->dir_count++], PATH_MAX, "%.*s", (int)length,
			 gpu->ledger_path);
}

static int find_group(const char *name, struct place *ret)
{
	struct snapshot snapshot;
	struct error err = {""};

	memset(ret, 0, sizeof(*ret));
	if (snapshot_read(&snapshot, &err)) {
		cli_error("%s", err.text);
		return -EIO;
	}
	for (unsigned g = 0; g < snapshot.gpu_count; g++)
		for (unsigned i = 0; i < snapshot.gpus[g].group_count; i++)
			if (!strcmp(snapshot.gpus[g].groups[i].view->name, name))
				add_place(ret, &snapshot.gpus[g], snapshot.gpus[g].groups[i].view);
	snapshot_free(&snapshot);
	nvml_close();
	if (ret->found)
		return 0;
	cli_error("no group '%s' is running; 'cuota status' shows those that are", name);
	return -ENOENT;
}

static int may_change(const struct place *place, const char *group)
{
	char user[64];

	if (!geteuid() || geteuid() == place->owner_uid)
		return 1;
	cli_error("group %s belongs to %s: only they and root may change it", group,
		  cli_user(place->owner_uid, user, sizeof(user)));
	return 0;
}

/*
 * An empty file says nothing and tells the members to look; then it may go, too. -ENOENT when nothing was set.
 */
static int limits_remove(const char *dir, const char *group, struct error *err)
{
	static const struct quota nothing;
	char path[PATH_MAX + GROUP_NAME_BYTES + 16];
	int rc = group_name_check(group, err);

	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/limits/%s.limits", dir, group);
	if (unlink(path))
		return error_set(err, errno, "%s: %s", path, strerror(errno));
	rc = limits_write(dir, group, &nothing, err);
	if (!rc && unlink(path))
		rc = error_set(err, errno, "%s: %s", path, strerror(errno));
	return rc;
}

/* What was set lasts longer than the group, so it may be forgotten when no member is left. */
static int reset_all(const char *group)
{
	struct cli_dirs dirs;
	struct error err = {""};
	int failed = 0, found = 0;

	cli_ledger_dirs(&dirs);
	for (unsigned i = 0; i < dirs.count; i++) {
		int rc = limits_remove(dirs.path[i], group, &err);

		found |= !rc;
		if (!rc || rc == -ENOENT)
			continue;
		cli_error("%s", err.text);
		failed = 1;
	}
	if (!found && !failed)
		cli_error("nothing was set for group '%s'", group);
	return found && !failed ? CLI_OK : CLI_FAILED;
}

int command_set(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "GROUP",
		.doc = "Changes the caps of a running group, at once and for members to come.\v"
		       "A memory cap below what is in use takes nothing away; it refuses what "
		       "comes next. "
		       "The admin's policy stays a ceiling.",
	};
	struct input in = {0};
	struct place place;
	struct quota quota = {0};
	struct error err = {""};
	char used[16], cap[16];

	cli_parse(&argp, argc, argv, CLI_USAGE, &in);
	if (in.reset)
		return reset_all(in.group);
	if (find_group(in.group, &place))
		return CLI_FAILED;
	if (parse_quota(&in, place.device_bytes, &quota))
		return CLI_USAGE;
	if (!may_change(&place, in.group))
		return CLI_FAILED;
	for (unsigned i = 0; i < place.dir_count; i++) {
		if (!limits_write(place.dirs[i], in.group, &quota, &err))
			continue;
		cli_error("%s", err.text);
		return CLI_FAILED;
	}
	if (quota.mem_bytes && quota.mem_bytes < place.used_bytes)
		cli_error("note: group %s uses %s: it gets no more until it is below %s", in.group,
			  size_format(place.used_bytes, used, sizeof(used)),
			  size_format(quota.mem_bytes, cap, sizeof(cap)));
	return CLI_OK;
}
