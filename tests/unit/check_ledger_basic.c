/*
 * The ledger within one process, and between a parent and its children: joining, charging, caps,
 * the dead.
 */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "ledger_help.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

START_TEST(a_fresh_member_uses_nothing_and_has_no_cap)
{
	struct ledger ledger;
	struct member member;

	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	ck_assert_uint_eq(ledger_group_used(&member), 0);
	ck_assert_uint_eq(ledger_process_used(&member), 0);
	ck_assert_uint_eq(ledger_room(&member), UINT64_MAX);
	ck_assert(member_is_ours(&member));
	ledger_leave(&member);
	ck_assert(!member_is_ours(&member));
	ledger_close(&ledger);
}
END_TEST

START_TEST(others_hold_nothing_until_one_does_and_its_death_changes_that_only_when_it_is_reaped)
{
	struct ledger ledger;
	struct member member;
	int ready[2];
	char byte;
	pid_t pid;

	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	ck_assert(!ledger_others_hold(&member));
	ledger_charge(&member, CHARGE_LINEAR, 700, NULL); /* two granules */
	ck_assert(!ledger_others_hold(&member));
	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		help_open(&ledger);
		help_join(&ledger, "train", NULL, &member);
		ledger_charge(&member, CHARGE_LINEAR, 1, NULL);
		_exit(write(ready[1], "", 1) != 1 || pause());
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	ck_assert(ledger_others_hold(&member));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ck_assert(ledger_others_hold(&member));
	ck_assert_uint_eq(ledger_reap(&ledger), 1);
	ck_assert(!ledger_others_hold(&member));
	close(ready[0]);
	close(ready[1]);
	ledger_leave(&member);
	ledger_close(&ledger);
}
END_TEST

START_TEST(the_short_way_charges_only_what_leaves_enough_and_else_changes_nothing)
{
	struct quota quota = {.mem_bytes = 8 * GIB, .mem_process_bytes = 6 * GIB};
	struct ledger ledger;
	struct member member, other;

	help_open(&ledger);
	help_join(&ledger, "train", &quota, &member);
	ck_assert_int_eq(ledger_charge_far(&member, CHARGE_LINEAR, 4 * GIB, 2 * GIB), 0);
	/* The process's cap leaves a byte too little, then the group's. */
	ck_assert_int_eq(ledger_charge_far(&member, CHARGE_LINEAR, GIB, GIB + 1), -EAGAIN);
	help_join(&ledger, "train", &quota, &other);
	ck_assert_int_eq(ledger_charge_far(&other, CHARGE_POOL, 2 * GIB, 2 * GIB), 0);
	ck_assert_int_eq(ledger_charge_far(&member, CHARGE_LINEAR, GIB, GIB + 1), -EAGAIN);
	ck_assert_int_eq(ledger_charge_far(&member, CHARGE_LINEAR, UINT64_MAX, 0), -EAGAIN);
	ck_assert_int_eq(ledger_charge_far(&member, CHARGE_LINEAR, 512, UINT64_MAX), -EAGAIN);
	ck_assert_uint_eq(ledger_group_used(&member), 6 * GIB);
	ck_assert_uint_eq(ledger_process_used(&member), 4 * GIB);
	ck_assert_uint_eq(ledger.file->slot[member.slot].denials, 0);
	ck_assert_int_eq(ledger_charge_far(&member, CHARGE_LINEAR, GIB, GIB), 0);
	ck_assert_uint_eq(ledger_group_used(&member), 7 * GIB);
	ledger_refund(&member, CHARGE_LINEAR, 5 * GIB);
	/* Limits that have changed are for the long way to read. */
	atomic_fetch_add(&ledger.file->group[member.group].limits_gen, 1);
	ck_assert_int_eq(ledger_charge_far(&member, CHARGE_LINEAR, 512, 0), -EAGAIN);
	member_refresh(&member);
	ck_assert_int_eq(ledger_charge_far(&member, CHARGE_LINEAR, 512, 0), 0);
	/* A slot that is lost, too. */
	atomic_store(&ledger.file->live[member.slot].word, 0);
	ck_assert_int_eq(ledger_charge_far(&member, CHARGE_LINEAR, 512, 0), 0);
	ck_assert(atomic_load(&member.lost));
	ck_assert_int_eq(ledger_charge_far(&member, CHARGE_LINEAR, 512, 0), -EAGAIN);
	ledger_leave(&other);
	ledger_close(&ledger);
}
END_TEST

