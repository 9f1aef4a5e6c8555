/*
 * `cuota config check`: the policy file judged line by line by the library's own parser, and then as the
 * library would read it, ownership included.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/policy.h"
#include "base/policy_parse.h"

static const struct argp_option options[] = {
	{"quiet", 'q', NULL, 0, "print only what is wrong", 0},
	{0},
};

struct input {
	const char *verb, *file;
	int quiet;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	switch (key) {
	case 'q': in->quiet = 1; return 0;
	case ARGP_KEY_ARG:
		if (!in->verb)
			in->verb = arg;
		else if (!in->file)
			in->file = arg;
		else
			argp_error(state, "one file at a time");
		return 0;
	case ARGP_KEY_END:
		if (!in->verb || strcmp(in->verb, "check"))
			argp_error(state, "the one thing it does is 'check'");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* What follows "LINE: " in a message of the parser, whose line numbers are of the piece it was given. */
static const char *reason(const struct error *err)
{
	const char *colon = strstr(err->text, ": ");

	return colon && strspn(err->text, "0123456789") == (size_t)(colon - err->text) ? colon + 2
										       : err->text;
}

enum verdict { LINE_GOOD, LINE_NOTE, LINE_WRONG };

/* One line in its section. */
static enum verdict judge(const char *section, const char *line, struct error *err)
{
	struct section_list list = {0};
	enum verdict verdict = LINE_GOOD;
	char *text;

	if (asprintf(&text, "%s\n%s\n", section, line) < 0)
		return LINE_WRONG;
	err->text[0] = '\0';
	if (policy_parse(text, &list, err))
		verdict = LINE_WRONG;
	else if (*line == '[' && list.count && list.sections[0].unknown) {
		error_set(err, ENOENT, "nobody on this host is called '%s': this matches nobody",
			  list.sections[0].name);
		verdict = LINE_NOTE;
	}
	free(list.sections);
	free(text);
	return verdict;
}

/* Where check_lines() is. */
struct place {
	const char *path;
	int number, wrong, skipping; /* skipping: under a section line that is wrong */
	char section[512];
};

static void check_line(const struct input *in, struct place *at, const char *line)
{
	static const char *const words[] = {"ok", "NOTE", "WRONG"};
	const char *start = line + strspn(line, " \t");
	enum verdict verdict = LINE_GOOD;
	struct error err = {""};
	int head = *start == '[', blank = !*start || *start == '#' || *start == ';';

	if (!blank && (head || !at->skipping))
		verdict = judge(head ? "" : at->section, start, &err);
	if (head) {
		at->skipping = verdict == LINE_WRONG;
		snprintf(at->section, sizeof(at->section), "%s", start);
	}
	at->wrong += verdict == LINE_WRONG;
	if (verdict != LINE_GOOD || !in->quiet)
		printf("%s:%d: %-5s  %s\n", at->path, at->number,
		       blank || (at->skipping && !head) ? "" : words[verdict], line);
	if (verdict != LINE_GOOD)
		printf("%s:%d:        ^ %s\n", at->path, at->number, reason(&err));
}

/* NULL with EINVAL for what has no lines to judge: reading a FIFO or a device may never end. */
static FILE *open_lines(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode))
		return fdopen(fd, "r");
	close(fd);
	errno = EINVAL;
	return NULL;
}

/* Returns how many lines are wrong, or -errno. What is no regular file is check_whole()'s to refuse. */
static int check_lines(const struct input *in, const char *path)
{
	struct place at = {.path = path};
	FILE *file = open_lines(path);
	char *line = NULL;
	size_t room = 0;

	if (!file)
		return errno == EINVAL ? 0 : -errno;
	while (getline(&line, &room, file) > 0) {
		line[strcspn(line, "\r\n")] = '\0';
		at.number++;
		check_line(in, &at, line);
	}
	free(line);
	fclose(file);
	return at.wrong;
}

/* With the files of conf.d, which are a policy also where the file beside them is not there. */
static int check_whole(const char *path, int *ret_any)
{
	struct policy *policy = NULL;
	struct error err = {""};
	/* The default path must be root's; a file named here may be the caller's own. */
	int system = !strcmp(path, POLICY_PATH);
	int rc = policy_read_from(system ? path : "", system ? "" : path, &policy, &err);

	if (rc)
		printf("%s\n", err.text);
	else if (policy_warning(policy)[0])
		printf("note: %s\n", policy_warning(policy));
	*ret_any = !rc && policy_any(policy);
	policy_free(policy);
	return rc;
}

int command_config(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "check [FILE]",
		.doc = "Checks the policy file (default " POLICY_PATH
		       "), line by line and as a whole.\v"
		       "Exit code: 1 when something is wrong; then the library takes nothing of "
		       "it.",
	};
	struct input in = {0};
	int wrong, missing, any;

	cli_parse(&argp, argc, argv, CLI_USAGE, &in);
	if (!in.file)
		in.file = getenv("CUOTA_CONFIG") ? getenv("CUOTA_CONFIG") : POLICY_PATH;
	wrong = check_lines(&in, in.file);
	missing = wrong == -ENOENT && !strcmp(in.file, POLICY_PATH);
	if (wrong < 0 && !missing) {
		cli_error("%s: %s", in.file, strerror(-wrong));
		return CLI_FAILED;
	}
	if (check_whole(in.file, &any) || wrong > 0)
		return cli_finish(CLI_FAILED);
	if (missing && !any)
		printf("%s: not there: no policy is set\n", in.file);
	else if (!in.quiet)
		printf("%s: good\n", in.file);
	return cli_finish(CLI_OK);
}
