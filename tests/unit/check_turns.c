/*
 * Turns (src/sched/turns.c): who may take the device and when, by the ledger and the time alone. Several members of this
 * process stand for as many processes.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "ledger/protocol.h"
#include "sched/turns.h"

#define MEMBERS 4
#define START	(100 * NS_PER_S)
#define MS	NS_PER_MS
#define US	NS_PER_US

static struct ledger ledger;
static struct member member[MEMBERS];
static struct turns turns[MEMBERS];
static _Atomic uint64_t clean[MEMBERS];
static uint64_t word[MEMBERS], look;
static unsigned wake, joined;

static void setup(void)
{
	struct error err = {""};

	joined = 0;
	ck_assert_int_eq(
		ledger_open_private("GPU-00000000-0000-0000-0000-000000000000", &ledger, &err), 0);
}

static void teardown(void)
{
	for (unsigned i = 0; i < joined; i++)
		if (atomic_load(&member[i].joined))
			ledger_leave(&member[i]);
	ledger_close(&ledger);
}

static struct turns *join(const char *group, uint32_t weight, enum quota_priority priority)
{
	struct quota asked = {0, 0, 0, weight, priority};
	struct error err = {""};
	unsigned i = joined++;

	ck_assert_msg(ledger_join(&ledger, group, NULL, &asked, &member[i], &err) == 0, "%s",
		      err.text);
	turns[i] = (struct turns){&ledger, ledger.file, member[i].slot, &clean[i]};
	return &turns[i];
}

static void pair(void)
{
	join("a", 100, PRIORITY_NORMAL);
	join("b", 100, PRIORITY_NORMAL);
}

static struct slot_sm *sm(unsigned i)
{
	return &ledger.file->slot[turns[i].slot].sm;
}

static struct group_sm *group_sm(unsigned i)
{
	return &ledger.file->group[member[i].group].sm;
}

static int takes(unsigned i, uint64_t now)
{
	return turn_try(&turns[i], now, &word[i], &look, &wake) == TURN_HELD;
}

static void busy_until(unsigned i, uint64_t at)
{
	atomic_store(&sm(i)->busy_until_ns, at);
}

/* i holds the device from START and has work for a second. */
static void holds(unsigned i)
{
	ck_assert(takes(i, START));
	busy_until(i, START + NS_PER_S);
}

START_TEST(a_free_device_is_taken_at_once_and_for_as_long_as_nobody_asks)
{
	pair();
	ck_assert(takes(0, START));
	ck_assert(turn_is_ours(&turns[0]));
	ck_assert(!turn_is_ours(&turns[1]));
	ck_assert(!turn_contended(&turns[0]));
	ck_assert(turn_contended(&turns[1]));
	ck_assert(takes(0, START + 3600 * NS_PER_S));
	ck_assert(!turn_must_yield(&turns[0], START + 3600 * NS_PER_S, &wake));
	ck_assert_uint_eq(turn_room_at(&turns[0], START, 0), 0);
	ck_assert_uint_eq(atomic_load(&ledger.file->turn.switches), 1);
}
END_TEST

START_TEST(who_asks_first_sets_a_lease_of_ten_milliseconds_from_its_beginning)
{
	pair();
	holds(0);
	ck_assert(!takes(1, START + 4 * MS));
	ck_assert_uint_eq(look, START + TURN_QUANTUM_NS);
	ck_assert_uint_eq(atomic_load(&ledger.file->turn.until_ns), START + TURN_QUANTUM_NS);
	ck_assert(!turn_must_yield(&turns[0], START + TURN_QUANTUM_NS - 1, &wake));
}
END_TEST

START_TEST(a_holder_of_long_ago_must_yield_as_soon_as_somebody_who_comes_first_asks)
{
	pair();
	holds(0);
	turn_charge(&turns[0], MS);
	busy_until(0, START + 60 * NS_PER_S);
	takes(1, START + 50 * NS_PER_S);
	ck_assert_uint_eq(atomic_load(&ledger.file->turn.until_ns), START + 50 * NS_PER_S);
	ck_assert(turn_must_yield(&turns[0], START + 50 * NS_PER_S, &wake));
	ck_assert_uint_eq(wake, turns[1].slot + 1);
}
END_TEST

