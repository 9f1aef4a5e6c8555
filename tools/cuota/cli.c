/*
 * The subcommands' shared manners: see cli.h. No knowledge of ledgers' contents or of CUDA here.
 */
#include "cli.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char *cli_name = "cuota";

void cli_parse(const struct argp *argp, int argc, char **argv, int usage_status, void *input)
{
	argp_err_exit_status = usage_status;
	if (argp_parse(argp, argc, argv, ARGP_IN_ORDER, NULL, input))
		exit(usage_status);
}

void cli_error(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s: ", cli_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

int cli_colour(FILE *stream)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (no && *no)
		return 0;
	if (!term || !strcmp(term, "dumb"))
		return 0;
	return isatty(fileno(stream));
}

unsigned cli_columns(void)
{
	struct winsize size;
	const char *columns = getenv("COLUMNS");

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (columns && atoi(columns) > 0)
		return (unsigned)atoi(columns);
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	return 80;
}

int cli_finish(int status)
{
	if (!ferror(stdout) && !fflush(stdout))
		return status;
	fprintf(stderr, "%s: cannot write the output: %s\n", cli_name, strerror(errno));
	return CLI_FAILED;
}

int cli_duration(const char *text, double *ret_seconds, struct error *err)
{
	static const struct {
		char unit;
		double seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
	size_t digits = strspn(text, "0123456789."); /* no sign, blank, exponent or nan */
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || end != text + digits || errno || value > 1e9)
		return error_set(err, EINVAL, "'%s' is no duration: write 90s, 30m, 2h or 7d",
				 text);
	if (!*end) {
		*ret_seconds = value;
		return 0;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (*end == units[i].unit && !end[1]) {
			*ret_seconds = value * units[i].seconds;
			return 0;
		}
	}
	return error_set(err, EINVAL, "'%s': unknown unit: write 90s, 30m, 2h or 7d", text);
}

void cli_ledger_dirs(struct cli_dirs *ret)
{
	const char *set = getenv("CUOTA_DIR");

	if (set && *set) {
		ret->count = 1;
		snprintf(ret->path[0], PATH_MAX, "%s", set);
		return;
	}
	ret->count = CLI_DIRS;
	snprintf(ret->path[0], PATH_MAX, "/run/cuota");
	snprintf(ret->path[1], PATH_MAX, "/dev/shm/cuota");
}

/* NSS may ask a server for each name, and a table names the same few users again and again. */
#define USERS_KEPT 64

static struct {
	unsigned uid;
	char name[64]; /* "" = not kept */
} users[USERS_KEPT];

const char *cli_user(unsigned uid, char *buf, size_t buf_bytes)
{
	unsigned place = uid % USERS_KEPT;
	struct passwd entry, *found = NULL;
	char text[4096];

	if (!users[place].name[0] || users[place].uid != uid) {
		if (!getpwuid_r(uid, &entry, text, sizeof(text), &found) && found)
			snprintf(users[place].name, sizeof(users[place].name), "%s",
				 found->pw_name);
		else
			snprintf(users[place].name, sizeof(users[place].name), "%u", uid);
		users[place].uid = uid;
	}
	snprintf(buf, buf_bytes, "%s", users[place].name);
	return buf;
}

unsigned cli_unix_groups(unsigned uid, unsigned *ret_gids, unsigned room)
{
	struct passwd entry, *found = NULL;
	int count = (int)room;
	char text[4096];

	if (getpwuid_r(uid, &entry, text, sizeof(text), &found) || !found)
		return 0;
	_Static_assert(sizeof(gid_t) == sizeof(unsigned), "a gid is an unsigned");
	if (getgrouplist(found->pw_name, found->pw_gid, ret_gids, &count) < 0)
		return 0;
	return (unsigned)count;
}