START_TEST(a_charge_up_to_the_cap_is_taken_and_one_byte_more_is_refused)
{
	struct quota quota = {.mem_bytes = 8 * GIB};
	struct ledger ledger;
	struct member member;
	struct refusal why;

	help_open(&ledger);
	help_join(&ledger, "train", &quota, &member);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 8 * GIB, NULL), 0);
	ck_assert_uint_eq(ledger_room(&member), 0);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 1, &why), -ENOMEM);
	ck_assert_int_eq(why.why, REFUSED_GROUP);
	ck_assert_uint_eq(why.asked_bytes, 1);
	ck_assert_uint_eq(why.used_bytes, 8 * GIB);
	ck_assert_uint_eq(why.cap_bytes, 8 * GIB);
	ck_assert_str_eq(why.group, "train");
	ck_assert_uint_eq(why.members, 1);
	ck_assert_uint_eq(why.largest_pid, (unsigned)getpid());
	ck_assert_uint_eq(why.largest_bytes, 8 * GIB);
	ledger_refund(&member, CHARGE_LINEAR, 8 * GIB);
	ck_assert_uint_eq(ledger_group_used(&member), 0);
	ledger_leave(&member);
	ledger_close(&ledger);
}
END_TEST

START_TEST(any_split_of_charges_and_refunds_comes_back_to_zero)
{
	struct ledger ledger;
	struct member member;
	unsigned i;

	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 7, NULL), 0);
	ck_assert_uint_eq(ledger_process_used(&member), 7000);
	ck_assert_uint_eq(help_total(&member), 7168);
	ledger_refund(&member, CHARGE_LINEAR, 6001);
	ledger_refund(&member, CHARGE_LINEAR, 999);
	ck_assert_uint_eq(help_total(&member), 0);
	ck_assert_uint_eq(ledger_process_used(&member), 0);
	ledger_leave(&member);
	ledger_close(&ledger);
}
END_TEST

/* +1: charged, -1: refunded; what may have been used in between, from 4 MiB on, in MiB. */
START_TEST(what_was_used_between_two_looks_is_bounded)
{
	static const struct {
		int mib[4];
		unsigned least, most, peer_most;
	} rows[] = {
		{{0}, 4, 4, 4},
		{{28}, 4, 32, 32},
		{{-3}, 1, 4, 4},
		{{28, -28}, 0, 32, UINT32_MAX},
		{{-3, 3}, 1, 7, UINT32_MAX},
		{{1, 1, -2, -1}, 1, 6, UINT32_MAX},
	};
	struct member member, other;
	struct used_range range;
	struct used_mark mark;
	struct ledger ledger;
	struct peer peer;

	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	help_join(&ledger, "train", NULL, &other);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 4 * MIB, NULL), 0);
	ledger_used_mark(&member, &mark);
	ck_assert_uint_eq(ledger_peers(&other, &peer, 1), 1);
	for (int i = 0; i < 4; i++) {
		int mib = rows[_i].mib[i];

		if (mib > 0)
			ledger_charge(&member, CHARGE_LINEAR, (unsigned)mib * MIB, NULL);
		else if (mib < 0)
			ledger_refund(&member, CHARGE_LINEAR, (unsigned)-mib * MIB);
	}
	ledger_used_since(&member, &mark, &range);
	ck_assert_uint_eq(range.least, rows[_i].least * MIB);
	ck_assert_uint_eq(range.most, rows[_i].most * MIB);
	ck_assert_uint_eq(ledger_peer_most(&other, &peer),
			  rows[_i].peer_most == UINT32_MAX ? UINT64_MAX : rows[_i].peer_most * MIB);
	ledger_leave(&other);
	ledger_leave(&member);
	ledger_close(&ledger);
}
END_TEST