/* A launch-and-wait loop's gap is not the end of its turn. */
START_TEST(a_holder_is_dry_forty_microseconds_after_its_last_work)
{
	pair();
	holds(0);
	busy_until(0, START + MS);
	ck_assert(!takes(1, START + MS));
	ck_assert_uint_eq(look, START + MS + TURN_GRACE_NS);
	ck_assert(!takes(1, START + MS + TURN_GRACE_NS - 1));
	ck_assert(takes(1, START + MS + TURN_GRACE_NS));
}
END_TEST

START_TEST(work_that_a_thread_still_waits_for_is_late_rather_than_done)
{
	pair();
	holds(0);
	busy_until(0, START + MS);
	atomic_store(&sm(0)->in_sync, 1);
	ck_assert(!takes(1, START + MS + TURN_SYNC_GRACE_NS - 1));
	ck_assert(takes(1, START + MS + TURN_SYNC_GRACE_NS));
}
END_TEST

/* And waited for less long when such work has hung, _i times of late: it may wait for us. */
START_TEST(work_whose_end_a_mark_will_tell_is_not_taken_for_done)
{
	uint64_t patience = TURN_DRAIN_NS >> _i;

	pair();
	holds(0);
	busy_until(0, START + MS);
	atomic_store(&sm(0)->unsure, 1);
	atomic_store(&sm(0)->hung, (uint32_t)_i * TURN_HUNG_STEP);
	ck_assert(!takes(1, START + MS + patience - 1));
	ck_assert(takes(1, START + MS + patience)); /* the mark may never come */
}
END_TEST

START_TEST(who_waits_for_its_cap_is_relieved_without_grace_and_before_its_lease_is_over)
{
	pair();
	holds(0);
	busy_until(0, START + MS);
	takes(1, START);
	turn_rest(&turns[0], &wake);
	ck_assert_uint_eq(wake, turns[1].slot + 1);
	ck_assert(!takes(1, START + MS - 1));
	ck_assert(takes(1, START + MS));
	turn_resume(&turns[0]);
	ck_assert_uint_eq(atomic_load(&sm(0)->resting), 0);
}
END_TEST

START_TEST(past_its_lease_the_next_waits_for_what_is_queued)
{
	pair();
	holds(0);
	turn_charge(&turns[0], MS);
	busy_until(0, START + 13 * MS);
	takes(1, START);
	ck_assert(!takes(1, START + 11 * MS));
	ck_assert_uint_eq(look, START + 13 * MS + TURN_MARGIN_NS);
	ck_assert(!takes(1, START + 13 * MS));
	ck_assert(takes(1, START + 13 * MS + TURN_MARGIN_NS));
}
END_TEST

/* Persistent kernels, collectives whose peer waits for somebody else: the device is shared, nobody hangs. */
START_TEST(work_that_does_not_end_is_shared_with_the_next_ten_milliseconds_past_the_lease)
{
	uint64_t end = START + TURN_QUANTUM_NS + TURN_DRAIN_NS;

	pair();
	holds(0);
	turn_charge(&turns[0], MS);
	busy_until(0, START + 3600 * NS_PER_S);
	atomic_store(&sm(0)->unsure, 1);
	takes(1, START);
	ck_assert(!takes(1, end - 1));
	ck_assert_uint_eq(look, end);
	ck_assert(takes(1, end));
}
END_TEST

START_TEST(a_lease_is_renewed_while_the_holder_comes_first)
{
	pair();
	holds(0);
	turn_charge(&turns[1], 100 * MS);
	takes(1, START);
	ck_assert(!turn_must_yield(&turns[0], START + 10 * MS, &wake));
	ck_assert_uint_eq(atomic_load(&ledger.file->turn.until_ns), START + 20 * MS);
	turn_charge(&turns[0], 200 * MS);
	ck_assert(turn_must_yield(&turns[0], START + 20 * MS, &wake));
	ck_assert_uint_eq(wake, turns[1].slot + 1);
}
END_TEST

