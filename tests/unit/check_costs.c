/*
 * The cost model (src/sched/costs.c): which launches are timed, what is believed of a sample, and that every launch is
 * paid for once, by guess or not.
 */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "sched/costs.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static struct costs costs;

static uint64_t mean_of(struct cost *cost)
{
	return atomic_load(&cost->mean_ns);
}

/* Launches a kernel of `ns` until `timed` samples were taken, each read at once; the account's total. */
static int64_t launch_until(struct cost *cost, uint64_t ns, unsigned timed, unsigned *ret_launches)
{
	int64_t account = 0;

	*ret_launches = 0;
	while (timed) {
		int sample;
		uint64_t charged = cost_launch(cost, &sample);

		account += (int64_t)charged;
		++*ret_launches;
		if (sample) {
			account += cost_sampled(cost, ns, charged, 0);
			timed--;
		}
	}
	return account;
}

/* ---- the table --------------------------------------------------------------------------------------- */

START_TEST(a_kind_keeps_its_entry_and_another_gets_its_own)
{
	struct cost *first[1000];

	for (uint64_t i = 0; i < 1000; i++)
		first[i] = costs_find(&costs, i * 64 + 1);
	for (uint64_t i = 0; i < 1000; i++) {
		ck_assert_ptr_eq(costs_find(&costs, i * 64 + 1), first[i]);
		ck_assert_uint_eq(atomic_load(&first[i]->key), i * 64 + 1);
	}
}
END_TEST

START_TEST(a_full_table_serves_every_kind_from_its_last_entry)
{
	struct cost *cost = NULL;

	for (uint64_t i = 1; i <= 4 * COSTS_ENTRIES; i++) {
		cost = costs_find(&costs, i);
		ck_assert(cost >= costs.entries && cost < costs.entries + COSTS_ENTRIES);
	}
	ck_assert_ptr_eq(cost, &costs.entries[COSTS_ENTRIES - 1]);
}
END_TEST

static void *find_all(void *arg)
{
	struct cost **found = arg;

	for (uint64_t i = 0; i < 500; i++)
		found[i] = costs_find(&costs, (i + 1) * 977);
	return NULL;
}

START_TEST(threads_that_meet_a_kind_at_once_share_its_entry)
{
	static struct cost *found[4][500];
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, find_all, found[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < 4; i++)
		for (int k = 0; k < 500; k++)
			ck_assert_ptr_eq(found[i][k], found[0][k]);
}
END_TEST

/* ---- which launches are timed -------------------------------------------------------------------------- */

START_TEST(the_very_first_launch_is_not_timed_and_the_next_four_are)
{
	struct cost *cost = costs_find(&costs, 1);
	int sample;

	ck_assert_uint_eq(cost_launch(cost, &sample), COST_GUESS_NS);
	ck_assert(!sample);
	for (unsigned i = 0; i < COST_EARLY; i++) {
		uint64_t charged = cost_launch(cost, &sample);

		ck_assert(sample);
		cost_sampled(cost, 94000, charged, 0);
	}
	cost_launch(cost, &sample);
	cost_launch(cost, &sample);
	ck_assert(!sample);
}
END_TEST

static const struct {
	uint64_t ns;
	unsigned early_gap, steady_gap; /* launches from one sample to the next */
} lengths[] = {
	{1000, 32, 128}, {10000, 32, 128}, {94000, 21, 21},
	{570000, 3, 3},	 {2000000, 1, 1},  {5000000000, 1, 1},
};

START_TEST(short_kernels_are_timed_seldom_and_long_ones_always)
{
	struct cost *cost = costs_find(&costs, 1);
	unsigned launches;

	launch_until(cost, lengths[_i].ns, COST_EARLY + 1, &launches);
	launch_until(cost, lengths[_i].ns, 1, &launches);
	ck_assert_uint_eq(launches, lengths[_i].early_gap);
	launch_until(cost, lengths[_i].ns, COST_STEADY, &launches);
	launch_until(cost, lengths[_i].ns, 1, &launches);
	ck_assert_uint_eq(launches, lengths[_i].steady_gap);
}
END_TEST

