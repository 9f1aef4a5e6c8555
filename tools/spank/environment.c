#include "environment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "survivors.h"

void environment_forget_other(const struct environment *env, unsigned job)
{
	static const char *const names[] = {"CUOTA_GROUP", "CUOTA_MEM", "CUOTA_SM", "CUOTA_WEIGHT",
					    SHARDS_VARIABLE};
	char group[GROUP_NAME_BYTES];

	if (!env->get(env->handle, "CUOTA_GROUP", group, sizeof(group)) ||
	    strncmp(group, "slurm-", 6) != 0 || (job && group_is_job(group, job)))
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		env->unset(env->handle, names[i]);
}

static void read_spec(const struct environment *env, const char *name, enum spec_kind kind,
		      struct spec *ret)
{
	char text[64];

	if (!env->get(env->handle, name, text, sizeof(text)) ||
	    spec_parse_value(kind, text, ret, NULL) < 0)
		ret->unit = SPEC_UNSET;
}

void environment_request(const struct environment *env, struct request *ret)
{
	*ret = (struct request){0};
	read_spec(env, "CUOTA_MEM", SPEC_MEM, &ret->mem);
	read_spec(env, "CUOTA_SM", SPEC_SM, &ret->sm);
	read_spec(env, "CUOTA_WEIGHT", SPEC_WEIGHT, &ret->weight);
}

/* Any libcuota.so: an older mention of it is replaced, not kept beside the new one. */
static int is_ours(const char *entry, size_t length)
{
	size_t base = length;

	while (base && entry[base - 1] != '/')
		base--;
	return length - base >= 11 && !strncmp(entry + base, "libcuota.so", 11);
}

static int apply_preload(const struct environment *env, const char *library)
{
	char old[ENVIRONMENT_BYTES], merged[ENVIRONMENT_BYTES + PATH_MAX + 1], *end;
	const char *rest = old;

	if (!env->get(env->handle, "LD_PRELOAD", old, sizeof(old)))
		old[0] = '\0';
	end = stpcpy(merged, library);
	while (*rest) {
		size_t length = strcspn(rest, ": ");

		if (length && !is_ours(rest, length))
			end += sprintf(end, ":%.*s", (int)length, rest);
		rest += length + strspn(rest + length, ": ");
	}
	return env->set(env->handle, "LD_PRELOAD", merged);
}

static int apply_spec(const struct environment *env, const char *name, const struct spec *spec)
{
	char text[REQUEST_TEXT_BYTES];

	return request_text(spec, text) ? env->set(env->handle, name, text) : 0;
}

int environment_apply(const struct environment *env, const struct settings *settings,
		      const char *group, const struct request *request)
{
	int r = apply_preload(env, settings->library);

	if (!r)
		r = env->set(env->handle, "CUOTA_DIR", settings->dir);
	if (!r)
		r = env->set(env->handle, "CUOTA_GROUP", group);
	if (!r)
		r = apply_spec(env, "CUOTA_MEM", &request->mem);
	if (!r)
		r = apply_spec(env, "CUOTA_SM", &request->sm);
	if (!r)
		r = apply_spec(env, "CUOTA_WEIGHT", &request->weight);
	if (!r && settings->strict)
		r = env->set(env->handle, "CUOTA_STRICT", "1");
	return r;
}

int environment_has_library(const struct environment *env, const struct settings *settings)
{
	char preload[ENVIRONMENT_BYTES];

	return env->get(env->handle, "LD_PRELOAD", preload, sizeof(preload)) &&
	       strstr(preload, settings->library) != NULL;
}
