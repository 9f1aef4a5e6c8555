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
	tcase_add_loop_test(tcase, four_streams_each_lose_nothing_next_to_one_another, 0, 3);
	tcase_add_loop_test(tcase, four_streams_and_one_share_by_weight, 0, 3);
	tcase_add_loop_test(tcase, kernels_that_run_side_by_side_are_paid_for_once, 0, 2);
	tcase_add_loop_test(tcase, two_programs_of_small_kernels_keep_their_throughput, 0, 2);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