START_TEST(a_sample_that_failed_is_taken_again_soon)
{
	struct cost *cost = costs_find(&costs, 1);
	unsigned launches;
	int sample;

	launch_until(cost, 10000, COST_STEADY + 10, &launches);
	cost_sample_failed(cost);
	cost_launch(cost, &sample);
	ck_assert(!sample);
	cost_launch(cost, &sample);
	ck_assert(sample);
}
END_TEST

/* ---- the account ----------------------------------------------------------------------------------------- */

START_TEST(every_launch_of_a_steady_kernel_is_paid_for_exactly_once)
{
	struct cost *cost = costs_find(&costs, 1);
	unsigned launches;
	int64_t account = launch_until(cost, lengths[_i].ns, 40, &launches);

	ck_assert_msg(account == (int64_t)(lengths[_i].ns * launches), "%u launches of %lu ns: %ld",
		      launches, (unsigned long)lengths[_i].ns, (long)account);
}
END_TEST

/* A deep queue: ten are under way before the first sample is read, and each is settled then. */
START_TEST(launches_charged_by_guess_are_settled_by_the_first_sample)
{
	struct cost *cost = costs_find(&costs, 1);
	int64_t account = 0;
	uint64_t charged = 0;
	int sample, timed = 0;

	for (int i = 0; i < 10; i++) {
		uint64_t cost_ns = cost_launch(cost, &sample);

		account += (int64_t)cost_ns;
		if (sample) {
			charged = cost_ns;
			timed++;
		}
	}
	ck_assert_int_eq(timed, 1);
	account += cost_sampled(cost, 20000000, charged, 0);
	ck_assert_int_eq(account, 10 * 20000000);
}
END_TEST

/* With a neighbour a sample may hold his slice: each better one corrects what was charged, a clean one for good. */
START_TEST(guesses_are_corrected_at_every_better_bound_and_for_good_by_a_clean_sample)
{
	static const struct {
		uint64_t measured, mean;
		int shared;
	} samples[] = {{3000000, 3000000, 1},
		       {570000, 570000, 1},
		       {2700000, 570000, 1},
		       {500000, 500000, 0}};
	struct cost *cost = costs_find(&costs, 1);
	int64_t account = 0;
	unsigned launches = 0;
	int sample;

	for (; launches < 6; launches++)
		account += (int64_t)cost_launch(cost, &sample);
	/* The second of them was the timed one: it is not among the guesses until its sample is back. */
	ck_assert_uint_eq(atomic_load(&cost->guessed), 5);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t charged = COST_GUESS_NS;

		if (i) {
			charged = cost_launch(cost, &sample);
			account += (int64_t)charged;
			ck_assert(sample);
			launches++;
		}
		account += cost_sampled(cost, samples[i].measured, charged, samples[i].shared);
		ck_assert_uint_eq(mean_of(cost), samples[i].mean);
		ck_assert_int_eq(account, (int64_t)(launches * samples[i].mean));
	}
	ck_assert_uint_eq(atomic_load(&cost->guessed), 0);
	ck_assert(atomic_load(&cost->sure));
}
END_TEST

START_TEST(upper_bounds_alone_are_believed_after_eight)
{
	struct cost *cost = costs_find(&costs, 1);

	for (unsigned i = 0; i < COST_SURE; i++) {
		ck_assert(!atomic_load(&cost->sure));
		cost_sampled(cost, 600000 + 1000 * i, mean_of(cost), 1);
	}
	ck_assert(atomic_load(&cost->sure));
	ck_assert_uint_eq(mean_of(cost), 600000);
}
END_TEST

/* Matrix products of one grid and several depths: each third is five times as long, and none is to be taken for a fault. */
START_TEST(a_kind_whose_launches_differ_costs_their_mean)
{
	struct cost *cost = costs_find(&costs, 1);
	double sum = 0;

	for (unsigned i = 0; i < 600; i++) {
		cost_sampled(cost, i % 3 ? 20000 : 100000, mean_of(cost), 0);
		if (i >= 300)
			sum += (double)mean_of(cost);
	}
	ck_assert_msg(sum / 300 > 43000 && sum / 300 < 51000, "%.0f", sum / 300);
}
END_TEST

