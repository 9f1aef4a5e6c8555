/*
 * What it costs to look: 1,024 processes, each a member on 8 GPUs, and then `cuota status --json` and `cuota
 * metrics` timed from exec to exit. No GPU is needed; the members only sit in their ledgers.
 *
 *   bench_status CUOTA [PROCESSES [GPUS]]      CUOTA: the command to time
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/ledger.h"

#define GPUS_MAX 8
#define RUNS	 21

static char dir[] = "/dev/shm/cuota-bench.XXXXXX";

static void member(unsigned number, unsigned gpus, int ready)
{
	static struct ledger ledgers[GPUS_MAX];
	static struct member members[GPUS_MAX];
	struct quota asked = {.mem_bytes = 8ull << 30, .sm_bp = 1000};
	char uuid[UUID_TEXT_BYTES], group[GROUP_NAME_BYTES], ok = 1;
	struct error err = {""};

	snprintf(group, sizeof(group), "group-%u", number / 8);
	for (unsigned g = 0; g < gpus && ok; g++) {
		snprintf(uuid, sizeof(uuid), "GPU-00000000-0000-0000-0000-%012u", g);
		ok = !ledger_open(dir, uuid, &ledgers[g], &err) &&
		     !ledger_join(&ledgers[g], group, NULL, &asked, &members[g], &err) &&
		     !ledger_charge(&members[g], CHARGE_LINEAR, (number + 1) << 20, NULL);
	}
	if (!ok)
		fprintf(stderr, "member %u: %s\n", number, err.text);
	(void)!write(ready, &ok, 1);
	for (;;)
		pause();
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void run_quiet(const char *command, char *const argv[])
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	dup2(null, STDOUT_FILENO);
	execv(command, argv);
	_exit(127);
}

/* Median of several, ms. */
static double time_command(const char *command, char *const argv[])
{
	double ms[RUNS];

	for (int i = 0; i < RUNS; i++) {
		uint64_t from = clock_now_ns();
		int status = 0;
		pid_t pid = fork();

		if (!pid)
			run_quiet(command, argv);
		waitpid(pid, &status, 0);
		ms[i] = (double)(clock_now_ns() - from) / 1e6;
		if (status) {
			fprintf(stderr, "%s %s: status %d\n", command, argv[1], status);
			return -1;
		}
	}
	qsort(ms, RUNS, sizeof(*ms), by_value);
	return ms[RUNS / 2];
}

static int start_members(unsigned processes, unsigned gpus, pid_t *pids)
{
	int pipes[2];
	char ok;

	if (pipe(pipes))
		return 0;
	for (unsigned i = 0; i < processes; i++) {
		pids[i] = fork();
		if (!pids[i])
			member(i, gpus, pipes[1]);
		if (pids[i] < 0 || read(pipes[0], &ok, 1) != 1 || !ok)
			return 0;
	}
	return 1;
}

static void clean(const pid_t *pids, unsigned processes)
{
	char command[128];

	for (unsigned i = 0; i < processes; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	(void)!system(command);
}

int main(int argc, char **argv)
{
	unsigned processes = argc > 2 ? (unsigned)atoi(argv[2]) : 1024;
	unsigned gpus = argc > 3 ? (unsigned)atoi(argv[3]) : GPUS_MAX;
	char *status[] = {"cuota", "status", "--json", "--interval", "0", NULL};
	char *table[] = {"cuota", "status", "--interval", "0", NULL};
	char *metrics[] = {"cuota", "metrics", NULL};
	pid_t *pids = calloc(processes + 1, sizeof(*pids));
	int good;

	if (argc < 2 || !pids || !processes || processes > LEDGER_SLOTS || !gpus ||
	    gpus > GPUS_MAX || !mkdtemp(dir)) {
		fputs("usage: bench_status CUOTA [PROCESSES [GPUS]]\n", stderr);
		return 2;
	}
	setenv("CUOTA_DIR", dir, 1);
	good = start_members(processes, gpus, pids);
	if (good)
		printf("%u processes on %u GPUs: status %.1f ms, status --json %.1f ms, metrics "
		       "%.1f ms\n",
		       processes, gpus, time_command(argv[1], table), time_command(argv[1], status),
		       time_command(argv[1], metrics));
	clean(pids, processes);
	free(pids);
	return good ? 0 : 1;
}
