/*
 * `cuota cdi generate`: a Container Device Interface file, by which podman, docker, containerd and
 * CRI-O put the library, the ledger directory and a quota into a container, with no daemon and no
 * change to the image: podman run --device cuota.dev/quota=8g --device cuota.dev/quota=sm30.
 *
 * Each "device" of the file is one setting; a container may ask for several. The file is printed, or
 * replaced in one step, so that a runtime never reads half of it.
 */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/group_name.h"
#include "base/spec.h"
#include "run.h"

#define KIND	    "cuota.dev/quota"
#define QUOTAS_MAX  64
#define PRELOAD_ETC "/etc/ld.so.preload"

enum { KEY_CONTAINER = 0x100, KEY_PRELOAD };

static const struct argp_option options[] = {
	{"output", 'o', "FILE", 0, "write this file, say /etc/cdi/cuota.json, instead of stdout",
	 0},
	{"quota", 'q', "NAME:KEY=VALUE[,...]", 0,
	 "a device of this name, with mem=, mem-per-process=, sm=, weight=, priority= or group=; "
	 "may be "
	 "repeated, and replaces the usual ones (1g ... 128g, sm10 ... sm90, half, quarter, "
	 "eighth)",
	 0},
	{"library", 'l', "PATH", 0, "libcuota.so on this host (default: the one of this command)",
	 0},
	{"container-library", KEY_CONTAINER, "PATH", 0,
	 "where it is put in the container (default /usr/lib/cuota/libcuota.so)", 0},
	{"dir", 'd', "DIR", 0, "ledger directory, the same in the container (default /run/cuota)",
	 0},
	{"ld-so-preload", KEY_PRELOAD, "FILE", 0,
	 "mount FILE of this host as /etc/ld.so.preload instead of setting LD_PRELOAD: for images "
	 "that "
	 "set LD_PRELOAD themselves. FILE must hold the container's path of the library",
	 0},
	{0},
};

struct cdi_options {
	const char *output, *dir, *preload_file, *container_library;
	char library[PATH_MAX];
	char *quotas[QUOTAS_MAX];
	unsigned quota_count;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct cdi_options *in = state->input;

	switch (key) {
	case 'o': in->output = arg; return 0;
	case 'd': in->dir = arg; return 0;
	case KEY_PRELOAD: in->preload_file = arg; return 0;
	case KEY_CONTAINER: in->container_library = arg; return 0;
	case 'l':
		if (!realpath(arg, in->library))
			argp_error(state, "--library=%s: %s", arg, strerror(errno));
		return 0;
	case 'q':
		if (in->quota_count == QUOTAS_MAX)
			argp_error(state, "more than %d quotas", QUOTAS_MAX);
		in->quotas[in->quota_count++] = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num || strcmp(arg, "generate") != 0)
			argp_error(state, "unknown action '%s'", arg);
		return 0;
	case ARGP_KEY_END:
		if (state->arg_num != 1)
			argp_error(state, "what to do: generate");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* ---- quotas ------------------------------------------------------------------------------------- */

static const struct {
	const char *key, *variable;
	int kind; /* enum spec_kind; -1: a group's name */
} keys[] = {
	{"mem", "CUOTA_MEM", SPEC_MEM},
	{"mem-per-process", "CUOTA_MEM_PER_PROCESS", SPEC_MEM},
	{"sm", "CUOTA_SM", SPEC_SM},
	{"weight", "CUOTA_WEIGHT", SPEC_WEIGHT},
	{"priority", "CUOTA_PRIORITY", SPEC_PRIORITY},
	{"group", "CUOTA_GROUP", -1},
};

static int append_once(json_t *env, const char *variable, const char *value, struct error *err)
{
	size_t length = strlen(variable), i;
	json_t *before;

	json_array_foreach(env, i, before)
	{
		const char *text = json_string_value(before);

		if (text && !strncmp(text, variable, length) && text[length] == '=')
			return error_set(err, EINVAL, "%s twice", variable);
	}
	return json_array_append_new(env, json_sprintf("%s=%s", variable, value));
}

static int add_setting(json_t *env, const char *key, const char *value, struct error *err)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		struct spec spec;
		int r;

