/*
 * `cuota run`: checks the quota, puts it into the environment and becomes the command (exec in
 * place: no parent stays, signals, terminal and exit code are the command's own). Whatever is wrong
 * with the quota is told before anything runs, with exit code 125.
 */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/policy.h"
#include "run.h"

/* One option = one variable, checked by the library's own parser. */
static const struct {
	const char *option, *variable;
	int key;
} settings[] = {
	{"--mem", "CUOTA_MEM", 'm'},
	{"--mem-per-process", "CUOTA_MEM_PER_PROCESS", 'p'},
	{"--sm", "CUOTA_SM", 's'},
	{"--weight", "CUOTA_WEIGHT", 'w'},
	{"--priority", "CUOTA_PRIORITY", 'P'},
	{"--group", "CUOTA_GROUP", 'g'},
};

#define SETTINGS (sizeof(settings) / sizeof(*settings))

enum { KEY_PRINT_ENV = 0x100, KEY_DOCKER, KEY_NO_CHECK, KEY_STRICT };

static const struct argp_option options[] = {
	{"mem", 'm', "SIZE", 0,
	 "memory cap of the group on each GPU: 8G, 8192M, 50% (of the device), none; "
	 "or a list 0=8G,1=4G",
	 1},
	{"mem-per-process", 'p', "SIZE", 0, "memory cap of each process in the group", 1},
	{"sm", 's', "PERCENT", 0, "SM-time cap of the group: 30, 30%, none; or a list", 1},
	{"weight", 'w', "N", 0, "share when groups compete, 1..10000 (default 100)", 1},
	{"priority", 'P', "CLASS", 0, "high, normal or low", 1},
	{"group", 'g', "NAME", 0, "share the caps with that group (default: a fresh group)", 1},
	{"strict", KEY_STRICT, NULL, 0,
	 "do not run where the quota cannot be enforced (CUOTA_STRICT=1)", 2},
	{"no-check", KEY_NO_CHECK, NULL, 0, "do not watch whether the library was loaded", 2},
	{"print-env", KEY_PRINT_ENV, NULL, 0,
	 "print the environment as shell commands; run nothing", 3},
	{"docker", KEY_DOCKER, NULL, 0, "print options for docker or podman run; run nothing", 3},
	{0},
};

struct input {
	const char *value[SETTINGS];
	int print_env, docker, no_check, strict;
	char **command;
};

/* config_read() asks for variables by name: the one under test, or all that the command will see.
 */
static const char *one_name, *one_value;

static const char *get_one(const char *name)
{
	return strcmp(name, one_name) ? NULL : one_value;
}

static const char *get_environment(const char *name)
{
	return getenv(name);
}

/* Every option on its own first, so that the message names the option and not a variable; one that a later one overrules, too. */
static int check_option(size_t i, const char *value)
{
	struct config *config = malloc(sizeof(*config));
	size_t prefix = strlen(settings[i].variable);
	struct error err = {""};
	int rc;

	one_name = settings[i].variable;
	one_value = value;
	rc = config ? config_read(config, get_one, &err) : -ENOMEM;
	if (!rc && settings[i].key == 'g' && strcmp(value, "auto"))
		rc = group_name_check(value, &err);
	if (rc && !strncmp(err.text, settings[i].variable, prefix) && err.text[prefix] == '=')
		cli_error("%s %s", settings[i].option, err.text + prefix + 1);
	else if (rc)
		cli_error("%s '%s': %s", settings[i].option, value, err.text);
	free(config);
	return rc;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	for (size_t i = 0; i < SETTINGS; i++) {
		if (settings[i].key == key) {
			in->value[i] = arg;
			return check_option(i, arg) ? EINVAL : 0;
		}
	}
	switch (key) {
	case KEY_PRINT_ENV: in->print_env = 1; return 0;
	case KEY_DOCKER: in->docker = 1; return 0;
	case KEY_NO_CHECK: in->no_check = 1; return 0;
	case KEY_STRICT: in->strict = 1; return 0;
	case ARGP_KEY_ARG:
		in->command = state->argv + state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (!in->command && !in->print_env && !in->docker)
			argp_error(state, "no command given");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* Then the whole, as the library will read it: what the caller's own environment adds must make
 * sense, too. */
static int check_environment(char ret_group[GROUP_NAME_BYTES])
{
	struct config *config = malloc(sizeof(*config));
	struct error err = {""};
	struct policy *policy = NULL;
	int rc = config ? config_read(config, get_environment, &err) : -ENOMEM;

	if (!rc)
		rc = policy_read(config->policy_path, &policy, &err);
	if (rc)
		cli_error("%s", err.text);
	else
		snprintf(ret_group, GROUP_NAME_BYTES, "%s", config->group);
	if (!rc)
		policy_free(policy);
	free(config);
	return rc;
}

/* A name that no other run on this host has: the pid now, and the time against its reuse. */
static void fresh_group(char ret[GROUP_NAME_BYTES])
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(ret, GROUP_NAME_BYTES, "run-%ld-%llx", (long)getpid(),
		 (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000);
}

static int set_environment(const struct input *in, const char *library)
{
	char group[GROUP_NAME_BYTES];
	char *preload = run_library_merge(library, getenv("LD_PRELOAD"));
	int rc = preload ? 0 : -1;

	for (size_t i = 0; i < SETTINGS; i++) {
		const char *value = in->value[i];

		if (!value && settings[i].key == 'g') {
			const char *outer = getenv("CUOTA_GROUP");

			if (outer && *outer)
				cli_error("note: the new group is not bound by the caps of group "
					  "%s, in which "
					  "this runs; --group %s joins it",
					  outer, outer);
			fresh_group(group);
			value = group;
		}
		if (value)
			rc |= setenv(settings[i].variable, value, 1);
	}
	if (in->strict)
		rc |= setenv("CUOTA_STRICT", "1", 1);
	if (preload)
		rc |= setenv("LD_PRELOAD", preload, 1);
	free(preload);
	if (rc)
		cli_error("out of memory");
	return rc;
}

/* 'text' quoted for a POSIX shell. */
static void print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++)
		fputs(*text == '\'' ? "'\\''" : (const char[]){*text, '\0'}, stdout);
	putchar('\'');
}

