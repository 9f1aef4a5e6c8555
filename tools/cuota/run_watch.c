/*
 * Did the library really get into what `cuota run` started? A preload that fails is silent, so a
 * small process looks: it walks the command's descendants and reads their maps. It is started by
 * `cuota run` before exec as a grandchild (the command must not find a child it never made), in a
 * session of its own, with a command line of its own, and ends with the command. It holds no pipe
 * of the caller's: a message for a pipe goes through the command's own descriptor.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledgers.h"
#include "nvml.h"
#include "process.h"
#include "run.h"

#define TREE_MAX      512
#define REPORTED_MAX  64
#define JOIN_GRACE_NS (3 * NS_PER_S)
#define LOOK_AGAIN_NS (15 * NS_PER_S)

struct watch {
	pid_t root;
	const char *group;
	int pidfd;
	int err_fd; /* a terminal or file to print to; -1: a pipe, found again by identity */
	dev_t err_dev;
	ino_t err_ino;
	struct ledger_view *view;
	unsigned reported_count;
	struct {
		pid_t pid;
		uint64_t start_ticks, look_ns; /* when to ask the driver about it */
		int told;
	} seen[REPORTED_MAX];
};

/* ---- in `cuota run`, before exec
 * ------------------------------------------------------------------- */

static int pipe_like(int fd)
{
	struct stat st;

	return fstat(fd, &st) || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
}

static void become_watcher(pid_t root, const char *group)
{
	char pid[16], dev[32], ino[32];
	char name[] = "cuota", verb[] = "watch-attach";
	char *argv[] = {name, verb, pid, (char *)group, dev, ino, NULL};
	struct stat st = {0};
	int null = open("/dev/null", O_RDWR), keep = !pipe_like(STDERR_FILENO);

	(void)!fstat(STDERR_FILENO, &st);
	snprintf(pid, sizeof(pid), "%d", (int)root);
	snprintf(dev, sizeof(dev), "%llu", keep ? 0 : (unsigned long long)st.st_dev);
	snprintf(ino, sizeof(ino), "%llu", keep ? 0 : (unsigned long long)st.st_ino);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (!keep)
		dup2(null, STDERR_FILENO);
	closefrom(STDERR_FILENO + 1);
	unsetenv("LD_PRELOAD");
	execv("/proc/self/exe", argv);
	_exit(127);
}

