/*
 * `cuota reap`: groups that hold a GPU and do not use it. Tells what it would do, and does it only when asked
 * to (--yes). What cannot be shown to be idle for the whole time, from the journal, is left alone. The
 * library never ends anything.
 */
#include "cli.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "books.h"
#include "snapshot.h"

#define EXEMPT_MAX 64

enum { KEY_KILL = 0x100 };

static const struct argp_option options[] = {
	{"idle", 'i', "TIME", 0, "idle for so long (default 30m)", 1},
	{"below", 'b', "PERCENT", 0, "idle is less SM time than this (default 1%)", 1},
	{"exempt", 'x', "PATTERN", 0,
	 "leave groups of this name alone (as in sh: train-*); repeatable", 1},
	{"signal", 's', "SIGNAL", 0, "what to send each process (default TERM)", 2},
	{"grace", 'g', "TIME", 0, "wait so long for them to end (default 30s)", 2},
	{"kill", KEY_KILL, NULL, 0, "then send KILL to those that have not", 2},
	{"exec", 'e', "COMMAND", 0,
	 "instead of a signal run this for each group, with CUOTA_REAP_GROUP, _GPU, _USER and "
	 "_PIDS set",
	 2},
	{"yes", 'y', NULL, 0, "do it; without this only tell", 3},
	{0},
};

struct input {
	double idle_s, grace_s;
	uint32_t below_bp;
	int signal, kill, yes;
	const char *signal_name, *command;
	unsigned exempt_count;
	const char *exempt[EXEMPT_MAX];
};