static void print_environment(const struct input *in)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		const char *value = getenv(settings[i].variable);

		if (!value)
			continue;
		printf("export %s=", settings[i].variable);
		print_quoted(value);
		putchar('\n');
	}
	if (in->strict)
		puts("export CUOTA_STRICT='1'");
	printf("export LD_PRELOAD=");
	print_quoted(getenv("LD_PRELOAD"));
	putchar('\n');
}

/* One line of options, so that `docker run $(cuota run --mem 8G --docker) IMAGE` works. */
static void print_docker(const struct input *in, const char *library)
{
	static const char inside[] = "/usr/local/lib/libcuota.so";
	struct cli_dirs dirs;
	const char *dir;

	cli_ledger_dirs(&dirs);
	dir = dirs.path[0];
	if (access(dir, F_OK) && dirs.count > 1 && !access(dirs.path[1], F_OK))
		dir = dirs.path[1];
	for (size_t i = 0; i < SETTINGS; i++)
		if (getenv(settings[i].variable))
			printf("-e %s=%s ", settings[i].variable, getenv(settings[i].variable));
	if (in->strict)
		printf("-e CUOTA_STRICT=1 ");
	printf("-e CUOTA_DIR=/run/cuota -v %s:/run/cuota -e LD_PRELOAD=%s -v %s:%s:ro\n", dir,
	       inside, library, inside);
}

static int check_command(const struct input *in, const char *library)
{
	struct error why = {""};
	const char *strict = getenv("CUOTA_STRICT");

	if (run_preflight(in->command[0], library, &why) <= 0)
		return 0;
	cli_error("WARNING: no quota will hold for %s: %s", in->command[0], why.text);
	return strict && !strcmp(strict, "1") ? -EPERM : 0;
}

int command_run(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[--] COMMAND [ARG...]",
		.doc = "Runs COMMAND under a quota. Its children share the quota.\v"
		       "Exit code: the command's own; 125 when cuota itself failed, 126 when "
		       "COMMAND "
		       "cannot be executed, 127 when it was not found.",
	};
	struct input in = {0};
	struct error err = {""};
	char library[PATH_MAX], group[GROUP_NAME_BYTES];
	int why;

	cli_parse(&argp, argc, argv, CLI_RUN_FAILED, &in);
	if (run_library_find(library, &err)) {
		cli_error("%s", err.text);
		return CLI_RUN_FAILED;
	}
	if (set_environment(&in, library) || check_environment(group))
		return CLI_RUN_FAILED;
	if (in.docker || in.print_env) {
		if (in.docker)
			print_docker(&in, library);
		else
			print_environment(&in);
		return cli_finish(CLI_OK) ? CLI_RUN_FAILED : CLI_OK;
	}
	if (check_command(&in, library))
		return CLI_RUN_FAILED;
	if (!in.no_check && run_watch_start(group, &err))
		cli_error("note: cannot watch whether the library is loaded: %s", err.text);
	execvp(in.command[0], in.command);
	why = errno; /* before a standard error that is closed sets another */
	cli_error("%s: %s", in.command[0], strerror(why));
	return why == ENOENT ? CLI_RUN_MISSING : CLI_RUN_CANNOT;
}
