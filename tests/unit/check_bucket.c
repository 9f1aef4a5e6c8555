/*
 * The cap's bucket (src/sched/bucket.c): busy time is paid for in wall time, credit and debt are bounded, and any number
 * of processes share one word.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/config.h"
#include "sched/bucket.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define NOW	     (100 * NS_PER_S)

static const struct {
	uint64_t busy;
	uint32_t cap_bp;
	uint64_t wall;
} prices[] = {
	{0, 3000, 0},
	{3 * NS_PER_MS, 3000, 10 * NS_PER_MS},
	{1, 1, 10000},
	{1, 5000, 2},
	{2, 3000, 6}, /* rounded down: less than a nanosecond is lost in each charge */
	{NS_PER_S, 9900, 1010101010},
	{NS_PER_S, 10000, NS_PER_S}, /* 100 % and no cap cost what they take */
	{NS_PER_S, 0, NS_PER_S},
	{1ull << 50, 1, (1ull << 50) * 10000}, /* 13 days of kernels at 0.01 %: no overflow */
};

START_TEST(busy_time_costs_its_length_divided_by_the_cap)
{
	ck_assert_uint_eq(bucket_wall_ns(prices[_i].busy, prices[_i].cap_bp), prices[_i].wall);
}
END_TEST

START_TEST(a_group_that_begins_owes_nothing_and_has_saved_nothing)
{
	_Atomic uint64_t tat = 0;

	ck_assert_uint_eq(bucket_ready_at(&tat, NOW, 5000, 0), 0);
	bucket_charge(&tat, NOW, NS_PER_MS, 5000, BUCKET_BURST_NS);
	ck_assert_uint_eq(bucket_ready_at(&tat, NOW, 5000, 0), NOW + 2 * NS_PER_MS);
	ck_assert_uint_eq(bucket_ready_at(&tat, NOW + 2 * NS_PER_MS, 5000, 0), 0);
}
END_TEST

START_TEST(debt_of_a_long_kernel_is_repaid_to_the_nanosecond)
{
	_Atomic uint64_t tat = 0;

	bucket_charge(&tat, NOW, 5 * NS_PER_S, 1000, BUCKET_BURST_NS);
	ck_assert_uint_eq(bucket_ready_at(&tat, NOW + NS_PER_S, 1000, 0), NOW + 50 * NS_PER_S);
	ck_assert_uint_eq(bucket_ready_at(&tat, NOW + 50 * NS_PER_S - 1, 1000, 0),
			  NOW + 50 * NS_PER_S);
	ck_assert_uint_eq(bucket_ready_at(&tat, NOW + 50 * NS_PER_S, 1000, 0), 0);
}
END_TEST

/* However long it slept: what may run at once is the burst, and not what was saved up longer ago than 200 ms. */
START_TEST(credit_is_bounded)
{
	static const uint32_t caps[] = {1, 100, 1000, 5000, 9900};
	uint32_t cap = caps[_i];
	_Atomic uint64_t tat = 0;
	uint64_t later = NOW + 3600 * NS_PER_S, at_once = 0, most = 8 * NS_PER_MS;

	bucket_charge(&tat, NOW, NS_PER_MS, cap, BUCKET_BURST_NS);
	while (!bucket_ready_at(&tat, later, cap, 0)) {
		bucket_charge(&tat, later, 10000, cap, BUCKET_BURST_NS);
		at_once += 10000;
	}
	if (200 * NS_PER_MS * cap / 10000 < most)
		most = 200 * NS_PER_MS * cap / 10000;
	ck_assert_msg(at_once >= most && at_once <= most + 20000, "cap %u: %lu ns at once, not %lu",
		      cap, (unsigned long)at_once, (unsigned long)most);
}
END_TEST

START_TEST(a_pause_saves_up_less_than_a_wait_for_others)
{
	_Atomic uint64_t tat = 0, late = NOW + 50 * NS_PER_MS;

	bucket_forget(&tat, NOW, 5000, BUCKET_BURST_NS);
	ck_assert_uint_eq(tat, 0); /* has not begun */
	tat = NOW - 60 * NS_PER_MS;
	bucket_forget(&tat, NOW, 5000, BUCKET_BURST_NS);
	ck_assert_uint_eq(tat, NOW - 2 * BUCKET_BURST_NS);
	bucket_forget(&tat, NOW, 5000, BUCKET_BURST_SHARED_NS);
	ck_assert_uint_eq(tat, NOW - 2 * BUCKET_BURST_NS);
	bucket_forget(&late, NOW, 5000, BUCKET_BURST_NS);
	ck_assert_uint_eq(late, NOW + 50 * NS_PER_MS); /* a debt stays one */
}
END_TEST