START_TEST(a_holder_keeps_leases_while_who_asked_may_only_rest_and_has_none_after)
{
	pair();
	holds(0);
	takes(1, START);
	turn_forget(&turns[1]);
	ck_assert(!turn_must_yield(&turns[0], START + 10 * MS, &wake));
	ck_assert_uint_eq(atomic_load(&ledger.file->turn.until_ns), START + 20 * MS);
	ck_assert(!turn_must_yield(&turns[0], START + TURN_MEMORY_NS + 10 * MS, &wake));
	ck_assert_uint_eq(atomic_load(&ledger.file->turn.until_ns), 0);
}
END_TEST

/* ---- order --------------------------------------------------------------------------------------------- */

START_TEST(a_higher_priority_comes_first_whatever_it_has_had)
{
	join("low", 10000, PRIORITY_LOW);
	join("normal", 100, PRIORITY_NORMAL);
	join("high", 1, PRIORITY_HIGH);
	holds(0);
	turn_charge(&turns[1], NS_PER_S);
	turn_charge(&turns[2], 100 * NS_PER_S);
	ck_assert(!takes(1, START));
	ck_assert(!takes(2, START));
	busy_until(0, START);
	ck_assert(!takes(1, START + MS));
	ck_assert_uint_eq(wake, turns[2].slot + 1);
	ck_assert(takes(2, START + MS));
}
END_TEST

START_TEST(a_higher_priority_gets_the_device_half_a_millisecond_after_it_asks)
{
	join("train", 100, PRIORITY_LOW);
	join("serve", 100, PRIORITY_HIGH);
	holds(0);
	busy_until(0, START + 5 * MS);
	takes(1, START + 4 * MS);
	ck_assert_uint_le(atomic_load(&ledger.file->turn.until_ns),
			  START + 4 * MS + TURN_QUANTUM_HIGH_NS);
	ck_assert(turn_must_yield(&turns[0], START + 4 * MS + TURN_QUANTUM_HIGH_NS, &wake));
	/* And a low one gets no lease out of a high one that is busy. */
	busy_until(0, START + 4 * MS);
	ck_assert(takes(1, START + 5 * MS));
	busy_until(1, START + 60 * MS);
	ck_assert(!takes(0, START + 5 * MS));
	ck_assert(!turn_must_yield(&turns[1], START + 50 * MS, &wake));
}
END_TEST

START_TEST(between_groups_the_least_busy_per_weight_comes_first)
{
	join("a", 100, PRIORITY_NORMAL);
	join("b", 300, PRIORITY_NORMAL);
	join("c", 100, PRIORITY_NORMAL);
	holds(0);
	turn_charge(&turns[1], 60 * MS); /* 20 ms at its weight */
	turn_charge(&turns[2], 30 * MS);
	ck_assert(!takes(1, START));
	ck_assert(!takes(2, START));
	busy_until(0, START);
	ck_assert(!takes(2, START + MS));
	ck_assert_uint_eq(wake, turns[1].slot + 1);
	turn_charge(&turns[1], 40 * MS);
	ck_assert(takes(2, START + MS));
}
END_TEST

START_TEST(within_a_group_the_member_that_had_least_comes_first)
{
	join("a", 100, PRIORITY_NORMAL);
	join("team", 100, PRIORITY_NORMAL);
	join("team", 100, PRIORITY_NORMAL);
	holds(0);
	turn_charge(&turns[1], 5 * MS);
	turn_charge(&turns[2], 3 * MS);
	ck_assert_uint_eq(atomic_load(&group_sm(1)->vtime_ns), 8 * MS);
	takes(1, START);
	takes(2, START);
	busy_until(0, START);
	ck_assert(!takes(1, START + MS));
	ck_assert(takes(2, START + MS));
}
END_TEST

START_TEST(busy_time_counts_by_weight)
{
	join("light", 1, PRIORITY_NORMAL);
	join("heavy", 10000, PRIORITY_NORMAL);
	turn_charge(&turns[0], MS);
	turn_charge(&turns[1], MS);
	ck_assert_uint_eq(atomic_load(&group_sm(0)->vtime_ns), 100 * MS);
	ck_assert_uint_eq(atomic_load(&group_sm(1)->vtime_ns), MS / 100);
}
END_TEST