static int parse_signal(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (end != text && !*end)
		return number > 0 && number < NSIG ? (int)number : 0;
	if (!strncmp(text, "SIG", 3))
		text += 3;
	for (int s = 1; s < NSIG; s++)
		if (sigabbrev_np(s) && !strcmp(sigabbrev_np(s), text))
			return s;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;
	struct error err;

	switch (key) {
	case 'i':
		if (cli_duration(arg, &in->idle_s, &err) || in->idle_s <= 0)
			argp_error(state, "--idle '%s': write 30m, 2h", arg);
		return 0;
	case 'g':
		if (cli_duration(arg, &in->grace_s, &err))
			argp_error(state, "--grace '%s': write 30s, 2m", arg);
		return 0;
	case 'b':
		if (percent_parse(arg, &in->below_bp, &err))
			argp_error(state, "--below '%s': %s", arg, err.text);
		return 0;
	case 's':
		in->signal = parse_signal(arg);
		in->signal_name = arg;
		if (!in->signal)
			argp_error(state, "--signal '%s': no such signal", arg);
		return 0;
	case 'x':
		if (in->exempt_count == EXEMPT_MAX)
			argp_error(state, "at most %d exemptions", EXEMPT_MAX);
		in->exempt[in->exempt_count++] = arg;
		return 0;
	case 'e': in->command = arg; return 0;
	case 'y': in->yes = 1; return 0;
	case KEY_KILL: in->kill = 1; return 0;
	case ARGP_KEY_ARG: argp_error(state, "'%s' is no option", arg); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* One idle group on one GPU, with its processes as we see them. */
struct target {
	const struct gpu_state *gpu;
	const struct group_view *group;
	unsigned count, unseen;
	struct {
		pid_t pid;
		int pidfd;
	} processes[LEDGER_SLOTS];
};

static int is_exempt(const struct input *in, const char *group)
{
	for (unsigned i = 0; i < in->exempt_count; i++)
		if (!fnmatch(in->exempt[i], group, 0))
			return 1;
	return 0;
}

/* The pidfd is had before the process is looked at again: from then on nobody else can be meant. */
static void find_processes(struct target *target)
{
	for (unsigned i = 0; i < target->gpu->view->slot_count; i++) {
		const struct slot_view *slot = &target->gpu->view->slots[i];
		pid_t pid;
		int fd;

		if (slot->group != target->group->index || !slot->alive)
			continue;
		pid = process_of_slot(slot);
		fd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
		if (fd >= 0 && process_of_slot(slot) == pid) {
			target->processes[target->count].pid = pid;
			target->processes[target->count++].pidfd = fd;
			continue;
		}
		if (fd >= 0)
			close(fd);
		target->unseen++;
	}
}

static void print_pids(FILE *out, const struct target *target)
{
	for (unsigned i = 0; i < target->count; i++)
		fprintf(out, "%s%d", i ? " " : "", (int)target->processes[i].pid);
}

static void describe(const struct target *target, double share, const struct input *in)
{
	char user[64], used[16];

	printf("%s group %s (%s): %u process%s hold %s, %.2f%% of SM time in %.0f %s: ",
	       target->gpu->uuid, target->group->name,
	       cli_user(target->group->owner_uid, user, sizeof(user)), target->group->members,
	       target->group->members == 1 ? "" : "es",
	       size_format(target->group->used_bytes, used, sizeof(used)), share * 100,
	       in->idle_s < 600 ? in->idle_s : in->idle_s / 60, in->idle_s < 600 ? "s" : "min");
	if (in->command)
		printf("%s run '%s'", in->yes ? "will" : "would", in->command);
	else
		printf("%s send %s to", in->yes ? "will" : "would", in->signal_name);
	printf(" [");
	print_pids(stdout, target);
	puts("]");
	if (target->unseen)
		printf("  %u of them cannot be seen from this PID namespace\n", target->unseen);
	fflush(stdout);
}

static int run_command(const struct target *target, const char *command)
{
	char *pids = NULL, user[64];
	size_t bytes = 0;
	FILE *text = open_memstream(&pids, &bytes);
	int rc;

	if (!text)
		return -ENOMEM;
	print_pids(text, target);
	fclose(text);
	setenv("CUOTA_REAP_GROUP", target->group->name, 1);
	setenv("CUOTA_REAP_GPU", target->gpu->uuid, 1);
	setenv("CUOTA_REAP_USER", cli_user(target->group->owner_uid, user, sizeof(user)), 1);
	setenv("CUOTA_REAP_PIDS", pids, 1);
	free(pids);
	rc = system(command);
	if (rc)
		cli_error("'%s' failed for group %s", command, target->group->name);
	return rc ? -EIO : 0;
}

static int send_all(const struct target *target, int number)
{
	int failed = 0;

	for (unsigned i = 0; i < target->count; i++) {
		int fd = target->processes[i].pidfd;

		if (!syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) || errno == ESRCH)
			continue;
		cli_error("pid %d: %s", (int)target->processes[i].pid, strerror(errno));
		failed = -errno;
	}
	return failed;
}

/* How many still run after the time. */
static unsigned wait_all(const struct target *target, double seconds)
{
	uint64_t until = clock_now_ns() + (uint64_t)(seconds * 1e9);
	unsigned left = 0;

	for (unsigned i = 0; i < target->count; i++) {
		struct pollfd fd = {.fd = target->processes[i].pidfd, .events = POLLIN};
		uint64_t now = clock_now_ns();
		int ms = now < until ? (int)((until - now) / NS_PER_MS) + 1 : 0;

		left += poll(&fd, 1, ms) <= 0;
	}
	return left;
}

static int act(const struct target *target, const struct input *in)
{
	unsigned left;
	int rc;

	if (in->command)
		return run_command(target, in->command);
	rc = send_all(target, in->signal);
	if (rc)
		return rc;
	left = wait_all(target, in->grace_s);
	if (left && in->kill) {
		rc = send_all(target, SIGKILL);
		left = wait_all(target, 5);
	}
	if (left)
		cli_error("group %s: %u process%s still there", target->group->name, left,
			  left == 1 ? "" : "es");
	return left ? -EBUSY : rc;
}

static int consider(const struct gpu_state *gpu, const struct group_state *group, double share,
		    const struct input *in)
{
	struct target *target;
	int rc = 0;

	if (isnan(share) || share * 10000 >= in->below_bp || is_exempt(in, group->view->name))
		return 0;
	target = calloc(1, sizeof(*target));
	if (!target)
		return -ENOMEM;
	target->gpu = gpu;
	target->group = group->view;
	find_processes(target);
	describe(target, share, in);
	if (in->yes)
		rc = act(target, in);
	for (unsigned i = 0; i < target->count; i++)
		close(target->processes[i].pidfd);
	free(target);
	return rc;
}

static int reap_all(const struct snapshot *snapshot, const struct books *books,
		    const struct input *in)
{
	int rc = 0;

	for (unsigned g = 0; g < snapshot->gpu_count; g++) {
		const struct gpu_state *gpu = &snapshot->gpus[g];

		for (unsigned i = 0; i < gpu->group_count; i++) {
			const struct group_view *view = gpu->groups[i].view;
			double age_s =
				((double)snapshot->monotonic_ns - (double)view->created_ns) / 1e9;
			double share = books_share(books, gpu->uuid, view, snapshot->wall_s,
						   snapshot->monotonic_ns, in->idle_s);

			if (age_s >= in->idle_s && consider(gpu, &gpu->groups[i], share, in))
				rc = CLI_FAILED;
		}
	}
	return rc;
}

int command_reap(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Finds groups that hold a GPU and have not used it for a while, and ends "
		       "them when "
		       "told to. Without --yes it only tells.",
	};
	struct input in = {.idle_s = 1800,
			   .grace_s = 30,
			   .below_bp = 100,
			   .signal = SIGTERM,
			   .signal_name = "TERM"};
	struct snapshot snapshot;
	struct books books;
	struct error err = {""};
	int rc;

	cli_parse(&argp, argc, argv, CLI_USAGE, &in);
	if (snapshot_read(&snapshot, &err)) {
		cli_error("%s", err.text);
		return CLI_FAILED;
	}
	if (books_read(&snapshot.dirs, BOOKS_SAMPLES, snapshot.wall_s - in.idle_s - 120, 0, &books,
		       &err)) {
		cli_error("%s", err.text);
		snapshot_free(&snapshot);
		return CLI_FAILED;
	}
	rc = reap_all(&snapshot, &books, &in);
	books_free(&books);
	snapshot_free(&snapshot);
	nvml_close();
	return cli_finish(rc);
}