START_TEST(any_window_holds_the_cap_and_the_credit_at_most)
{
	_Atomic uint64_t tat = 0;
	uint64_t now = NOW, busy = 0, ends[] = {NOW + NS_PER_S, NOW + 10 * NS_PER_S};

	for (int i = 0; i < COUNT(ends); i++) {
		while (now < ends[i]) {
			uint64_t at = bucket_ready_at(&tat, now, 3000, 0);

			if (at) {
				now = at;
				continue;
			}
			bucket_charge(&tat, now, 94000, 3000, BUCKET_BURST_NS);
			busy += 94000;
			now += 94000;
		}
		ck_assert_uint_le(busy, (ends[i] - NOW) * 3 / 10 + BUCKET_BURST_NS + 94000);
		ck_assert_uint_ge(busy, (ends[i] - NOW) * 3 / 10 - 94000);
	}
}
END_TEST

START_TEST(a_correction_gives_back_what_was_charged_too_much)
{
	_Atomic uint64_t tat = 0;

	bucket_charge(&tat, NOW, 30 * NS_PER_MS, 3000, BUCKET_BURST_NS);
	bucket_charge(&tat, NOW, -21 * (int64_t)NS_PER_MS, 3000, BUCKET_BURST_NS);
	ck_assert_uint_eq(bucket_ready_at(&tat, NOW, 3000, 0), NOW + 30 * NS_PER_MS);
}
END_TEST

START_TEST(a_correction_gives_no_more_credit_than_may_be_saved)
{
	_Atomic uint64_t tat = 0;
	uint64_t floor = NOW - bucket_wall_ns(BUCKET_BURST_NS, 5000);

	bucket_charge(&tat, NOW, NS_PER_MS, 5000, BUCKET_BURST_NS);
	bucket_charge(&tat, NOW, -3600 * (int64_t)NS_PER_S, 5000, BUCKET_BURST_NS);
	ck_assert_uint_eq(atomic_load(&tat), floor);
	bucket_charge(&tat, NOW, -(1ll << 60), 5000, BUCKET_BURST_NS);
	ck_assert_uint_eq(atomic_load(&tat), floor);
}
END_TEST

START_TEST(a_changed_cap_counts_from_the_next_charge)
{
	_Atomic uint64_t tat = 0;

	bucket_charge(&tat, NOW, 8 * NS_PER_MS, 8000, BUCKET_BURST_NS);
	ck_assert_uint_eq(bucket_ready_at(&tat, NOW, 2000, 0), NOW + 10 * NS_PER_MS);
	bucket_charge(&tat, NOW, 2 * NS_PER_MS, 2000, BUCKET_BURST_NS);
	ck_assert_uint_eq(bucket_ready_at(&tat, NOW, 2000, 0), NOW + 20 * NS_PER_MS);
}
END_TEST

/* Device time is what is owed: 300 ms, under a cap of 1 % for 30 s. Credit and damage stay what they are. */
START_TEST(what_is_owed_follows_a_changed_cap)
{
	_Atomic uint64_t word = NOW + 30000 * NS_PER_MS;

	bucket_recap(&word, NOW, 100, 5000);
	ck_assert_uint_eq(word, NOW + 600 * NS_PER_MS);
	bucket_recap(&word, NOW, 5000, QUOTA_SM_NONE);
	ck_assert_uint_eq(word, NOW + 300 * NS_PER_MS);
	bucket_recap(&word, NOW, QUOTA_SM_NONE, 100);
	ck_assert_uint_eq(word, NOW + 30000 * NS_PER_MS);
	bucket_recap(&word, NOW, 10000, 1);
	ck_assert_uint_eq(word, NOW + BUCKET_DEBT_MAX_NS);
	word = NOW - 5;
	bucket_recap(&word, NOW, 100, 5000);
	ck_assert_uint_eq(word, NOW - 5);
	word = NOW + BUCKET_DEBT_MAX_NS + 1;
	bucket_recap(&word, NOW, 100, 5000);
	ck_assert_uint_eq(word, NOW + BUCKET_DEBT_MAX_NS + 1);
}
END_TEST