START_TEST(a_newcomer_starts_ten_milliseconds_behind_the_present_at_most)
{
	pair();
	turn_charge(&turns[0], 3600 * NS_PER_S);
	holds(0);
	takes(1, START + 4 * MS);
	ck_assert_uint_eq(atomic_load(&group_sm(1)->vtime_ns), 3600 * NS_PER_S - TURN_LAG_NS);
	/* What the holder uses up meanwhile is not lost to who waits. */
	turn_charge(&turns[0], 20 * MS);
	takes(1, START + 5 * MS);
	ck_assert_uint_eq(atomic_load(&group_sm(1)->vtime_ns), 3600 * NS_PER_S - TURN_LAG_NS);
}
END_TEST

/* An old holder that happens to be dry when the first competitor comes has still had its hour. */
START_TEST(a_newcomer_between_two_bursts_of_an_old_holder_starts_at_the_present_too)
{
	pair();
	ck_assert(takes(0, START));
	turn_charge(&turns[0], 3600 * NS_PER_S);
	busy_until(0, START + 3600 * NS_PER_S);
	ck_assert(takes(1, START + 3601 * NS_PER_S));
	ck_assert_uint_ge(atomic_load(&group_sm(1)->vtime_ns), 3600 * NS_PER_S - TURN_LAG_NS);
}
END_TEST

START_TEST(one_that_seldom_wants_the_device_is_let_in_after_two_milliseconds)
{
	pair();
	turn_charge(&turns[0], 50 * MS);
	holds(0);
	turn_charge(&turns[0], 10 * MS);
	takes(1, START);
	ck_assert_uint_eq(atomic_load(&ledger.file->turn.until_ns), START + TURN_QUANTUM_MIN_NS);
}
END_TEST

/* ---- the dead, the stopped and the damaged --------------------------------------------------------------- */

START_TEST(a_dead_holder_is_relieved_at_once)
{
	pair();
	holds(0);
	busy_until(0, START + 3600 * NS_PER_S);
	ck_assert(!takes(1, START));
	ledger_leave(&member[0]);
	ck_assert(takes(1, START + 1));
}
END_TEST

START_TEST(a_dead_waiter_is_waited_for_by_nobody)
{
	join("a", 100, PRIORITY_NORMAL);
	join("dead", 100, PRIORITY_HIGH);
	join("b", 100, PRIORITY_NORMAL);
	holds(0);
	takes(1, START);
	takes(2, START);
	ledger_leave(&member[1]);
	busy_until(0, START);
	ck_assert(takes(2, START + MS));
	ck_assert(!turn_must_yield(&turns[2], START + MS + TURN_QUANTUM_NS, &wake));
	ck_assert_uint_eq(wake, 0);
}
END_TEST

START_TEST(a_stopped_holder_that_wakes_finds_its_turn_gone)
{
	uint64_t then;

	pair();
	holds(0);
	then = word[0];
	busy_until(0, START + MS);
	takes(1, START);
	ck_assert(takes(1, START + 2 * MS)); /* 0 does nothing all the while */
	busy_until(1, START + NS_PER_S);
	ck_assert(!turn_is_ours(&turns[0]));
	ck_assert_uint_ne(atomic_load(&ledger.file->turn.owner), then);
	ck_assert(!takes(0, START + 3 * MS));
	/* And even when it has the device again, the word is another. */
	busy_until(1, START + 3 * MS);
	ck_assert(takes(0, START + 5 * MS));
	ck_assert_uint_ne(word[0], then);
}
END_TEST

START_TEST(a_chosen_successor_that_does_not_act_is_passed_over)
{
	join("a", 100, PRIORITY_NORMAL);
	join("stopped", 100, PRIORITY_HIGH);
	join("b", 100, PRIORITY_NORMAL);
	holds(0);
	takes(1, START);
	takes(2, START);
	busy_until(0, START + MS);
	ck_assert(!takes(2, START + MS + TURN_GRACE_NS));
	ck_assert_uint_eq(wake, turns[1].slot + 1);
	ck_assert_uint_le(look, START + MS + TURN_GRACE_NS + TURN_SLOW_NS);
	ck_assert(takes(2, START + 2 * MS));
	/* It asks again when it runs. */
	busy_until(2, START + 3 * MS);
	ck_assert(!takes(1, START + 2 * MS));
	ck_assert(takes(1, START + 4 * MS));
}
END_TEST