int run_watch_start(const char *group, struct error *err)
{
	pid_t root = getpid(), middle;

	fflush(NULL);
	middle = fork();
	if (middle < 0)
		return error_set(err, errno, "fork: %s", strerror(errno));
	if (!middle) {
		setsid();
		if (!fork())
			become_watcher(root, group);
		_exit(0);
	}
	while (waitpid(middle, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* ---- the watcher
 * ----------------------------------------------------------------------------------- */

/* Where the command's stderr is still open, if it is a pipe: some process of the tree holds it. */
static int reopen_stderr(const struct watch *w, const pid_t *tree, unsigned count)
{
	if (w->err_fd >= 0)
		return dup(w->err_fd);
	for (unsigned i = 0; i < count; i++) {
		for (int fd = 2; fd >= 1; fd--) {
			char path[64];
			struct stat st;
			int reopened;

			snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)tree[i], fd);
			if (stat(path, &st) || st.st_dev != w->err_dev || st.st_ino != w->err_ino)
				continue;
			reopened = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
			if (reopened >= 0)
				return reopened;
		}
	}
	return -1;
}

static void tell(const struct watch *w, const pid_t *tree, unsigned count, const char *text)
{
	int fd = reopen_stderr(w, tree, count);

	if (fd < 0)
		return;
	(void)!write(fd, text, strlen(text));
	close(fd);
}

static unsigned walk_tree(pid_t root, pid_t tree[TREE_MAX])
{
	unsigned count = 1;

	tree[0] = root;
	for (unsigned i = 0; i < count && count < TREE_MAX; i++)
		count += process_children(tree[i], tree + count, TREE_MAX - count);
	return count;
}

/* 1 if some ledger has a living slot of this process. Same PID namespace as ours: we started it. */
static int has_joined(struct watch *w, const struct process *process)
{
	struct ledger_list list;
	int joined = 0;

	if (ledgers_open(&list, NULL))
		return 0;
	for (unsigned i = 0; i < list.count && !joined; i++) {
		if (list.entries[i].problem.text[0])
			continue;
		ledger_view(&list.entries[i].ledger, w->view);
		for (unsigned s = 0; s < w->view->slot_count && !joined; s++)
			joined = process_owns(process, &w->view->slots[s]);
	}
	ledgers_close(&list);
	return joined;
}

/* 1 if the driver says that this process holds device memory. */
static int on_device(pid_t pid)
{
	struct nvml_state *state = malloc(sizeof(*state));
	int found = 0;

	if (state && !nvml_open(NULL) && !nvml_read(state)) {
		for (unsigned g = 0; g < state->gpu_count; g++)
			for (unsigned i = 0; i < state->gpus[g].process_count; i++)
				found |= state->gpus[g].processes[i].pid == (uint32_t)pid;
		nvml_state_free(state);
	}
	nvml_close();
	free(state);
	return found;
}

/* The entry of a GPU process, made when it is new; NULL when the table is full. */
static unsigned entry_of(struct watch *w, const struct process *process)
{
	unsigned i;

	for (i = 0; i < w->reported_count; i++)
		if (w->seen[i].pid == process->pid &&
		    w->seen[i].start_ticks == process->start_ticks)
			return i;
	if (i < REPORTED_MAX) {
		w->seen[i].pid = process->pid;
		w->seen[i].start_ticks = process->start_ticks;
		w->seen[i].look_ns = clock_now_ns() + JOIN_GRACE_NS;
		w->seen[i].told = 0;
		w->reported_count++;
	}
	return i;
}

static void check_process(struct watch *w, pid_t pid, const pid_t *tree, unsigned count)
{
	int maps = process_maps(pid);
	struct process process;
	char text[512];
	unsigned i;

	if (maps < 0 || !(maps & MAPS_CUDA) || process_read(pid, &process))
		return;
	i = entry_of(w, &process);
	if (i == REPORTED_MAX || w->seen[i].told)
		return;
	if (!(maps & MAPS_CUOTA)) {
		snprintf(text, sizeof(text),
			 "cuota run: WARNING: GPU program %s (pid %d) runs WITHOUT a quota: "
			 "libcuota.so is not "
			 "loaded in it (was LD_PRELOAD dropped on the way, as env -i, sudo and su "
			 "do?)\n",
			 process.comm, (int)pid);
	} else {
		/* Some have the driver loaded for hours and never use it: starting NVML is not free. */
		if (clock_now_ns() < w->seen[i].look_ns || has_joined(w, &process))
			return;
		w->seen[i].look_ns = clock_now_ns() + LOOK_AGAIN_NS;
		if (!on_device(pid))
			return;
		snprintf(text, sizeof(text),
			 "cuota run: WARNING: %s (pid %d) uses the GPU WITHOUT a quota: "
			 "libcuota.so is loaded "
			 "but has not joined group %s; 'cuota doctor' looks for the reason\n",
			 process.comm, (int)pid, w->group);
	}
	w->seen[i].told = 1;
	tell(w, tree, count, text);
}

/* 1 = the command has ended. */
static int wait_for_end(const struct watch *w, int timeout_ms)
{
	struct pollfd fd = {.fd = w->pidfd, .events = POLLIN};

	if (w->pidfd >= 0)
		return poll(&fd, 1, timeout_ms) > 0;
	poll(NULL, 0, timeout_ms);
	return kill(w->root, 0) && errno == ESRCH;
}

/* Often while programs start, seldom later. */
static int interval_ms(uint64_t age_ns)
{
	if (age_ns < 3 * NS_PER_S)
		return 50;
	return age_ns < 60 * NS_PER_S ? 250 : 2000;
}

int command_watch_attach(int argc, char **argv)
{
	uint64_t start_ns = clock_now_ns();
	struct watch w = {.err_fd = -1};
	pid_t tree[TREE_MAX];

	if (argc != 5)
		return CLI_USAGE;
	w.root = (pid_t)atoi(argv[1]);
	w.group = argv[2];
	w.err_dev = (dev_t)strtoull(argv[3], NULL, 10);
	w.err_ino = (ino_t)strtoull(argv[4], NULL, 10);
	if (!w.err_dev && !w.err_ino)
		w.err_fd = STDERR_FILENO;
	if (chdir("/"))
		return CLI_FAILED;
	w.view = malloc(sizeof(*w.view));
	if (!w.view)
		return CLI_FAILED;
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "cuota-watch");
	w.pidfd = (int)syscall(SYS_pidfd_open, w.root, 0);
	while (!wait_for_end(&w, interval_ms(clock_now_ns() - start_ns))) {
		unsigned count = walk_tree(w.root, tree);

		for (unsigned i = 0; i < count; i++)
			check_process(&w, tree[i], tree, count);
	}
	free(w.view);
	return CLI_OK;
}
