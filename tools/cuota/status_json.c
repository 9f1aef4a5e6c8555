/*
 * `cuota status --json`: docs/status-schema.md is the contract. A value that is not known or not set is
 * null, never 0 or a magic number; fields are only ever added within one schema version.
 */
#include "status.h"

#include <math.h>
#include <time.h>

#include "json_out.h"

static const char *const kind_names[CHARGE_KINDS] = {
	[CHARGE_LINEAR] = "linear",	[CHARGE_MANAGED] = "managed", [CHARGE_POOL] = "pool",
	[CHARGE_VIRTUAL] = "virtual",	[CHARGE_ARRAY] = "array",     [CHARGE_GRAPH] = "graph",
	[CHARGE_CONTEXT] = "context",	[CHARGE_MODULE] = "module",   [CHARGE_IMPORT] = "import",
	[CHARGE_OVERHEAD] = "overhead",
};

static void bytes_or_null(struct json_out *out, const char *key, uint64_t bytes,
			  uint64_t null_value)
{
	if (bytes == null_value)
		json_nothing(out, key);
	else
		json_number(out, key, bytes);
}

static void text_or_null(struct json_out *out, const char *key, const char *text)
{
	if (text[0])
		json_text(out, key, text);
	else
		json_nothing(out, key);
}

static void user_name(struct json_out *out, const char *key, unsigned uid)
{
	char user[64];

	json_text(out, key, cli_user(uid, user, sizeof(user)));
}

static void kinds(struct json_out *out, const uint64_t bytes[CHARGE_KINDS])
{
	json_begin(out, "by_kind_bytes", '{');
	for (unsigned i = 0; i < CHARGE_KINDS; i++)
		json_number(out, kind_names[i], bytes[i]);
	json_end(out, '}');
}

static void work(struct json_out *out, uint64_t busy_ns, uint64_t throttled_ns, uint64_t launches)
{
	json_fraction(out, "busy_seconds", (double)busy_ns / 1e9);
	json_fraction(out, "throttled_seconds", (double)throttled_ns / 1e9);
	json_number(out, "launches", launches);
}

static void member(struct json_out *out, const struct slot_view *slot)
{
	json_begin(out, NULL, '{');
	json_number(out, "pid", slot->pid);
	json_number(out, "pid_namespace", slot->pid_ns_inode);
	json_text(out, "command", slot->comm);
	json_number(out, "uid", slot->uid);
	user_name(out, "user", slot->uid);
	json_begin(out, "memory", '{');
	bytes_or_null(out, "cap_bytes", slot->cap_bytes, QUOTA_NONE);
	json_number(out, "used_bytes", slot->used_bytes);
	json_number(out, "peak_bytes", slot->peak_bytes);
	bytes_or_null(out, "driver_bytes", slot->driver_bytes, 0);
	kinds(out, slot->kind_bytes);
	json_end(out, '}');
	json_begin(out, "sm", '{');
	work(out, slot->busy_ns, slot->throttled_ns, slot->launches);
	json_end(out, '}');
	json_number(out, "denials", slot->denials);
	json_end(out, '}');
}

static void group(struct json_out *out, const struct gpu_state *gpu,
		  const struct group_state *state)
{
	const struct group_view *v = state->view;
	uint32_t sm_bp = state->caps.sm_bp;

	json_begin(out, NULL, '{');
	json_text(out, "name", v->name);
	json_number(out, "owner_uid", v->owner_uid);
	user_name(out, "owner", v->owner_uid);
	json_number(out, "weight", state->caps.weight);
	json_text(out, "priority", priority_name(state->caps.priority));
	json_begin(out, "memory", '{');
	bytes_or_null(out, "cap_bytes", state->caps.mem_bytes, QUOTA_NONE);
	json_number(out, "used_bytes", v->used_bytes);
	json_number(out, "peak_bytes", v->peak_bytes);
	json_number(out, "overhead_bytes", group_overhead_bytes(v));
	kinds(out, v->kind_bytes);
	json_end(out, '}');
	json_begin(out, "sm", '{');
	json_fraction(out, "cap_ratio",
		      !sm_bp || sm_bp >= QUOTA_SM_NONE ? NAN : (double)sm_bp / 10000);
	json_fraction(out, "share_ratio", state->share);
	json_fraction(out, "share_minute_ratio", state->share_minute);
	work(out, v->busy_ns, v->throttled_ns, v->launches);
	json_end(out, '}');
	json_number(out, "denials", v->denials);
	json_begin(out, "members", '[');
	for (unsigned i = 0; i < gpu->view->slot_count; i++)
		if (gpu->view->slots[i].group == v->index)
			member(out, &gpu->view->slots[i]);
	json_end(out, ']');
	json_end(out, '}');
}