/* Row 0: only timed among others; row 1: timed alone, which is better than what is to be had now. */
START_TEST(a_sample_among_other_streams_is_put_off_but_not_for_ever_and_not_the_first)
{
	unsigned most = _i ? COST_PUT_OFF_CLEAN : COST_PUT_OFF, put_off = 0;
	struct cost *cost = costs_find(&costs, 1);
	int sample;

	ck_assert(!cost_sample_later(cost));
	for (unsigned i = 0; i < 2 * COST_SURE; i++)
		cost_sampled(cost, 94000, cost_launch(cost, &sample), !_i);
	while (cost_sample_later(cost)) {
		put_off++;
		ck_assert_uint_eq(atomic_load(&cost->countdown), 1);
		ck_assert_uint_lt(put_off, most);
	}
	ck_assert_uint_eq(put_off, most - 1);
}
END_TEST

/* What takes a hundred times longer than it did may be another context's slice: the very next launches tell. */
START_TEST(a_doubted_sample_has_the_next_launches_timed)
{
	struct cost *cost = costs_find(&costs, 1);
	unsigned launches;
	int sample;

	launch_until(cost, 20000, 50, &launches);
	for (int i = 0; i < 2; i++) {
		cost_sampled(cost, 20000000, mean_of(cost), 0);
		ck_assert_uint_eq(mean_of(cost), 20000);
		cost_launch(cost, &sample);
		ck_assert(sample);
	}
	cost_sampled(cost, 20000000, mean_of(cost), 0);
	ck_assert_uint_gt(mean_of(cost), 2000000);
}
END_TEST

/* A graph's handle is given out again, for another graph. */
START_TEST(what_a_handle_meant_is_charged_until_the_new_one_is_timed)
{
	struct cost *cost = costs_find(&costs, 1);
	unsigned launches;
	int sample;

	launch_until(cost, 20000, 50, &launches);
	costs_doubt(&costs, 1);
	ck_assert_uint_eq(cost_launch(cost, &sample), 20000);
	ck_assert(!sample);
	ck_assert_uint_eq(cost_launch(cost, &sample), 20000);
	ck_assert(sample);
	/* Both were charged too little. */
	ck_assert_int_eq(cost_sampled(cost, 5000000, 20000, 0), 2 * (5000000 - 20000));
	ck_assert_uint_eq(mean_of(cost), 5000000);
}
END_TEST

START_TEST(a_long_kernel_that_varies_is_charged_what_was_measured)
{
	struct cost *cost = costs_find(&costs, 1);
	int64_t account = 0, truth = 0;
	unsigned launches;

	launch_until(cost, 10000000, 10, &launches);
	for (int i = 0; i < 100; i++) {
		uint64_t ns = i % 2 ? 8000000 : 12000000, charged;
		int sample;

		charged = cost_launch(cost, &sample);
		ck_assert(sample);
		account += (int64_t)charged + cost_sampled(cost, ns, charged, 0);
		truth += (int64_t)ns;
	}
	ck_assert_int_eq(account, truth);
}
END_TEST

/* ---- what is believed ---------------------------------------------------------------------------------- */

START_TEST(the_mean_follows_a_kernel_whose_data_change)
{
	struct cost *cost = costs_find(&costs, 1);
	unsigned launches;

	launch_until(cost, 100000, 20, &launches);
	ck_assert_uint_eq(mean_of(cost), 100000);
	launch_until(cost, 60000, 40, &launches);
	ck_assert_msg(mean_of(cost) < 61000, "still %lu", (unsigned long)mean_of(cost));
	launch_until(cost, 110000, 40, &launches);
	ck_assert_msg(mean_of(cost) > 109000, "still %lu", (unsigned long)mean_of(cost));
}
END_TEST

START_TEST(one_sample_far_too_high_is_another_contexts_slice_and_three_are_the_truth)
{
	struct cost *cost = costs_find(&costs, 1);
	unsigned launches;

	launch_until(cost, 100000, 20, &launches);
	ck_assert_int_eq(cost_sampled(cost, 2190000, 100000, 0), 0);
	ck_assert_int_eq(cost_sampled(cost, 2190000, 100000, 0), 0);
	ck_assert_uint_eq(mean_of(cost), 100000);
	/* A good one in between begins the count anew. */
	cost_sampled(cost, 100000, 100000, 0);
	cost_sampled(cost, 2190000, 100000, 0);
	cost_sampled(cost, 2190000, 100000, 0);
	ck_assert_uint_eq(mean_of(cost), 100000);
	cost_sampled(cost, 2190000, 100000, 0);
	ck_assert_uint_gt(mean_of(cost), 300000);
}
END_TEST

