/*
 * What every subcommand shares: how options are parsed, how errors and exit codes look, and where
 * output may have colour. A subcommand is one function command_<name>(argc, argv) with argv[0]
 * already "cuota <name>"; it returns the exit code.
 */
#ifndef CUOTA_CLI_H
#define CUOTA_CLI_H

#include <argp.h>
#include <limits.h>
#include <stdio.h>

#include "base/error.h"

enum {
	CLI_OK = 0,
	CLI_FAILED = 1,	       /* something failed, or a check found something */
	CLI_USAGE = 2,	       /* the command line makes no sense */
	CLI_RUN_FAILED = 125,  /* run: cuota itself failed */
	CLI_RUN_CANNOT = 126,  /* run: the command was found but cannot be executed */
	CLI_RUN_MISSING = 127, /* run: the command was not found */
};

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *arguments, *summary;
};

extern const struct command cli_commands[]; /* ends with name NULL */

#define COMMAND(name, arguments, summary) int command_##name(int argc, char **argv);
#define HIDDEN(name, function)		  int function(int argc, char **argv);
#include "commands.def"
#undef COMMAND
#undef HIDDEN

/* argv[0] of the running subcommand ("cuota status"): the prefix of its messages. */
extern const char *cli_name;

/*
 * argp_parse with options before the first non-option, `--` honoured; a usage error ends the
 * process with exit code `usage_status`, --help with 0.
 */
void cli_parse(const struct argp *argp, int argc, char **argv, int usage_status, void *input);

/* "cuota status: text" on stderr. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* 1 when `stream` is a terminal and NO_COLOR is unset or empty. */
int cli_colour(FILE *stream);

/* Columns of the terminal on stdout, COLUMNS, or 0 when the output is no terminal: do not truncate.
 */
unsigned cli_columns(void);

/* Flushes stdout; CLI_FAILED with a message when it could not all be written, else `status`. */
int cli_finish(int status);

/* Seconds from "90", "90s", "30m", "2h", "7d"; -EINVAL with the reason. */
int cli_duration(const char *text, double *ret_seconds, struct error *err);

/* The directories that may hold ledgers: CUOTA_DIR alone when set, else both defaults. Creates
 * nothing. */
#define CLI_DIRS 2
struct cli_dirs {
	unsigned count;
	char path[CLI_DIRS][PATH_MAX];
};
void cli_ledger_dirs(struct cli_dirs *ret);

/* Name of a user, or the number as text; returns buf. */
const char *cli_user(unsigned uid, char *buf, size_t buf_bytes);

/* The unix groups of a user, as NSS says; returns how many were written. */
unsigned cli_unix_groups(unsigned uid, unsigned *ret_gids, unsigned room);

#endif