START_TEST(a_refund_larger_than_the_charge_is_clamped)
{
	struct ledger ledger;
	struct member member;

	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 4 * MIB, NULL), 0);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_ARRAY, 4 * MIB, NULL), 0);
	ledger_refund(&member, CHARGE_LINEAR, 5 * MIB);
	ck_assert_uint_eq(ledger_process_used(&member), 4 * MIB);
	ledger_refund(&member, CHARGE_LINEAR, UINT64_MAX);
	ck_assert_uint_eq(help_total(&member), 4 * MIB);
	ledger_refund(&member, CHARGE_ARRAY, UINT64_MAX);
	ck_assert_uint_eq(help_total(&member), 0);
	ledger_leave(&member);
	ledger_close(&ledger);
}
END_TEST

START_TEST(sizes_that_no_card_has_are_refused_not_wrapped)
{
	static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 511, 1ull << 63, 1ull << 46};
	struct ledger ledger;
	struct member member;
	unsigned i;

	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, GIB, NULL), 0);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, sizes[i], NULL), -ENOMEM);
	ck_assert_uint_eq(help_total(&member), GIB);
	ledger_leave(&member);
	ledger_close(&ledger);
}
END_TEST

START_TEST(a_forced_charge_passes_the_cap_and_leaves_no_room)
{
	struct quota quota = {.mem_bytes = GIB};
	struct ledger ledger;
	struct member member;

	help_open(&ledger);
	help_join(&ledger, "train", &quota, &member);
	ledger_charge_forced(&member, CHARGE_OVERHEAD, GIB + MIB);
	ck_assert_uint_eq(ledger_group_used(&member), GIB + MIB);
	ck_assert_uint_eq(ledger_room(&member), 0);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 1, NULL), -ENOMEM);
	ledger_refund(&member, CHARGE_OVERHEAD, GIB + MIB);
	ck_assert_uint_eq(ledger_room(&member), GIB);
	ledger_leave(&member);
	ledger_close(&ledger);
}
END_TEST

START_TEST(a_process_cap_binds_inside_the_group_cap)
{
	struct quota quota = {.mem_bytes = 4 * GIB, .mem_process_bytes = GIB};
	struct ledger ledger;
	struct member member;
	struct refusal why;

	help_open(&ledger);
	help_join(&ledger, "train", &quota, &member);
	ck_assert_uint_eq(ledger_room(&member), GIB);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, GIB + 1, &why), -ENOMEM);
	ck_assert_int_eq(why.why, REFUSED_PROCESS);
	ck_assert_uint_eq(why.cap_bytes, GIB);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, GIB, &why), 0);
	ledger_leave(&member);
	ledger_close(&ledger);
}
END_TEST

/* A child that joins, charges and reports; then waits to be told to leave, or is killed. */
static void child_holds(const char *group, uint64_t bytes, struct help_child *child)
{
	struct quota quota = {.mem_bytes = 8 * GIB};
	struct ledger ledger;
	struct member member;

	help_open(&ledger);
	help_join(&ledger, group, &quota, &member);
	help_child_says(child, ledger_charge(&member, CHARGE_LINEAR, bytes, NULL));
	help_child_waits(child);
	ledger_leave(&member);
}

START_TEST(what_a_killed_process_held_can_be_taken_at_once)
{
	struct quota quota = {.mem_bytes = 8 * GIB};
	struct help_child child;
	struct ledger ledger;
	struct member member;

	help_open(&ledger);
	if (help_child(&child) == 0) {
		child_holds("train", 6 * GIB, &child);
		_exit(0);
	}
	ck_assert_int_eq(help_child_said(&child), 0);
	help_join(&ledger, "train", &quota, &member);
	ck_assert_uint_eq(ledger_group_used(&member), 6 * GIB);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 6 * GIB, NULL), -ENOMEM);
	kill(child.pid, SIGKILL);
	help_child_is_zombie(&child); /* nobody has waited for it: PIDs would call it alive */
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 6 * GIB, NULL), 0);
	ck_assert_uint_eq(help_total(&member), 6 * GIB);
	help_child_end(&child);
	ledger_leave(&member);
	ledger_close(&ledger);
}
END_TEST

