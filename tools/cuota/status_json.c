/*
 * `cuota status --json`: docs/status-schema.md is the contract. A value that is not known or not
 * set is null, never 0 or a magic number; fields are only ever added within one schema version.
 */
#include "status.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <time.h>

static const char *const kind_names[CHARGE_KINDS] = {
	[CHARGE_LINEAR] = "linear",	[CHARGE_MANAGED] = "managed", [CHARGE_POOL] = "pool",
	[CHARGE_VIRTUAL] = "virtual",	[CHARGE_ARRAY] = "array",     [CHARGE_GRAPH] = "graph",
	[CHARGE_CONTEXT] = "context",	[CHARGE_MODULE] = "module",   [CHARGE_IMPORT] = "import",
	[CHARGE_OVERHEAD] = "overhead",
};

static json_t *bytes_or_null(uint64_t bytes, uint64_t null_value)
{
	return bytes == null_value || bytes > INT64_MAX ? json_null()
							: json_integer((json_int_t)bytes);
}

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)(value > INT64_MAX ? INT64_MAX : value));
}

static json_t *ratio(double value)
{
	return isnan(value) ? json_null() : json_real(value);
}

static json_t *sm_cap(uint32_t bp)
{
	return !bp || bp >= QUOTA_SM_NONE ? json_null() : json_real((double)bp / 10000);
}

static json_t *text_or_null(const char *text)
{
	json_t *value = text[0] ? json_string(text) : NULL;

	return value ? value : json_null();
}