START_TEST(a_sample_next_to_others_lowers_the_mean_at_once_and_raises_it_little)
{
	struct cost *cost = costs_find(&costs, 1);
	unsigned launches;
	uint64_t before;

	launch_until(cost, 100000, 20, &launches);
	cost_sampled(cost, 150000, 100000, 1);
	ck_assert_uint_le(mean_of(cost), 100000 + 50000 / 64);
	before = mean_of(cost);
	cost_sampled(cost, 60000, before, 1);
	ck_assert_uint_le(mean_of(cost), before - 40000 / 8);
}
END_TEST

/* 570 us alone; next to a neighbour half of the samples hold a slice of his. The account stays within 2 %. */
START_TEST(a_neighbours_slices_in_the_samples_are_not_charged)
{
	struct cost *cost = costs_find(&costs, 1);
	unsigned launches, n = 0;
	int64_t account = 0;

	launch_until(cost, 570000, 10, &launches);
	for (int i = 0; i < 3000; i++, n++) {
		int sample;
		uint64_t charged = cost_launch(cost, &sample);

		account += (int64_t)charged;
		if (sample)
			account +=
				cost_sampled(cost, i % 2 ? 570000 : 570000 + 2230000, charged, 1);
	}
	ck_assert_msg(account < (int64_t)n * 570000 * 102 / 100 &&
			      account > (int64_t)n * 570000 * 98 / 100,
		      "%.1f us a launch", (double)account / n / 1e3);
}
END_TEST

START_TEST(a_sample_of_nothing_is_no_division_by_zero_and_no_unknown_kind)
{
	struct cost *cost = costs_find(&costs, 1);
	unsigned launches;
	int sample;

	launch_until(cost, 0, 5, &launches);
	ck_assert_uint_ge(mean_of(cost), 1);
	ck_assert_uint_lt(cost_launch(cost, &sample), 10);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("costs");
	TCase *tcase = tcase_create("costs");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, a_kind_keeps_its_entry_and_another_gets_its_own);
	tcase_add_test(tcase, a_full_table_serves_every_kind_from_its_last_entry);
	tcase_add_test(tcase, threads_that_meet_a_kind_at_once_share_its_entry);
	tcase_add_test(tcase, the_very_first_launch_is_not_timed_and_the_next_four_are);
	tcase_add_loop_test(tcase, short_kernels_are_timed_seldom_and_long_ones_always, 0,
			    COUNT(lengths));
	tcase_add_test(tcase, a_sample_that_failed_is_taken_again_soon);
	tcase_add_loop_test(tcase, every_launch_of_a_steady_kernel_is_paid_for_exactly_once, 0,
			    COUNT(lengths));
	tcase_add_test(tcase, launches_charged_by_guess_are_settled_by_the_first_sample);
	tcase_add_test(tcase,
		       guesses_are_corrected_at_every_better_bound_and_for_good_by_a_clean_sample);
	tcase_add_test(tcase, upper_bounds_alone_are_believed_after_eight);
	tcase_add_test(tcase, a_kind_whose_launches_differ_costs_their_mean);
	tcase_add_loop_test(
		tcase, a_sample_among_other_streams_is_put_off_but_not_for_ever_and_not_the_first,
		0, 2);
	tcase_add_test(tcase, a_doubted_sample_has_the_next_launches_timed);
	tcase_add_test(tcase, what_a_handle_meant_is_charged_until_the_new_one_is_timed);
	tcase_add_test(tcase, a_long_kernel_that_varies_is_charged_what_was_measured);
	tcase_add_test(tcase, the_mean_follows_a_kernel_whose_data_change);
	tcase_add_test(tcase,
		       one_sample_far_too_high_is_another_contexts_slice_and_three_are_the_truth);
	tcase_add_test(tcase, a_sample_next_to_others_lowers_the_mean_at_once_and_raises_it_little);
	tcase_add_test(tcase, a_neighbours_slices_in_the_samples_are_not_charged);
	tcase_add_test(tcase, a_sample_of_nothing_is_no_division_by_zero_and_no_unknown_kind);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