START_TEST(a_damaged_turn_page_holds_nobody)
{
	struct turn *turn = &ledger.file->turn;

	pair();
	for (unsigned i = 0; i < 3; i++) {
		atomic_store(&turn->owner, i == 0   ? UINT64_MAX
					   : i == 1 ? 7ull << 16 | 0xffff
						    : LEDGER_SLOTS + 1ull);
		ck_assert(takes(0, START));
	}
	/* A lease from the far future is cut, bits of nobody are cleared. */
	busy_until(0, START + NS_PER_S);
	turn_charge(&turns[0], MS);
	atomic_store(&turn->since_ns, UINT64_MAX - 5);
	atomic_store(&turn->until_ns, UINT64_MAX);
	for (unsigned i = 0; i < LEDGER_SLOTS / 64; i++)
		atomic_fetch_or(&turn->wanting[i], UINT64_MAX);
	ck_assert(!takes(1, START));
	ck_assert_uint_le(atomic_load(&turn->until_ns), START + TURN_QUANTUM_NS);
	ck_assert(takes(1, START + TURN_QUANTUM_NS + TURN_DRAIN_NS + TURN_SLOW_NS));
}
END_TEST

/* ---- room -------------------------------------------------------------------------------------------------- */

START_TEST(while_others_wait_work_is_queued_to_the_end_of_the_lease_or_a_millisecond_ahead)
{
	pair();
	holds(0);
	takes(1, START);
	busy_until(0, START + 2 * MS);
	ck_assert_uint_eq(turn_room_at(&turns[0], START, 1), 0); /* gates: up to the lease's end */
	ck_assert_uint_eq(turn_room_at(&turns[0], START, 0),
			  START + MS + 1); /* waits: 1 ms under way */
	ck_assert_uint_eq(turn_room_at(&turns[0], START + 1500 * US, 0), 0);
	busy_until(0, START + 12 * MS);
	ck_assert_uint_eq(turn_room_at(&turns[0], START, 1), START + TURN_QUANTUM_NS);
}
END_TEST

START_TEST(who_takes_over_counts_from_when_the_contexts_have_changed)
{
	pair();
	holds(0);
	turn_charge(&turns[0], MS);
	busy_until(0, START + 13 * MS);
	takes(1, START);
	ck_assert(takes(1, START + 13 * MS + TURN_MARGIN_NS));
	ck_assert_uint_eq(atomic_load(&sm(1)->busy_until_ns),
			  START + 13 * MS + TURN_MARGIN_NS + TURN_SWITCH_NS);
}
END_TEST

/* ---- alone on the device --------------------------------------------------------------------------------- */

START_TEST(a_turn_that_began_on_an_idle_device_is_alone_until_another_takes_it)
{
	uint64_t alone;

	pair();
	ck_assert_uint_eq(turn_alone(&turns[0]), 0);
	ck_assert_int_eq(turn_try(&turns[0], NS_PER_S, &word[0], &look, &wake), TURN_HELD);
	alone = turn_alone(&turns[0]);
	ck_assert_uint_eq(alone, word[0]);
	ck_assert_uint_eq(turn_alone(&turns[1]), 0);
	/* Idle for long: relieved, and the device was idle for the next one too. */
	turn_try(&turns[1], 2 * NS_PER_S, &word[0], &look, &wake);
	ck_assert(turn_is_ours(&turns[1]));
	ck_assert_uint_eq(turn_alone(&turns[0]), 0);
	ck_assert_uint_eq(turn_alone(&turns[1]), word[0]);
}
END_TEST

START_TEST(a_turn_taken_from_one_whose_work_hangs_is_never_alone)
{
	struct slot_sm *hangs;
	uint64_t now = NS_PER_S;

	pair();
	hangs = &ledger.file->slot[member[0].slot].sm;
	ck_assert_int_eq(turn_try(&turns[0], now, &word[0], &look, &wake), TURN_HELD);
	turn_charge(&turns[0], 20 * MS);
	atomic_store(&hangs->busy_until_ns, now + NS_PER_S);
	while (turn_try(&turns[1], now, &word[0], &look, &wake) != TURN_HELD && now < 2 * NS_PER_S)
		now = look > now ? look : now + MS;
	ck_assert(turn_is_ours(&turns[1]));
	ck_assert_uint_lt(now, NS_PER_S + 100 * MS);
	ck_assert_uint_eq(turn_alone(&turns[1]), 0);
}
END_TEST

