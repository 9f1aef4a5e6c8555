/*
 * Who is alive: every way for a process to end, to fork and to become another, and what its charge does
 * meanwhile. No test compares PIDs, nor does the ledger.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "ledger/live.h"
#include "ledger_help.h"

#define GIB (1ull << 30)

static const struct quota cap8 = {.mem_bytes = 8 * GIB};
static struct ledger ledger;
static struct member member;

static void setup(void)
{
	help_setup();
	help_open(&ledger);
	help_join(&ledger, "train", &cap8, &member);
}

static void teardown(void)
{
	ledger_leave(&member);
	ledger_close(&ledger);
	help_teardown();
}

/* A child that joins in a process of its own, charges 6 GiB and runs `end`. */
static void child_charges(struct help_child *child, void (*end)(struct help_child *))
{
	struct ledger own;
	struct member self;

	if (help_child(child) != 0) {
		ck_assert_int_eq(help_child_said(child), 0);
		return;
	}
	help_open(&own);
	help_join(&own, "train", &cap8, &self);
	help_child_says(child, ledger_charge(&self, CHARGE_LINEAR, 6 * GIB, NULL));
	help_child_waits(child);
	end(child);
	_exit(0);
}

static void check_freed(void)
{
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 8 * GIB, NULL), 0);
	ck_assert_uint_eq(help_total(&member), 8 * GIB);
}

static void end_by_exit(struct help_child *child)
{
	(void)child;
	exit(0); /* without ledger_leave */
}

static void end_by_segv(struct help_child *child)
{
	(void)child;
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

static void end_by_exec(struct help_child *child)
{
	(void)child;
	execl("/bin/sleep", "sleep", "60", (char *)NULL);
}

START_TEST(exit_and_a_crash_give_back_what_was_held)
{
	static void (*const ends[])(struct help_child *) = {end_by_exit, end_by_segv};
	struct help_child child;

	child_charges(&child, ends[_i]);
	ck_assert_uint_eq(help_total(&member), 6 * GIB);
	help_child_end(&child);
	check_freed();
}
END_TEST

START_TEST(exec_gives_back_although_the_pid_lives_on)
{
	struct help_child child;
	unsigned tries;

	child_charges(&child, end_by_exec);
	close(child.to);
	for (tries = 0; tries < 5000; tries++, usleep(1000))
		if (ledger_reap(&ledger))
			break;
	ck_assert_uint_lt(tries, 5000);
	ck_assert_int_eq(kill(child.pid, 0), 0);
	check_freed();
	kill(child.pid, SIGKILL);
	waitpid(child.pid, NULL, 0);
}
END_TEST

START_TEST(a_zombie_holds_nothing)
{
	struct help_child child;

	child_charges(&child, end_by_exit);
	close(child.to);
	help_child_is_zombie(&child);
	ck_assert_int_eq(kill(child.pid, 0), 0); /* what a PID check would say */
	check_freed();
	waitpid(child.pid, NULL, 0);
}
END_TEST

/* Runs body in a child made by fork, by a raw clone without atfork handlers, or by vfork. */
static void in_child(int how, void (*body)(void))
{
	int status;
	pid_t pid;

	if (how == 0)
		pid = fork();
	else if (how == 1)
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	else
		pid = vfork();
	if (pid == 0) {
		body();
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void body_nothing(void)
{
}

/* What a wrapper in the child may try with the parent's seat. */
static void body_uses_parent(void)
{
	struct refusal why;

	if (member_is_ours(&member))
		_exit(1);
	if (ledger_charge(&member, CHARGE_LINEAR, GIB, &why) != -ESRCH)
		_exit(2);
	ledger_charge_forced(&member, CHARGE_LINEAR, GIB);
	ledger_refund(&member, CHARGE_LINEAR, GIB);
	member_refresh(&member);
	if (member_tend(&member, NULL) != -ESRCH || ledger_group_used(&member) != GIB)
		_exit(3);
	ledger_leave(&member);
	ledger_close(&ledger);
}

START_TEST(no_kind_of_child_touches_its_parents_charge)
{
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, GIB, NULL), 0);
	in_child(_i, body_nothing);
	if (_i < 2) /* a vfork child is its parent, in memory */
		in_child(_i, body_uses_parent);
	ck_assert(slot_alive(&ledger, member.slot));
	ledger_reap(&ledger);
	ck_assert_uint_eq(help_total(&member), GIB);
	ledger_refund(&member, CHARGE_LINEAR, GIB);
	ck_assert_uint_eq(help_total(&member), 0);
}
END_TEST

static void body_joins_itself(void)
{
	struct ledger own;
	struct member self;

	if (ledger_open(help_dir, HELP_UUID, &own, NULL) != 0 ||
	    ledger_join(&own, "train", NULL, &cap8, &self, NULL) != 0)
		_exit(1);
	if (self.slot == member.slot || ledger_charge(&self, CHARGE_LINEAR, 7 * GIB, NULL) != 0)
		_exit(2);
	if (ledger_charge(&self, CHARGE_LINEAR, GIB, NULL) != -ENOMEM)
		_exit(3); /* the parent holds one */
}

START_TEST(a_child_that_joins_has_a_slot_of_its_own)
{
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, GIB, NULL), 0);
	in_child(_i, body_joins_itself);
	ck_assert_uint_eq(help_total(&member), 8 * GIB); /* nobody has looked yet */
	ck_assert_uint_eq(ledger_reap(&ledger), 1);
	ck_assert_uint_eq(help_total(&member), GIB);
}
END_TEST