/* A command's or device's name may hold bytes that are no UTF-8; they become '?'. */
static json_t *name_text(const char *text)
{
	json_t *value = json_string(text);
	char ascii[128];
	size_t i;

	if (value)
		return value;
	for (i = 0; text[i] && i < sizeof(ascii) - 1; i++)
		ascii[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
	ascii[i] = '\0';
	return json_string(ascii);
}

static json_t *kinds(const uint64_t bytes[CHARGE_KINDS])
{
	json_t *object = json_object();

	for (unsigned i = 0; i < CHARGE_KINDS; i++)
		json_object_set_new(object, kind_names[i], integer(bytes[i]));
	return object;
}

static json_t *seconds(uint64_t ns)
{
	return json_real((double)ns / 1e9);
}

static json_t *member(const struct slot_view *slot)
{
	char user[64];

	return json_pack("{s:i, s:o, s:o, s:i, s:o, s:{s:o, s:o, s:o, s:o, s:o}, s:{s:o, s:o, "
			 "s:o}, s:o}",
			 "pid", (int)slot->pid, "pid_namespace", integer(slot->pid_ns_inode),
			 "command", name_text(slot->comm), "uid", (int)slot->uid, "user",
			 name_text(cli_user(slot->uid, user, sizeof(user))), "memory", "cap_bytes",
			 bytes_or_null(slot->cap_bytes, QUOTA_NONE), "used_bytes",
			 integer(slot->used_bytes), "peak_bytes", integer(slot->peak_bytes),
			 "driver_bytes", bytes_or_null(slot->driver_bytes, 0), "by_kind_bytes",
			 kinds(slot->kind_bytes), "sm", "busy_seconds", seconds(slot->busy_ns),
			 "throttled_seconds", seconds(slot->throttled_ns), "launches",
			 integer(slot->launches), "denials", integer(slot->denials));
}

static json_t *group(const struct gpu_state *gpu, const struct group_state *state)
{
	const struct group_view *v = state->view;
	json_t *members = json_array();
	char user[64];

	for (unsigned i = 0; i < gpu->view->slot_count; i++)
		if (gpu->view->slots[i].group == v->index)
			json_array_append_new(members, member(&gpu->view->slots[i]));
	return json_pack("{s:o, s:i, s:o, s:i, s:s, s:{s:o, s:o, s:o, s:o, s:o}, s:{s:o, s:o, s:o, "
			 "s:o, s:o, s:o}, s:o, s:o}",
			 "name", name_text(v->name), "owner_uid", (int)v->owner_uid, "owner",
			 name_text(cli_user(v->owner_uid, user, sizeof(user))), "weight",
			 (int)state->caps.weight, "priority", priority_name(state->caps.priority),
			 "memory", "cap_bytes", bytes_or_null(state->caps.mem_bytes, QUOTA_NONE),
			 "used_bytes", integer(v->used_bytes), "peak_bytes", integer(v->peak_bytes),
			 "overhead_bytes", integer(group_overhead_bytes(v)), "by_kind_bytes",
			 kinds(v->kind_bytes), "sm", "cap_ratio", sm_cap(state->caps.sm_bp),
			 "share_ratio", ratio(state->share), "share_minute_ratio",
			 ratio(state->share_minute), "busy_seconds", seconds(v->busy_ns),
			 "throttled_seconds", seconds(v->throttled_ns), "launches",
			 integer(v->launches), "denials", integer(v->denials), "members", members);
}

static json_t *unattached(const struct gpu_state *gpu)
{
	json_t *list = json_array();
	char user[64];

	for (unsigned i = 0; i < gpu->unattached_count; i++) {
		const struct unattached *u = &gpu->unattached[i];

		json_array_append_new(
			list,
			json_pack("{s:i, s:o, s:i, s:o, s:o}", "pid", (int)u->process.pid,
				  "command", name_text(u->process.comm), "uid", (int)u->process.uid,
				  "user", name_text(cli_user(u->process.uid, user, sizeof(user))),
				  "used_bytes", bytes_or_null(u->used_bytes, NVML_BYTES_UNKNOWN)));
	}
	return list;
}

static json_t *gpu_object(const struct gpu_state *gpu, const struct status_options *options)
{
	json_t *groups = json_array(), *object;

	for (unsigned i = 0; i < gpu->group_count; i++)
		if (status_wants_group(options, gpu->groups[i].view))
			json_array_append_new(groups, group(gpu, &gpu->groups[i]));
	object = json_pack("{s:s, s:o, s:o, s:b, s:{s:o, s:o}, s:o, s:o, s:i}", "uuid", gpu->uuid,
			   "index", gpu->index < 0 ? json_null() : json_integer(gpu->index), "name",
			   name_text(gpu->name), "mig", gpu->is_mig, "memory", "total_bytes",
			   bytes_or_null(gpu->total_bytes, 0), "used_bytes",
			   bytes_or_null(gpu->used_bytes, NVML_BYTES_UNKNOWN), "groups", groups,
			   "unattached", unattached(gpu), "invisible_processes",
			   (int)gpu->invisible);
	if (gpu->ledger_path[0])
		json_object_set_new(
			object, "ledger",
			json_pack("{s:o, s:o, s:o, s:o}", "path", name_text(gpu->ledger_path),
				  "problem", text_or_null(gpu->problem.text), "reclaimed_slots",
				  gpu->view ? integer(gpu->view->reclaimed_slots) : json_null(),
				  "context_bytes",
				  gpu->view ? bytes_or_null(gpu->view->context_bytes, 0)
					    : json_null()));
	else if (object)
		json_object_set_new(object, "ledger", json_null());
	return object;
}

int status_json(const struct snapshot *snapshot, const struct status_options *options)
{
	json_t *gpus = json_array(), *directories = json_array(), *root;
	time_t now = (time_t)snapshot->wall_s;
	char when[32];
	struct tm utc;
	int rc;

	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	for (unsigned i = 0; i < snapshot->dirs.count; i++)
		json_array_append_new(directories, name_text(snapshot->dirs.path[i]));
	for (unsigned g = 0; g < snapshot->gpu_count; g++)
		if (status_wants_gpu(options, &snapshot->gpus[g]))
			json_array_append_new(gpus, gpu_object(&snapshot->gpus[g], options));
	root = json_pack("{s:s, s:i, s:s, s:o, s:o, s:o, s:o}", "schema", "cuota.status", "version",
			 STATUS_SCHEMA_VERSION, "time", when, "driver",
			 text_or_null(snapshot->driver), "nvml_problem",
			 text_or_null(snapshot->nvml_problem.text), "directories", directories,
			 "gpus", gpus);
	rc = root ? json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : -1;
	putchar('\n');
	json_decref(root);
	return rc && !ferror(stdout) ? -ENOMEM : 0;
}
