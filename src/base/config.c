/*
 * The environment, read by the table in env.def: each row names its field and its type, each type
 * has one reader below. Aliases come last and only fill lists that are still empty.
 */
#include "base/config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/alias.h"
#include "base/log.h"

typedef int reader(const char *text, void *field, size_t bytes, struct error *err);

static int read_mem(const char *text, void *field, size_t bytes, struct error *err)
{
	(void)bytes;
	return spec_parse_list(SPEC_MEM, text, field, err);
}

static int read_sm(const char *text, void *field, size_t bytes, struct error *err)
{
	(void)bytes;
	return spec_parse_list(SPEC_SM, text, field, err);
}

static int read_weight(const char *text, void *field, size_t bytes, struct error *err)
{
	(void)bytes;
	return spec_parse_list(SPEC_WEIGHT, text, field, err);
}

static int read_priority(const char *text, void *field, size_t bytes, struct error *err)
{
	(void)bytes;
	return spec_parse_list(SPEC_PRIORITY, text, field, err);
}

static int read_name(const char *text, void *field, size_t bytes, struct error *err)
{
	int r;

	if (strcmp(text, "auto") != 0) {
		r = group_name_check(text, err);
		if (r < 0)
			return r;
	}
	memcpy(field, text, strnlen(text, bytes - 1) + 1);
	return 0;
}

static int read_path(const char *text, void *field, size_t bytes, struct error *err)
{
	size_t length = strlen(text);

	if (!length)
		return error_set(err, EINVAL, "empty: write a path, or unset the variable");
	if (*text != '/')
		return error_set(err, EINVAL,
				 "not an absolute path, and programs change directory");
	if (length >= bytes)
		return error_set(err, EINVAL, "path too long");
	memcpy(field, text, length + 1);
	return 0;
}

static int read_bool(const char *text, void *field, size_t bytes, struct error *err)
{
	(void)bytes;
	if ((text[0] != '0' && text[0] != '1') || text[1])
		return error_set(err, EINVAL, "%s: write 1 or 0", *text ? "not a switch" : "empty");
	*(int *)field = text[0] == '1';
	return 0;
}

/* The place of text in names, or -EINVAL. */
static int find_word(const char *text, const char *const names[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(text, names[i]) == 0)
			return (int)i;
	return -EINVAL;
}

static int read_sched(const char *text, void *field, size_t bytes, struct error *err)
{
	static const char *const names[] = {[SCHED_AUTO] = "auto",
					    [SCHED_TURNS] = "turns",
					    [SCHED_RATE] = "rate",
					    [SCHED_OFF] = "off"};
	int mode = find_word(text, names, sizeof(names) / sizeof(names[0]));

	(void)bytes;
	if (mode < 0)
		return error_set(err, EINVAL, "%s: write auto, turns, rate or off",
				 *text ? "unknown mode" : "empty");
	*(enum sched_mode *)field = (enum sched_mode)mode;
	return 0;
}

static int read_level(const char *text, void *field, size_t bytes, struct error *err)
{
	static const char *const names[] = {[LOG_OFF] = "off",
					    [LOG_ERROR] = "error",
					    [LOG_WARN] = "warn",
					    [LOG_INFO] = "info",
					    [LOG_DEBUG] = "debug"};
	int level = find_word(text, names, sizeof(names) / sizeof(names[0]));

	(void)bytes;
	if (level < 0)
		return error_set(err, EINVAL, "%s: write off, error, warn, info or debug",
				 *text ? "unknown level" : "empty");
	*(int *)field = level;
	return 0;
}

/* One row per type of env.def: its reader, and whether setting such a variable asks for a quota. */
#define TYPE_MEM      read_mem, 1
#define TYPE_SM	      read_sm, 1
#define TYPE_WEIGHT   read_weight, 1
#define TYPE_PRIORITY read_priority, 1
#define TYPE_NAME     read_name, 1
#define TYPE_SCHED    read_sched, 1
#define TYPE_PATH     read_path, 0
#define TYPE_BOOL     read_bool, 0
#define TYPE_LEVEL    read_level, 0

struct variable {
	const char *name;
	size_t offset, bytes; /* of the field in struct config */
	reader *read;
	int asks;
};

static const struct variable variables[] = {
#define ENV(name, field, type, default_text, help) \
	{#name, offsetof(struct config, field), sizeof(((struct config *)0)->field), TYPE_##type},
#define ALIAS(name, stands_for, type)
#include "base/env.def"
#undef ENV
#undef ALIAS
};

struct alias {
	const char *name, *stands_for;
	enum spec_kind kind;
};

static const struct alias aliases[] = {
#define ENV(name, field, type, default_text, help)
#define ALIAS(name, stands_for, type) {#name, #stands_for, SPEC_##type},
#include "base/env.def"
#undef ENV
#undef ALIAS
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int read_variable(struct config *config, const struct variable *variable,
			 const char *(*get)(const char *name), struct error *err)
{
	const char *text = get(variable->name);
	char quoted[ERROR_QUOTE_BYTES];
	int r;

	if (!text)
		return 0;
	r = variable->read(text, (char *)config + variable->offset, variable->bytes, err);
	if (r < 0)
		error_prefix(err, "%s='%s'", variable->name, error_quote(text, quoted));
	else
		config->any_set |= variable->asks;
	return r;
}

static int read_alias(struct config *config, const struct alias *alias,
		      const char *(*get)(const char *name), struct error *err)
{
	struct spec_list *list = alias->kind == SPEC_MEM ? &config->mem : &config->sm;
	unsigned before = list->count;
	int r;

	if (get(alias->stands_for))
		return 0;
	r = alias_read(alias->name, alias->kind, get, list, err);
	config->any_set |= list->count > before;
	return r;
}

int config_read(struct config *ret, const char *(*get)(const char *name), struct error *err)
{
	struct error later, *into = err;
	int first = 0, r;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < COUNT(variables); i++) {
		r = read_variable(ret, &variables[i], get, into);
		if (r < 0 && first == 0) {
			first = -EINVAL;
			into = &later; /* the first error is the one to tell; go on for the log's
					  sake */
		}
	}
	for (size_t i = 0; first == 0 && i < COUNT(aliases); i++)
		first = read_alias(ret, &aliases[i], get, err) < 0 ? -EINVAL : 0;
	if (first == 0 && strcmp(ret->group, "auto") == 0)
		group_auto_self(get("SLURM_JOB_ID"), ret->group);
	return first;
}

struct quota config_quota(const struct config *config, unsigned cuda_index, const char *uuid,
			  uint64_t device_bytes)
{
	struct quota quota = {
		.mem_bytes = spec_bytes(spec_find(&config->mem, cuda_index, uuid), device_bytes),
		.mem_process_bytes =
			spec_bytes(spec_find(&config->mem_process, cuda_index, uuid), device_bytes),
		.sm_bp = spec_sm_bp(spec_find(&config->sm, cuda_index, uuid)),
		.weight = spec_number(spec_find(&config->weight, cuda_index, uuid)),
		.priority = spec_number(spec_find(&config->priority, cuda_index, uuid)),
	};

	return quota;
}