		if (strcmp(key, keys[i].key) != 0)
			continue;
		if (keys[i].kind < 0)
			r = strcmp(value, "auto") ? group_name_check(value, err) : 0;
		else
			r = spec_parse_value((enum spec_kind)keys[i].kind, value, &spec, err);
		if (r < 0) {
			error_prefix(err, "%s=%s", key, value);
			return r;
		}
		return append_once(env, keys[i].variable, value, err);
	}
	return error_set(err, EINVAL, "no such key: %.64s", key);
}

/* CDI's rule for the name of a device. */
static int check_name(const char *name, struct error *err)
{
	size_t length = strlen(name);

	if (!length || !isalnum((unsigned char)name[0]) ||
	    !isalnum((unsigned char)name[length - 1]) ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:") !=
		    length)
		return error_set(err, EINVAL, "a device's name is letters, digits and _-.:");
	return 0;
}

/* A runtime refuses the whole file for it. */
static int check_unused(const json_t *devices, const char *name, struct error *err)
{
	const json_t *device;
	size_t i;

	json_array_foreach(devices, i, device)
	{
		const char *other = json_string_value(json_object_get(device, "name"));

		if (other && !strcmp(other, name))
			return error_set(err, EINVAL, "a device of this name twice");
	}
	return 0;
}

/* One device from "NAME:KEY=VALUE[,KEY=VALUE...]"; `text` is changed. */
static int add_quota(json_t *devices, char *text, struct error *err)
{
	char *rest = strchr(text, ':'), *pair;
	json_t *env = json_array();
	int r;

	if (!env)
		return -ENOMEM;
	if (rest)
		*rest++ = '\0';
	r = check_name(text, err);
	if (r == 0)
		r = check_unused(devices, text, err);
	while (r == 0 && (pair = strsep(&rest, ","))) {
		char *value = strchr(pair, '=');

		if (!value) {
			r = error_set(err, EINVAL, "no value for '%.64s'", pair);
			break;
		}
		*value++ = '\0';
		r = add_setting(env, pair, value, err);
	}
	if (r == 0 && !json_array_size(env))
		r = error_set(err, EINVAL, "no quota: write NAME:mem=8G");
	if (r == 0)
		return json_array_append_new(devices, json_pack("{s:s, s:{s:o}}", "name", text,
								"containerEdits", "env", env));
	error_prefix(err, "--quota %s", text);
	json_decref(env);
	return r;
}

static int add_usual(json_t *devices, struct error *err)
{
	static const unsigned gib[] = {1,  2,  3,  4,  6,  8,  10, 12, 16,
				       20, 24, 32, 40, 48, 64, 80, 96, 128};
	static const char *const parts[] = {"half:mem=50%,sm=50", "quarter:mem=25%,sm=25",
					    "eighth:mem=12.5%,sm=12.5"};
	char text[64];
	int r = 0;

	for (size_t i = 0; !r && i < sizeof(gib) / sizeof(*gib); i++) {
		snprintf(text, sizeof(text), "%ug:mem=%uG", gib[i], gib[i]);
		r = add_quota(devices, text, err);
	}
	for (unsigned percent = 10; !r && percent < 100; percent += 10) {
		snprintf(text, sizeof(text), "sm%u:sm=%u", percent, percent);
		r = add_quota(devices, text, err);
	}
	for (size_t i = 0; !r && i < sizeof(parts) / sizeof(*parts); i++) {
		snprintf(text, sizeof(text), "%s", parts[i]);
		r = add_quota(devices, text, err);
	}
	return r;
}

/* ---- what every container of the kind gets -------------------------------------------------------- */

static json_t *mount(const char *host, const char *container, const char *access)
{
	return json_pack("{s:s, s:s, s:[s, s, s, s]}", "hostPath", host, "containerPath", container,
			 "options", access, "nosuid", "nodev", "bind");
}

