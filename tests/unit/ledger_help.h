/*
 * What the ledger's tests share: a directory of their own, and children that are told what to do
 * over a pair of pipes, so that no test needs a sleep to get its order.
 */
#ifndef CUOTA_TESTS_LEDGER_HELP_H
#define CUOTA_TESTS_LEDGER_HELP_H

#include <check.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "ledger/protocol.h"

#define HELP_UUID "GPU-11111111-2222-3333-4444-555555555555"

static char help_dir[128];
static char help_path[256]; /* of the ledger in it */

static inline void help_setup(void)
{
	const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

	snprintf(help_dir, sizeof(help_dir), "%s/cuota test %d.XXXXXX", base, getpid());
	ck_assert_ptr_nonnull(mkdtemp(help_dir));
	snprintf(help_path, sizeof(help_path), "%s/%s.ledger", help_dir, HELP_UUID);
}

static inline void help_teardown(void)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf '%s'", help_dir);
	if (strstr(help_dir, "cuota test") && system(command) != 0)
		perror(command);
}

static inline void help_open(struct ledger *ret)
{
	struct error err;

	if (ledger_open(help_dir, HELP_UUID, ret, &err) != 0)
		ck_abort_msg("open: %s", err.text);
}

/* The code of opening, which must come with a reason when it fails. */
static inline int help_open_code(void)
{
	struct ledger ledger;
	struct error err = {""};
	int code = ledger_open(help_dir, HELP_UUID, &ledger, &err);

	if (code == 0)
		ledger_close(&ledger);
	else
		ck_assert_str_ne(err.text, "");
	return code;
}

static inline void help_join(struct ledger *ledger, const char *group, const struct quota *asked,
			     struct member *ret)
{
	struct error err;

	if (ledger_join(ledger, group, NULL, asked, ret, &err) != 0)
		ck_abort_msg("join: %s", err.text);
}

/* What the group's total says, whatever the member's own figure. */
static inline uint64_t help_total(const struct member *member)
{
	return total_granules(atomic_load(&member->ledger->file->group[member->group].total)) *
	       GRANULE_BYTES;
}

/* The sum of what each slot of the group counts for. */
static inline uint64_t help_sum(const struct ledger *ledger, unsigned group)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < LEDGER_SLOTS; i++)
		if (slot_group(&ledger->file->slot[i]) == group)
			sum += slot_granules(ledger->file, i) * GRANULE_BYTES;
	return sum;
}

static inline const struct group_view *help_view_group(const struct ledger_view *view,
						       const char *name)
{
	unsigned i;

	for (i = 0; i < view->group_count; i++)
		if (strcmp(view->groups[i].name, name) == 0)
			return &view->groups[i];
	ck_abort_msg("no group %s", name);
	return NULL;
}

struct help_child {
	pid_t pid;
	int from, to; /* the parent's ends; in the child its own */
};

/* fork() with pipes: 0 in the child. */
static inline pid_t help_child(struct help_child *child)
{
	int up[2], down[2];

	ck_assert_int_eq(pipe(up), 0);
	ck_assert_int_eq(pipe(down), 0);
	fflush(NULL);
	child->pid = fork();
	ck_assert_int_ge(child->pid, 0);
	child->from = child->pid ? up[0] : down[0];
	child->to = child->pid ? down[1] : up[1];
	close(child->pid ? up[1] : up[0]);
	close(child->pid ? down[0] : down[1]);
	return child->pid;
}

static inline void help_child_says(struct help_child *child, int what)
{
	if (write(child->to, &what, sizeof(what)) != sizeof(what))
		_exit(9);
}

/* In the child: until the parent closes its end. */
static inline void help_child_waits(struct help_child *child)
{
	char byte;

	while (read(child->from, &byte, 1) > 0)
		;
}

static inline int help_child_said(struct help_child *child)
{
	int what;

	ck_assert_int_eq(read(child->from, &what, sizeof(what)), sizeof(what));
	return what;
}

/* Waits until it has ended, without reaping it. */
static inline void help_child_is_zombie(struct help_child *child)
{
	siginfo_t info;

	ck_assert_int_eq(waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT), 0);
}

/* Lets it go and returns its wait status. */
static inline int help_child_end(struct help_child *child)
{
	int status = -1;

	close(child->to);
	ck_assert_int_eq(waitpid(child->pid, &status, 0), child->pid);
	close(child->from);
	return status;
}

/* A gate that many processes pass at the same instant, any number of times. */
struct help_gate {
	_Atomic unsigned waiting, open;
};

static inline struct help_gate *help_gate(void)
{
	void *at = mmap(NULL, sizeof(struct help_gate), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(at, MAP_FAILED);
	return at;
}

/* Waits until the gate has been opened `times` times. */
static inline void help_gate_pass(struct help_gate *gate, unsigned times)
{
	atomic_fetch_add(&gate->waiting, 1);
	while (atomic_load(&gate->open) < times)
		sched_yield();
}

/* Waits for `count` processes, then opens it for the `times`th time. */
static inline void help_gate_open(struct help_gate *gate, unsigned count, unsigned times)
{
	while (atomic_load(&gate->waiting) < count)
		usleep(100);
	atomic_store(&gate->waiting, 0);
	atomic_store(&gate->open, times);
}

static inline int help_run(const char *name, TCase *tcase)
{
	Suite *suite = suite_create(name);
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

#endif
