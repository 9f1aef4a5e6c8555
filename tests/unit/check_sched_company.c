/*
 * The scheduler in the virtual-time model, in good and in bad company: streams, kernels of all lengths, gaps, many groups,
 * caps that change, holders that stop, die or never end, and jobs on two devices that wait for themselves.
 *
 * No test varies the number of multiprocessors: neither the meter (time from the device's clock) nor the bucket (time) knows
 * it, so there is nothing that could depend on it.
 */
#include "sched_help.h"

static struct world w2;

static void loop(struct process_model *p, uint64_t kernel_ns, unsigned burst, uint64_t think_ns)
{
	p->kernel_ns = kernel_ns;
	p->burst = burst;
	p->think_ns = think_ns;
	p->launch_ns = 4000;
}

/* ---- one capped process: every window, every shape ----------------------------------------------------- */

static const uint32_t caps[] = {100, 1000, 3000, 5000, 9900, 10000};
static const uint64_t lengths[] = {66000, 570000, 5600000};

START_TEST(every_second_of_a_minute_holds_the_cap_and_none_stands_still)
{
	uint32_t cap = caps[_i / 3];
	uint64_t ns = lengths[_i % 3];
	double want = cap / 100.0, grain = 0.8 + (double)ns / 1e7, total = 0;
	struct process_model *p = add("a", cap, 100);

	deep(p, ns, 16);
	world_run(&w, 5 * SECOND);
	for (int i = 0; i < 60; i++) {
		double got = share_over(p, SECOND);

		within(got, want - grain - 0.2, want + grain + 0.2);
		ck_assert_uint_le(p->pause_ns, ns * 10000 / cap + 220 * MS);
		total += got / 60;
	}
	within(total, want - 0.2, want + 0.2);
}
END_TEST

static const uint64_t gaps_ms[] = {1, 10, 100, 500, 2000};

/* However long it idled, a second holds its share, the credit and one kernel at most. */
START_TEST(pauses_save_up_no_more_than_the_credit)
{
	struct process_model *p = add("a", 3000, 100);

	loop(p, 570000, 900, gaps_ms[_i] * MS); /* 1.7 s at its cap */
	world_run(&w, 3 * SECOND);
	for (int i = 0; i < 20; i++)
		within(share_over(p, SECOND), 0, 30 + 0.8 + 0.06 + 0.1);
}
END_TEST

/* Beside a competitor as well, though what is waited for a turn may be had later. */
START_TEST(pauses_beside_others_save_up_no_more_than_the_credit)
{
	struct process_model *p = add("a", 2000, 100);

	loop(p, 570000, 175, 600 * MS); /* half a second at its cap */
	loop(add("b", 0, 100), 570000, 1, 4000);
	world_run(&w, 3 * SECOND);
	for (int i = 0; i < 100; i++)
		within(share_over(p, 100 * MS), 0, 20 + 8 + 3 + 0.6);
}
END_TEST

START_TEST(kernels_of_four_lengths_in_turn_hold_the_cap)
{
	static const uint64_t shapes[] = {10000, 94000, 2000000, 20000000};
	struct process_model *p = add("a", 3000, 100);

	deep(p, 0, 8);
	memcpy(p->shapes, shapes, sizeof(shapes));
	world_run(&w, 5 * SECOND);
	within(share_over(p, 20 * SECOND), 29.5, 30.5);
}
END_TEST

static const struct {
	uint64_t ns;
	uint32_t cap;
} extremes[] = {
	{1000, 1000},	    {1000, 2000},	{1000000, 5000},
	{1000000000, 5000}, {1000000000, 9000}, {5000000000, 5000},
};

/* A graph launch is a long kernel: the same rows stand for graphs of as many kernels as one likes. */
START_TEST(kernels_from_a_microsecond_to_five_seconds_hold_the_cap)
{
	uint64_t ns = extremes[_i].ns, span = 20 * SECOND > 40 * ns ? 20 * SECOND : 40 * ns;
	double want = extremes[_i].cap / 100.0, grain = 100.0 * (double)ns / (double)span + 0.3;
	struct process_model *p = add("a", extremes[_i].cap, 100);

	deep(p, ns, 4);
	world_run(&w, 3 * SECOND + 20 * ns * 10000 / extremes[_i].cap);
	within(share_over(p, span), want - grain, want + grain);
}
END_TEST

/*
 * A context that stands at a gate costs the runner a twentieth. What is held back by its cap looks idle half of the time;
 * its host is ahead of the device all the same, and loses nothing when it waits.
 */
