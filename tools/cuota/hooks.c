/*
 * `cuota hooks`: the rows of hooks.def and nvml.def, read as data. The command never links a hook.
 */
#include "cli.h"

#include <cuda.h>
#include <string.h>

struct row {
	const char *symbol, *family;
};

static const struct row rows[] = {
#define HOOK(symbol, family) {#symbol, #family},
#include "hooks/hooks.def"
#undef HOOK
#if __has_include("hooks/nvml.def")
#define NVML_HOOK(symbol, family) {#symbol, #family},
#define NVML_CALL(symbol)
#include "hooks/nvml.def"
#undef NVML_HOOK
#undef NVML_CALL
#endif
};

#define ROWS (sizeof(rows) / sizeof(*rows))

struct input {
	char **families;
	int count;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	(void)arg;
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	in->families = state->argv + state->next - 1;
	in->count = state->argc - state->next + 1;
	state->next = state->argc;
	return 0;
}

static int wanted(const struct input *in, const char *family)
{
	for (int i = 0; i < in->count; i++)
		if (!strcmp(in->families[i], family))
			return 1;
	return !in->count;
}

static int family_known(const char *family)
{
	for (size_t i = 0; i < ROWS; i++)
		if (!strcmp(rows[i].family, family))
			return 1;
	return 0;
}

int command_hooks(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "[FAMILY...]",
		.doc = "Prints the driver functions that the library intercepts, one a line, with "
		       "the family "
		       "each belongs to.",
	};
	struct input in = {0};

	cli_parse(&argp, argc, argv, CLI_USAGE, &in);
	for (int i = 0; i < in.count; i++) {
		if (!family_known(in.families[i])) {
			cli_error("no family '%s'; 'cuota hooks' prints them all", in.families[i]);
			return CLI_FAILED;
		}
	}
	for (size_t i = 0; i < ROWS; i++)
		if (wanted(&in, rows[i].family))
			printf("%-44s %s\n", rows[i].symbol, rows[i].family);
	return cli_finish(CLI_OK);
}
