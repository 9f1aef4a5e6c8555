/*
 * The scheduler in the virtual-time model: programs that launch on several streams. Kernels that fill the device follow one
 * another; small ones run side by side.
 */
#include "sched_help.h"

static const uint64_t lengths[] = {66000, 570000, 5600000};

START_TEST(four_streams_share_one_cap)
{
	struct process_model *p = add("a", 2500, 100);

	deep(p, 570000, 64);
	p->streams = 4;
	world_run(&w, 3 * SECOND);
	within(share_over(p, 10 * SECOND), 24.5, 25.5);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_gt(p->stream[i].head, 100);
}
END_TEST

/*
 * What launches are charged is held against how long stretches of them take: whatever a pair of events misreads, and in
 * whatever order the device gets to the streams, the share is the cap.
 */
static const struct {
	uint32_t cap_bp;
	double slack; /* percent */
} caps[] = {{500, 0.3}, {2500, 0.4}, {5000, 0.5}, {9500, 0.5}};
static const uint64_t short_lengths[] = {10000, 66000, 570000};
static const int misreadings[] = {-5, 5, 20};

START_TEST(what_pairs_misread_is_made_good)
{
	struct process_model *p = add("a", caps[_i % 4].cap_bp, 100);
	double cap = (double)caps[_i % 4].cap_bp / 100;

	deep(p, short_lengths[_i / 4 % 3], 600);
	p->misread = misreadings[_i / 12 % 2];
	/* At 5 percent half a millisecond is saved up: not four of the long ones. */
	if (caps[_i % 4].cap_bp == 500 && p->kernel_ns > 100000)
		p->misread = 0;
	world_run(&w, 5 * SECOND);
	within(share_over(p, 5 * SECOND), cap - caps[_i % 4].slack, cap + caps[_i % 4].slack);
}
END_TEST

START_TEST(so_it_is_for_several_streams_in_whatever_order)
{
	struct process_model *p = add("a", caps[_i % 4].cap_bp, 100);
	double cap = (double)caps[_i % 4].cap_bp / 100;

	deep(p, short_lengths[_i / 4 % 3], 600);
	p->streams = 4;
	p->depth_first = _i / 12;
	p->misread = misreadings[1 + _i / 12];
	if (caps[_i % 4].cap_bp == 500 && p->kernel_ns > 100000)
		p->misread = 0;
	world_run(&w, 5 * SECOND);
	within(share_over(p, 5 * SECOND), cap - caps[_i % 4].slack, cap + caps[_i % 4].slack);
}
END_TEST

/* Kernels that fill the card, on four streams each: what a pair of events reads holds the other streams' kernels. */
START_TEST(four_streams_each_lose_nothing_next_to_one_another)
{
	double got[2];

	for (unsigned i = 0; i < 2; i++) {
		struct process_model *p = add(i ? "b" : "a", 0, 100);

		deep(p, lengths[_i], 64);
		p->streams = 4;
	}
	world_run(&w, 3 * SECOND);
	world_reset(&w);
	world_run(&w, 10 * SECOND);
	for (unsigned i = 0; i < 2; i++)
		got[i] = (double)w.p[i].busy_ns / 1e8;
	within(got[0] + got[1], 95, 100);
	within(got[0] / (got[0] + got[1]), 0.49, 0.51);
}
END_TEST

START_TEST(four_streams_and_one_share_by_weight)
{
	struct process_model *p = add("a", 0, 100), *other = add("b", 0, 100);

	deep(p, lengths[_i], 64);
	p->streams = 4;
	deep(other, lengths[_i], 64);
	world_run(&w, 3 * SECOND);
	world_reset(&w);
	world_run(&w, 10 * SECOND);
	within(100.0 * (double)p->busy_ns / (double)(p->busy_ns + other->busy_ns), 49, 51);
}
END_TEST

/* Four small kernels at a time: what counts is that the device works, not the sum of what each kernel took. */
START_TEST(kernels_that_run_side_by_side_are_paid_for_once)
{
	struct process_model *p = add("a", 2500, 100);

	deep(p, lengths[_i], 64);
	p->streams = 4;
	p->small = 1;
	world_run(&w, 3 * SECOND);
	/* What is seen of a stretch ends a little late: less than the cap rather than more. */
	within(share_over(p, 10 * SECOND), 22.5, 25.5);
	/* Four times what one stream could do in that time. */
	within((double)p->launches * (double)lengths[_i] / 1e8, 4 * 21, 4 * 25.5);
}
END_TEST

/* Beside another group, where no stretch is its own. */
START_TEST(kernels_that_run_side_by_side_are_paid_for_once_under_a_cap_and_beside_others)
{
	struct process_model *p = add("a", 3000, 100), *other = add("b", 0, 100);

	deep(p, lengths[_i], 64);
	p->streams = 4;
	p->small = 1;
	deep(other, 570000, 64);
	world_run(&w, 5 * SECOND);
	within(share_over(p, 10 * SECOND), 26, 31);
}
END_TEST

START_TEST(two_programs_of_small_kernels_keep_their_throughput)
{
	double work = 0;

	for (unsigned i = 0; i < 2; i++) {
		struct process_model *p = add(i ? "b" : "a", 0, 100);

		deep(p, lengths[_i], 64);
		p->streams = 4;
		p->small = 1;
	}
	world_run(&w, 3 * SECOND);
	world_reset(&w);
	world_run(&w, 10 * SECOND);
	for (unsigned i = 0; i < 2; i++)
		work += (double)w.p[i].launches * (double)lengths[_i] / 1e8;
	within((double)w.p[0].busy_ns / (double)(w.p[0].busy_ns + w.p[1].busy_ns), 0.49, 0.51);
	within(work, 4 * 92, 4 * 100);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched_streams");
	TCase *tcase = tcase_create("streams");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, four_streams_share_one_cap);
	tcase_add_loop_test(tcase, what_pairs_misread_is_made_good, 0, 24);
	tcase_add_loop_test(tcase, so_it_is_for_several_streams_in_whatever_order, 0, 24);
	tcase_add_loop_test(tcase, four_streams_each_lose_nothing_next_to_one_another, 0, 3);
	tcase_add_loop_test(tcase, four_streams_and_one_share_by_weight, 0, 3);
	tcase_add_loop_test(tcase, kernels_that_run_side_by_side_are_paid_for_once, 0, 2);
	tcase_add_loop_test(
		tcase,
		kernels_that_run_side_by_side_are_paid_for_once_under_a_cap_and_beside_others, 0,
		1);
	tcase_add_loop_test(tcase, two_programs_of_small_kernels_keep_their_throughput, 0, 2);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