static void unattached(struct json_out *out, const struct gpu_state *gpu)
{
	json_begin(out, "unattached", '[');
	for (unsigned i = 0; i < gpu->unattached_count; i++) {
		const struct unattached *u = &gpu->unattached[i];

		json_begin(out, NULL, '{');
		json_number(out, "pid", (uint64_t)u->process.pid);
		json_text(out, "command", u->process.comm);
		json_number(out, "uid", u->process.uid);
		user_name(out, "user", u->process.uid);
		bytes_or_null(out, "used_bytes", u->used_bytes, NVML_BYTES_UNKNOWN);
		json_end(out, '}');
	}
	json_end(out, ']');
}

static void ledger_object(struct json_out *out, const struct gpu_state *gpu)
{
	if (!gpu->ledger_path[0]) {
		json_nothing(out, "ledger");
		return;
	}
	json_begin(out, "ledger", '{');
	json_text(out, "path", gpu->ledger_path);
	text_or_null(out, "problem", gpu->problem.text);
	bytes_or_null(out, "reclaimed_slots", gpu->view ? gpu->view->reclaimed_slots : UINT64_MAX,
		      UINT64_MAX);
	bytes_or_null(out, "context_bytes", gpu->view ? gpu->view->context_bytes : 0, 0);
	json_end(out, '}');
}

static void gpu_object(struct json_out *out, const struct gpu_state *gpu,
		       const struct status_options *options)
{
	json_begin(out, NULL, '{');
	json_text(out, "uuid", gpu->uuid);
	bytes_or_null(out, "index", (uint64_t)(int64_t)gpu->index, UINT64_MAX); /* -1 = unknown */
	json_text(out, "name", gpu->name);
	json_truth(out, "mig", gpu->is_mig);
	json_begin(out, "memory", '{');
	bytes_or_null(out, "total_bytes", gpu->total_bytes, 0);
	bytes_or_null(out, "used_bytes", gpu->used_bytes, NVML_BYTES_UNKNOWN);
	json_end(out, '}');
	json_begin(out, "groups", '[');
	for (unsigned i = 0; i < gpu->group_count; i++)
		if (status_wants_group(options, gpu->groups[i].view))
			group(out, gpu, &gpu->groups[i]);
	json_end(out, ']');
	unattached(out, gpu);
	json_number(out, "invisible_processes", gpu->invisible);
	ledger_object(out, gpu);
	json_end(out, '}');
}

void status_json(const struct snapshot *snapshot, const struct status_options *options)
{
	static struct json_out out = {.first = 1};
	time_t now = (time_t)snapshot->wall_s;
	char when[32];
	struct tm utc;

	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	out.stream = stdout;
	json_begin(&out, NULL, '{');
	json_text(&out, "schema", "cuota.status");
	json_number(&out, "version", STATUS_SCHEMA_VERSION);
	json_text(&out, "time", when);
	text_or_null(&out, "driver", snapshot->driver);
	text_or_null(&out, "nvml_problem", snapshot->nvml_problem.text);
	json_begin(&out, "directories", '[');
	for (unsigned i = 0; i < snapshot->dirs.count; i++)
		json_text(&out, NULL, snapshot->dirs.path[i]);
	json_end(&out, ']');
	json_begin(&out, "gpus", '[');
	for (unsigned g = 0; g < snapshot->gpu_count; g++)
		if (status_wants_gpu(options, &snapshot->gpus[g]))
			gpu_object(&out, &snapshot->gpus[g], options);
	json_end(&out, ']');
	json_end(&out, '}');
}