START_TEST(a_queue_at_its_cap_waits_on_the_host)
{
	struct process_model *p = add("a", 3000, 100), *other = add("b", 6000, 100);
	unsigned gated = 0;

	deep(p, lengths[_i], 16);
	deep(other, lengths[_i], 16);
	world_run(&w, SECOND);
	for (int i = 0; i < 1000; i++) {
		world_run(&w, 2 * MS);
		gated += p->sched.closed_launches != 0;
	}
	ck_assert(sched_is_dense(&p->sched));
	ck_assert(sched_is_dense(&other->sched));
	ck_assert_uint_lt(gated, 10);
}
END_TEST

/* ---- many groups --------------------------------------------------------------------------------------- */

START_TEST(eight_groups_share_by_weight)
{
	double got[8], total = 0;

	for (unsigned i = 0; i < 8; i++) {
		char name[2] = {(char)('a' + (int)i), 0};

		deep(add(name, 0, 10u << i), lengths[_i], 16);
	}
	world_run(&w, 3 * SECOND);
	world_reset(&w);
	world_run(&w, 20 * SECOND);
	for (unsigned i = 0; i < 8; i++)
		total += got[i] = (double)w.p[i].busy_ns / 2e8;
	for (unsigned i = 0; i < 8; i++)
		within(100 * got[i] / total, 100.0 * (1 << i) / 255 - 1.5,
		       100.0 * (1 << i) / 255 + 1.5);
	ck_assert_msg(total > 85, "%.1f in all", total);
}
END_TEST

START_TEST(the_least_weight_next_to_the_greatest_has_little_and_not_nothing)
{
	struct process_model *least = add("least", 0, 1), *most = add("most", 0, 10000);

	deep(least, 570000, 16);
	deep(most, 570000, 16);
	world_run(&w, 3 * SECOND);
	within(share_over(most, 20 * SECOND), 95, 100);
	within((double)least->busy_ns / 2e8, 0, 1);
	world_run(&w, 300 * SECOND);
	ck_assert_uint_gt(least->busy_ns, 0);
}
END_TEST

/* Normal work for 6 of every 16 ms; what is left is low's, and normal loses next to nothing. */
START_TEST(low_priority_has_what_is_left_over)
{
	struct process_model *normal = add("serve", 0, 100), *low;
	double alone;

	loop(normal, 200000, 30, 10 * MS);
	world_run(&w, 2 * SECOND);
	alone = share_over(normal, 5 * SECOND);
	low = world_add(&w, "train", 0, 10000, PRIORITY_LOW, SCHED_AUTO);
	deep(low, 66000, 64);
	world_run(&w, 2 * SECOND);
	within(share_over(normal, 5 * SECOND), alone * 0.88, alone * 1.01);
	within((double)low->busy_ns / 5e7, 45, 100 - alone + 3);
}
END_TEST

/* ---- changes, stops and deaths --------------------------------------------------------------------------- */

START_TEST(a_cap_changed_from_80_to_20_holds_within_a_quarter_of_a_second)
{
	struct process_model *p = add("a", 8000, 100);

	deep(p, lengths[_i], 16);
	world_run(&w, 3 * SECOND);
	world_run(&w, 100 * MS); /* until the service thread sees it */
	atomic_store(&p->member.sm_cap_bp, 2000);
	world_run(&w, 150 * MS);
	within(share_over(p, SECOND), 20 - 1.0, 20 + 1.0);
	atomic_store(&p->member.sm_cap_bp, 8000);
	world_run(&w, 150 * MS);
	within(share_over(p, SECOND), 80 - 1.0, 80 + 1.0);
}
END_TEST

START_TEST(a_holder_that_dies_is_followed_within_fifty_milliseconds)
{
	struct process_model *dies = add("dies", 0, 100), *other = add("other", 0, 100);

	deep(dies, lengths[_i], 16);
	deep(other, lengths[_i], 16);
	world_run(&w, 2 * SECOND + (uint64_t)_i * 3 * MS);
	while (!turn_is_ours(&dies->sched.turns))
		world_run(&w, MS);
	world_kill(dies);
	within(share_over(other, 50 * MS), 50, 100);
	within(share_over(other, SECOND), 97, 100);
}
END_TEST