START_TEST(a_stopped_process_keeps_what_it_holds)
{
	struct quota quota = {.mem_bytes = 8 * GIB};
	struct help_child child;
	struct ledger ledger;
	struct member member;
	int status;

	help_open(&ledger);
	if (help_child(&child) == 0) {
		child_holds("train", 6 * GIB, &child);
		_exit(0);
	}
	ck_assert_int_eq(help_child_said(&child), 0);
	kill(child.pid, SIGSTOP);
	waitpid(child.pid, &status, WUNTRACED);
	help_join(&ledger, "train", &quota, &member);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 6 * GIB, NULL), -ENOMEM);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 2 * GIB, NULL), 0);
	kill(child.pid, SIGCONT);
	help_child_end(&child);
	ck_assert_uint_eq(help_total(&member), 2 * GIB);
	ledger_leave(&member);
	ledger_close(&ledger);
}
END_TEST

START_TEST(the_view_shows_groups_and_members)
{
	static struct ledger_view view;
	struct quota quota = {.mem_bytes = 8 * GIB, .sm_bp = 3000};
	struct ledger ledger;
	struct member a, b, c;

	help_open(&ledger);
	help_join(&ledger, "train", &quota, &a);
	help_join(&ledger, "train", NULL, &b);
	help_join(&ledger, "", NULL, &c);
	ledger_charge(&a, CHARGE_LINEAR, GIB, NULL);
	ledger_charge(&b, CHARGE_ARRAY, 2 * GIB, NULL);
	ledger_charge(&c, CHARGE_POOL, 4 * GIB, NULL);
	ledger_view(&ledger, &view);
	ck_assert_str_eq(view.uuid, HELP_UUID);
	ck_assert_uint_eq(view.group_count, 2);
	ck_assert_uint_eq(view.slot_count, 3);
	ck_assert_uint_eq(help_view_group(&view, "train")->used_bytes, 3 * GIB);
	ck_assert_uint_eq(help_view_group(&view, "train")->members, 2);
	ck_assert_uint_eq(help_view_group(&view, "train")->mem_cap_bytes, 8 * GIB);
	ck_assert_uint_eq(help_view_group(&view, "train")->sm_cap_bp, 3000);
	ck_assert_uint_eq(help_view_group(&view, "train")->kind_bytes[CHARGE_ARRAY], 2 * GIB);
	ck_assert_uint_eq(help_view_group(&view, c.name)->used_bytes, 4 * GIB);
	ledger_leave(&a);
	ledger_leave(&b);
	ledger_leave(&c);
	ledger_view(&ledger, &view);
	ck_assert_uint_eq(view.slot_count, 0);
	ledger_close(&ledger);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("basic");

	tcase_add_checked_fixture(tcase, help_setup, help_teardown);
	tcase_add_test(tcase, a_fresh_member_uses_nothing_and_has_no_cap);
	tcase_add_test(
		tcase,
		others_hold_nothing_until_one_does_and_its_death_changes_that_only_when_it_is_reaped);
	tcase_add_test(tcase,
		       the_short_way_charges_only_what_leaves_enough_and_else_changes_nothing);
	tcase_add_test(tcase, a_charge_up_to_the_cap_is_taken_and_one_byte_more_is_refused);
	tcase_add_test(tcase, any_split_of_charges_and_refunds_comes_back_to_zero);
	tcase_add_loop_test(tcase, what_was_used_between_two_looks_is_bounded, 0, 6);
	tcase_add_test(tcase, a_refund_larger_than_the_charge_is_clamped);
	tcase_add_test(tcase, sizes_that_no_card_has_are_refused_not_wrapped);
	tcase_add_test(tcase, a_forced_charge_passes_the_cap_and_leaves_no_room);
	tcase_add_test(tcase, a_process_cap_binds_inside_the_group_cap);
	tcase_add_test(tcase, what_a_killed_process_held_can_be_taken_at_once);
	tcase_add_test(tcase, a_stopped_process_keeps_what_it_holds);
	tcase_add_test(tcase, the_view_shows_groups_and_members);
	return help_run("ledger basics", tcase);
}