START_TEST(who_must_wait_next_to_others_saves_up_a_batch_first)
{
	_Atomic uint64_t tat = 0;

	bucket_charge(&tat, NOW, NS_PER_MS, 5000, BUCKET_BURST_NS);
	ck_assert_uint_eq(bucket_ready_at(&tat, NOW, 5000, 3 * NS_PER_MS), NOW + 8 * NS_PER_MS);
	/* Not when nothing is owed, and never more than half of what may be saved, or it would wait for ever. */
	ck_assert_uint_eq(bucket_ready_at(&tat, NOW + 2 * NS_PER_MS, 5000, 3 * NS_PER_MS), 0);
	ck_assert_uint_eq(bucket_ready_at(&tat, NOW, 5000, NS_PER_S),
			  NOW + 2 * NS_PER_MS + BUCKET_BURST_NS);
}
END_TEST

START_TEST(a_word_from_beyond_the_longest_debt_is_damage_and_holds_nobody)
{
	_Atomic uint64_t tat = UINT64_MAX;

	ck_assert_uint_eq(bucket_ready_at(&tat, NOW, 3000, 0), 0);
	bucket_charge(&tat, NOW, NS_PER_MS, 3000, BUCKET_BURST_NS);
	ck_assert_uint_le(atomic_load(&tat), NOW + bucket_wall_ns(NS_PER_MS, 3000));
	ck_assert_uint_ge(atomic_load(&tat), NOW - BUCKET_BURST_WALL_NS);
}
END_TEST

START_TEST(a_clock_that_began_just_now_does_not_wrap)
{
	_Atomic uint64_t tat = 0;

	bucket_charge(&tat, 5, 1, 3000, BUCKET_BURST_NS);
	bucket_charge(&tat, 5, -1000000, 3000, BUCKET_BURST_NS);
	ck_assert_uint_eq(atomic_load(&tat), 0);
	ck_assert_uint_eq(bucket_ready_at(&tat, 5, 3000, 0), 0);
}
END_TEST

#define CHARGES 200000

static _Atomic uint64_t shared_word;

static void *charge_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < CHARGES; i++)
		bucket_charge(&shared_word, NOW, 3, 3000, BUCKET_BURST_NS);
	return NULL;
}

START_TEST(no_charge_is_lost_between_threads)
{
	pthread_t threads[4];

	atomic_store(&shared_word, NOW);
	for (int i = 0; i < COUNT(threads); i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, charge_often, NULL), 0);
	for (int i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(atomic_load(&shared_word), NOW + 10ull * CHARGES * COUNT(threads));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bucket");
	TCase *tcase = tcase_create("bucket");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tcase, busy_time_costs_its_length_divided_by_the_cap, 0, COUNT(prices));
	tcase_add_test(tcase, a_group_that_begins_owes_nothing_and_has_saved_nothing);
	tcase_add_test(tcase, debt_of_a_long_kernel_is_repaid_to_the_nanosecond);
	tcase_add_loop_test(tcase, credit_is_bounded, 0, 5);
	tcase_add_test(tcase, a_pause_saves_up_less_than_a_wait_for_others);
	tcase_add_test(tcase, any_window_holds_the_cap_and_the_credit_at_most);
	tcase_add_test(tcase, a_correction_gives_back_what_was_charged_too_much);
	tcase_add_test(tcase, a_correction_gives_no_more_credit_than_may_be_saved);
	tcase_add_test(tcase, a_changed_cap_counts_from_the_next_charge);
	tcase_add_test(tcase, what_is_owed_follows_a_changed_cap);
	tcase_add_test(tcase, who_must_wait_next_to_others_saves_up_a_batch_first);
	tcase_add_test(tcase, a_word_from_beyond_the_longest_debt_is_damage_and_holds_nobody);
	tcase_add_test(tcase, a_clock_that_began_just_now_does_not_wrap);
	tcase_add_test(tcase, no_charge_is_lost_between_threads);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
