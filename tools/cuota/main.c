/*
 * The `cuota` command: finds the subcommand in the table and hands over. Everything a person sees
 * of a subcommand is in the file of its name.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define COMMAND_FUNCTION(name) command_##name

const struct command cli_commands[] = {
#define COMMAND(name, arguments, summary) {#name, COMMAND_FUNCTION(name), arguments, summary},
#define HIDDEN(name, function)		  {name, function, NULL, NULL},
#include "commands.def"
#undef COMMAND
#undef HIDDEN
	{0},
};

struct main_input {
	int first; /* index of the subcommand in argv; 0 = none */
};

static char *help_commands(void)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	fputs("Commands:\n", out);
	for (const struct command *c = cli_commands; c->name; c++)
		if (c->summary)
			fprintf(out, "  %-10s %s\n", c->name, c->summary);
	fputs("\n'cuota COMMAND --help' tells the options of each.", out);
	fclose(out);
	return text;
}

static char *help_filter(int key, const char *text, void *input)
{
	(void)input;
	return key == ARGP_KEY_HELP_POST_DOC ? help_commands() : (char *)text;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct main_input *in = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_ARG:
		in->first = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS: argp_state_help(state, stderr, ARGP_HELP_STD_USAGE); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct command *find(const char *name)
{
	for (const struct command *c = cli_commands; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

static int dispatch(int argc, char **argv)
{
	const struct command *command = find(argv[0]);
	char name[64];

	if (!command) {
		fprintf(stderr, "cuota: unknown command '%s'; 'cuota --help' lists them\n",
			argv[0]);
		return CLI_USAGE;
	}
	snprintf(name, sizeof(name), "cuota %s", command->name);
	argv[0] = name;
	cli_name = name;
	return command->run(argc, argv);
}

/* `cuota help status` is `cuota status --help`. */
static int help(int argc, char **argv)
{
	char option[] = "--help";
	char *both[] = {argc > 1 ? argv[1] : option, option, NULL};

	return dispatch(2, both);
}

static void print_version(FILE *stream, struct argp_state *state)
{
	(void)state;
	fprintf(stream, "cuota %s\n", CUOTA_VERSION);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "COMMAND [ARG...]",
		.doc = "GPU memory caps and SM-time shares for unmodified CUDA programs.\v",
		.help_filter = help_filter,
	};
	struct main_input in = {0};

	argp_program_version_hook = print_version;
	cli_parse(&argp, argc, argv, CLI_USAGE, &in);
	argp_program_version_hook = NULL;
	if (!in.first)
		return CLI_USAGE;
	if (!strcmp(argv[in.first], "help") && argc - in.first > 1)
		return help(argc - in.first, argv + in.first);
	return dispatch(argc - in.first, argv + in.first);
}