static int check_preload_file(const struct cdi_options *in, struct error *err)
{
	char line[PATH_MAX];
	FILE *file = fopen(in->preload_file, "re");
	int found = 0;

	if (!file)
		return error_set(err, errno, "%.128s: %s; write it with: echo %.96s",
				 in->preload_file, strerror(errno), in->container_library);
	while (!found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		found = !strcmp(line, in->container_library);
	}
	fclose(file);
	return found ? 0
		     : error_set(err, EINVAL, "%.128s does not hold the line %.96s",
				 in->preload_file, in->container_library);
}

static json_t *common_edits(const struct cdi_options *in)
{
	json_t *env = json_array(), *mounts = json_array();

	if (!in->preload_file)
		json_array_append_new(env, json_sprintf("LD_PRELOAD=%s", in->container_library));
	json_array_append_new(env, json_sprintf("CUOTA_DIR=%s", in->dir));
	json_array_append_new(env, json_string("CUOTA_GROUP=auto"));
	json_array_append_new(mounts, mount(in->library, in->container_library, "ro"));
	json_array_append_new(mounts, mount(in->dir, in->dir, "rw"));
	if (in->preload_file)
		json_array_append_new(mounts, mount(in->preload_file, PRELOAD_ETC, "ro"));
	if (!access("/etc/cuota", F_OK)) /* the admin's policy holds inside, too */
		json_array_append_new(mounts, mount("/etc/cuota", "/etc/cuota", "ro"));
	return json_pack("{s:o, s:o}", "env", env, "mounts", mounts);
}

static json_t *build(struct cdi_options *in, struct error *err)
{
	json_t *devices = json_array();
	int r = 0;

	for (unsigned i = 0; !r && i < in->quota_count; i++)
		r = add_quota(devices, in->quotas[i], err);
	if (!r && !in->quota_count)
		r = add_usual(devices, err);
	if (!r)
		return json_pack("{s:s, s:s, s:o, s:o}", "cdiVersion", "0.5.0", "kind", KIND,
				 "devices", devices, "containerEdits", common_edits(in));
	json_decref(devices);
	return NULL;
}

/* ---- output --------------------------------------------------------------------------------------- */

static int write_file(const char *path, const json_t *spec)
{
	char temporary[PATH_MAX];

	/* Runtimes read *.json and *.yaml only. */
	if ((size_t)snprintf(temporary, sizeof(temporary), "%s.%ld", path, (long)getpid()) >=
	    sizeof(temporary)) {
		cli_error("%s: path too long", path);
		return CLI_FAILED;
	}
	if (json_dump_file(spec, temporary, JSON_INDENT(2)) || chmod(temporary, 0644) ||
	    rename(temporary, path)) {
		cli_error("%s: %s", path, strerror(errno));
		unlink(temporary);
		return CLI_FAILED;
	}
	return CLI_OK;
}

static int print(const json_t *spec)
{
	int failed = json_dumpf(spec, stdout, JSON_INDENT(2));

	putchar('\n');
	return cli_finish(failed ? CLI_FAILED : CLI_OK);
}

int command_cdi(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "generate",
		.doc = "A Container Device Interface file: quotas for podman, docker and "
		       "Kubernetes.\v"
		       "As root: cuota cdi generate --output /etc/cdi/cuota.json, then\n"
		       "  podman run --device cuota.dev/quota=8g --device cuota.dev/quota=sm30 ...",
	};
	struct cdi_options in = {.dir = "/run/cuota",
				 .container_library = "/usr/lib/cuota/libcuota.so"};
	struct error err = {""};
	json_t *spec = NULL;
	int status;

	cli_parse(&argp, argc, argv, CLI_USAGE, &in);
	if ((in.library[0] || !run_library_find(in.library, &err)) &&
	    (!in.preload_file || !check_preload_file(&in, &err)))
		spec = build(&in, &err);
	if (!spec) {
		cli_error("%s", err.text);
		return CLI_FAILED;
	}
	status = in.output ? write_file(in.output, spec) : print(spec);
	json_decref(spec);
	return status;
}