static void end_by_daemon(struct help_child *child)
{
	pid_t pid = fork();

	if (pid == 0) {
		setsid();
		if (fork() == 0) {
			help_child_says(child, getpid());
			for (;;)
				pause(); /* with every descriptor it inherited */
		}
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

START_TEST(a_daemon_left_behind_does_not_hold_its_parents_charge)
{
	struct help_child child;
	int daemon;

	child_charges(&child, end_by_daemon);
	close(child.to);
	daemon = help_child_said(&child);
	waitpid(child.pid, NULL, 0);
	check_freed();
	ck_assert_int_eq(kill(daemon, SIGKILL), 0);
}
END_TEST

static void *thread_joins(void *arg)
{
	struct member *self = arg;

	help_join(&ledger, "train", &cap8, self);
	return NULL;
}

START_TEST(a_service_thread_that_ends_frees_the_slot_and_the_process_notices)
{
	struct member other;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, thread_joins, &other), 0);
	pthread_join(thread, NULL);
	ck_assert(!slot_alive(&ledger, other.slot));
	/* It may still charge within its own cap, and says that it is lost. */
	ck_assert_int_eq(ledger_charge(&other, CHARGE_LINEAR, 8 * GIB, NULL), 0);
	ck_assert_int_eq(ledger_charge(&other, CHARGE_LINEAR, 1, NULL), -ENOMEM);
	ck_assert_uint_eq(other.lost, 1);
	ck_assert_uint_eq(help_total(&member), 0);
	/* Another thread takes over: everything is counted again, above the cap if it must be. */
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, GIB, NULL), 0);
	ck_assert_int_eq(member_tend(&other, NULL), 0);
	ck_assert_uint_eq(help_total(&member), 9 * GIB);
	ledger_refund(&other, CHARGE_LINEAR, 8 * GIB);
	ck_assert_uint_eq(help_total(&member), GIB);
	ledger_leave(&other);
}
END_TEST

START_TEST(a_slot_reused_by_the_same_tid_is_another_owners)
{
	uint32_t generation;
	struct member other;
	unsigned slot;

	help_join(&ledger, "train", &cap8, &other);
	slot = other.slot;
	generation = other.generation;
	ledger_charge(&other, CHARGE_LINEAR, GIB, NULL);
	ledger_leave(&other);
	do {
		help_join(&ledger, "train", &cap8, &other);
		if (other.slot != slot)
			ledger_leave(&other);
	} while (other.slot != slot);
	ck_assert_uint_gt(other.generation, generation);
	ck_assert_uint_eq(help_total(&member), 0);
	ledger_leave(&other);
}
END_TEST

/* From here on set_robust_list(2) fails in this process, as in a sandbox that does not know it. */
static void forbid_robust_lists(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_set_robust_list, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		_exit(77);
}

static void child_without_lists(struct help_child *child, const char *group)
{
	struct ledger own;
	struct member self;

	forbid_robust_lists();
	help_open(&own);
	help_join(&own, group, &cap8, &self);
	help_child_says(child, (self.mark & LIVE_BY_LOCK) &&
				       ledger_charge(&self, CHARGE_LINEAR, 6 * GIB, NULL) == 0);
	help_child_waits(child);
	ledger_leave(&self);
	ledger_close(&own);
	_exit(0);
}

START_TEST(without_robust_lists_a_byte_lock_tells_the_dead_from_the_stopped)
{
	struct help_child child;

	if (help_child(&child) == 0)
		child_without_lists(&child, "train");
	ck_assert_int_eq(help_child_said(&child), 1);
	kill(child.pid, SIGSTOP);
	waitpid(child.pid, NULL, WUNTRACED);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 6 * GIB, NULL), -ENOMEM);
	ck_assert_uint_eq(help_total(&member), 6 * GIB);
	kill(child.pid, SIGKILL);
	help_child_is_zombie(&child);
	check_freed();
	help_child_end(&child);
}
END_TEST

START_TEST(without_robust_lists_groups_are_made_and_left)
{
	static const char *const groups[] = {"", "other", "train"};
	struct help_child child;

	if (help_child(&child) == 0)
		child_without_lists(&child, groups[_i]);
	ck_assert_int_eq(help_child_said(&child), 1);
	ck_assert_int_eq(help_child_end(&child), 0);
	check_freed();
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("live");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, exit_and_a_crash_give_back_what_was_held, 0, 2);
	tcase_add_test(tcase, exec_gives_back_although_the_pid_lives_on);
	tcase_add_test(tcase, a_zombie_holds_nothing);
	tcase_add_loop_test(tcase, no_kind_of_child_touches_its_parents_charge, 0, 3);
	tcase_add_loop_test(tcase, a_child_that_joins_has_a_slot_of_its_own, 0, 2);
	tcase_add_test(tcase, a_daemon_left_behind_does_not_hold_its_parents_charge);
	tcase_add_test(tcase, a_service_thread_that_ends_frees_the_slot_and_the_process_notices);
	tcase_add_test(tcase, a_slot_reused_by_the_same_tid_is_another_owners);
	tcase_add_test(tcase, without_robust_lists_a_byte_lock_tells_the_dead_from_the_stopped);
	tcase_add_loop_test(tcase, without_robust_lists_groups_are_made_and_left, 0, 3);
	return help_run("ledger: the living and the dead", tcase);
}