START_TEST(a_stopped_holder_wakes_without_a_turn_and_without_credit)
{
	struct process_model *stops = add("stops", 0, 100), *other = add("other", 0, 100);

	deep(stops, 570000, 16);
	deep(other, 570000, 16);
	world_run(&w, 2 * SECOND);
	while (!turn_is_ours(&stops->sched.turns))
		world_run(&w, MS);
	world_stop(stops);
	within(share_over(other, 2 * SECOND), 95, 100);
	ck_assert_uint_lt(other->pause_ns, 50 * MS);
	ck_assert(!turn_is_ours(&stops->sched.turns));
	world_continue(&w, stops);
	within(share_over(other, SECOND), 40, 56);
	within((double)stops->busy_ns / 1e7, 40, 56);
	ck_assert_uint_lt(other->pause_ns, 60 * MS);
}
END_TEST

/* Its cost is a guess until it is over, in three seconds of its own time. */
START_TEST(a_persistent_kernel_shares_the_device_and_is_paid_for_afterwards)
{
	struct process_model *lasting = add("lasting", 0, 100), *other;

	deep(lasting, 3 * SECOND, 4);
	lasting->launches_max = 1;
	world_run(&w, 10 * MS);
	other = add("other", 0, 100);
	deep(other, 570000, 16);
	within(share_over(other, 2 * SECOND), 40, 97);
	ck_assert_uint_lt(other->pause_ns, 60 * MS);
	world_run(&w, 60 * SECOND);
	ck_assert_uint_eq(lasting->finished, 1);
	within(share_over(other, SECOND), 97, 100);
}
END_TEST

/* ---- two devices ------------------------------------------------------------------------------------------- */

/* Job `name` on both devices: kernel n of either half ends only when the other half's runs too. */
static void job(const char *name, int leads_on_second, int can_gate, struct process_model *ret[2])
{
	ret[0] = add(name, 0, 100);
	ret[1] = world_add(&w2, name, 0, 100, PRIORITY_NORMAL, SCHED_AUTO);
	for (int i = 0; i < 2; i++) {
		deep(ret[i], 300000, 2);
		ret[i]->partner = ret[!i];
		ret[i]->can_gate = can_gate;
	}
	ret[!leads_on_second]->leader = ret[leads_on_second];
}

/* Each device is held by one of the jobs, and each job waits for its half on the other: somebody must let go. */
START_TEST(two_jobs_with_collectives_on_two_devices_both_progress)
{
	struct process_model *a[2], *b[2];

	world_begin(&w2);
	job("a", 0, _i % 2, a);
	job("b", _i / 2, _i % 2,
	    b); /* in the same order, or each first on the device that the other takes last */
	world_run_both(&w, &w2, SECOND);
	world_reset(&w);
	world_reset(&w2);
	world_run_both(&w, &w2, 5 * SECOND);
	for (int i = 0; i < 2; i++) {
		within((double)a[i]->launches / 5, 50, 1e9);
		within((double)b[i]->launches / 5, 50, 1e9);
		ck_assert_uint_lt(a[i]->pause_ns, 200 * MS);
		ck_assert_uint_lt(b[i]->pause_ns, 200 * MS);
	}
	world_end(&w2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched_company");
	TCase *tcase = tcase_create("company");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, every_second_of_a_minute_holds_the_cap_and_none_stands_still, 0,
			    3 * COUNT(caps));
	tcase_add_loop_test(tcase, pauses_save_up_no_more_than_the_credit, 0, COUNT(gaps_ms));
	tcase_add_test(tcase, pauses_beside_others_save_up_no_more_than_the_credit);
	tcase_add_test(tcase, kernels_of_four_lengths_in_turn_hold_the_cap);
	tcase_add_loop_test(tcase, kernels_from_a_microsecond_to_five_seconds_hold_the_cap, 0,
			    COUNT(extremes));
	tcase_add_loop_test(tcase, a_queue_at_its_cap_waits_on_the_host, 0, COUNT(lengths));
	tcase_add_loop_test(tcase, eight_groups_share_by_weight, 0, 2);
	tcase_add_test(tcase, the_least_weight_next_to_the_greatest_has_little_and_not_nothing);
	tcase_add_test(tcase, low_priority_has_what_is_left_over);
	tcase_add_loop_test(tcase, a_cap_changed_from_80_to_20_holds_within_a_quarter_of_a_second,
			    0, 2);
	tcase_add_loop_test(tcase, a_holder_that_dies_is_followed_within_fifty_milliseconds, 0, 2);
	tcase_add_test(tcase, a_stopped_holder_wakes_without_a_turn_and_without_credit);
	tcase_add_test(tcase, a_persistent_kernel_shares_the_device_and_is_paid_for_afterwards);
	tcase_add_loop_test(tcase, two_jobs_with_collectives_on_two_devices_both_progress, 0, 4);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