START_TEST(what_was_charged_too_much_is_given_back_to_the_virtual_clocks)
{
	struct group *group;
	uint64_t before;

	pair();
	group = &ledger.file->group[member[0].group];
	turn_charge(&turns[0], 10 * MS);
	before = atomic_load(&group->sm.vtime_ns);
	turn_charge(&turns[0], 7 * MS);
	turn_charge(&turns[0], -(int64_t)(7 * MS));
	ck_assert_uint_eq(atomic_load(&group->sm.vtime_ns), before);
	/* Not beyond what the present allows. */
	atomic_store(&ledger.file->turn.vclock_ns, 10 * NS_PER_S);
	atomic_store(&group->sm.vtime_ns, 10 * NS_PER_S);
	turn_charge(&turns[0], -(int64_t)(5 * NS_PER_S));
	ck_assert_uint_eq(atomic_load(&group->sm.vtime_ns), 10 * NS_PER_S - TURN_REFUND_NS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("turns");
	TCase *tcase = tcase_create("turns");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_free_device_is_taken_at_once_and_for_as_long_as_nobody_asks);
	tcase_add_test(tcase, who_asks_first_sets_a_lease_of_ten_milliseconds_from_its_beginning);
	tcase_add_test(tcase,
		       a_holder_of_long_ago_must_yield_as_soon_as_somebody_who_comes_first_asks);
	tcase_add_test(tcase, a_holder_is_dry_forty_microseconds_after_its_last_work);
	tcase_add_test(tcase, work_that_a_thread_still_waits_for_is_late_rather_than_done);
	tcase_add_loop_test(tcase, work_whose_end_a_mark_will_tell_is_not_taken_for_done, 0, 6);
	tcase_add_test(
		tcase,
		who_waits_for_its_cap_is_relieved_without_grace_and_before_its_lease_is_over);
	tcase_add_test(tcase, past_its_lease_the_next_waits_for_what_is_queued);
	tcase_add_test(
		tcase,
		work_that_does_not_end_is_shared_with_the_next_ten_milliseconds_past_the_lease);
	tcase_add_test(tcase, a_lease_is_renewed_while_the_holder_comes_first);
	tcase_add_test(tcase,
		       a_holder_keeps_leases_while_who_asked_may_only_rest_and_has_none_after);
	tcase_add_test(tcase, a_higher_priority_comes_first_whatever_it_has_had);
	tcase_add_test(tcase, a_higher_priority_gets_the_device_half_a_millisecond_after_it_asks);
	tcase_add_test(tcase, between_groups_the_least_busy_per_weight_comes_first);
	tcase_add_test(tcase, within_a_group_the_member_that_had_least_comes_first);
	tcase_add_test(tcase, busy_time_counts_by_weight);
	tcase_add_test(tcase, a_newcomer_starts_ten_milliseconds_behind_the_present_at_most);
	tcase_add_test(tcase,
		       a_newcomer_between_two_bursts_of_an_old_holder_starts_at_the_present_too);
	tcase_add_test(tcase, one_that_seldom_wants_the_device_is_let_in_after_two_milliseconds);
	tcase_add_test(tcase, a_dead_holder_is_relieved_at_once);
	tcase_add_test(tcase, a_dead_waiter_is_waited_for_by_nobody);
	tcase_add_test(tcase, a_stopped_holder_that_wakes_finds_its_turn_gone);
	tcase_add_test(tcase, a_chosen_successor_that_does_not_act_is_passed_over);
	tcase_add_test(tcase, a_damaged_turn_page_holds_nobody);
	tcase_add_test(
		tcase,
		while_others_wait_work_is_queued_to_the_end_of_the_lease_or_a_millisecond_ahead);
	tcase_add_test(tcase, a_turn_that_began_on_an_idle_device_is_alone_until_another_takes_it);
	tcase_add_test(tcase, a_turn_taken_from_one_whose_work_hangs_is_never_alone);
	tcase_add_test(tcase, what_was_charged_too_much_is_given_back_to_the_virtual_clocks);
	tcase_add_test(tcase, who_takes_over_counts_from_when_the_contexts_have_changed);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
