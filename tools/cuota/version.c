/*
 * `cuota version`: what was built, from what, and which ledger layout it speaks.
 */
#include "cli.h"

#include <cuda.h>
#include <jansson.h>
#include <stdlib.h>

#include "ledger/layout.h"

#ifndef CUOTA_COMMIT
#define CUOTA_COMMIT "unknown"
#endif

static const struct argp_option options[] = {
	{"json", 'j', NULL, 0, "print one JSON object", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	int *json = state->input;

	(void)arg;
	if (key != 'j')
		return ARGP_ERR_UNKNOWN;
	*json = 1;
	return 0;
}

int command_version(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Prints version and build of the command.",
	};
	int json = 0;
	json_t *object;

	cli_parse(&argp, argc, argv, CLI_USAGE, &json);
	if (!json) {
		printf("cuota %s (commit %s)\n", CUOTA_VERSION, CUOTA_COMMIT);
		printf("ledger layout %u; built for CUDA %d.%d by %s\n", LEDGER_VERSION,
		       CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10, __VERSION__);
		return cli_finish(CLI_OK);
	}
	object = json_pack("{s:s, s:s, s:i, s:i, s:s}", "version", CUOTA_VERSION, "commit",
			   CUOTA_COMMIT, "ledger_version", (int)LEDGER_VERSION, "cuda_version",
			   CUDA_VERSION, "compiler", __VERSION__);
	json_dumpf(object, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(object);
	return cli_finish(CLI_OK);
}
