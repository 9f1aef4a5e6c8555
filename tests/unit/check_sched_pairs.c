/*
 * The scheduler in the virtual-time model: what two programs get together, against the driver's own time-slicing, which is
 * the same model without turns. Programs as measured on the card: loops that wait for each kernel, deep queues, graphs, and
 * trainings and inference whose host takes longer than their kernels.
 */
#include <stdio.h>

#include "sched/private.h"
#include "sched_help.h"

static const struct program programs[] = {
	{"94 us, wait each", 94000, 4000, 4000, 1, 0},
	{"20 x 10 us, wait", 10000, 4000, 4000, 20, 0},
	{"0.57 ms, wait each", 570000, 4000, 4000, 1, 0},
	{"graph of 20 x 66 us", 1320000, 4000, 4000, 1, 0},
	{"5.6 ms, queue", 5600000, 4000, 0, 0, 16},
	{"training small", 5000, 45000, 100000, 85, 0},	  /* 10 % of the device */
	{"training medium", 3600, 21000, 100000, 330, 0}, /* 17 % */
	{"training large", 32000, 54000, 100000, 300, 0}, /* 59 % */
	{"inference, 5 ms apart", 5000, 27000, 3600000, 50, 0},
};
#define PROGRAMS ((int)(sizeof(programs) / sizeof(programs[0])))

/* Kernels a second of each, over three seconds; the second may be absent. */
static void rates(const struct program *a, const struct program *b, enum sched_mode mode,
		  double ret[2])
{
	world_begin(&w);
	become(world_add(&w, "a", 0, 100, PRIORITY_NORMAL, mode), a);
	if (b)
		become(world_add(&w, "b", 0, 100, PRIORITY_NORMAL, mode), b);
	world_run(&w, 2 * SECOND);
	world_reset(&w);
	world_run(&w, 3 * SECOND);
	for (unsigned i = 0; i < w.count; i++)
		ret[i] = (double)w.p[i].launches / 3;
	world_end(&w);
}

START_TEST(no_pair_gets_less_than_the_drivers_slicing_gives)
{
	const struct program *a = &programs[_i / PROGRAMS], *b = &programs[_i % PROGRAMS];
	double alone[2], rest[2], sliced[2], turns[2], of_slicing;

	if (a > b)
		return;
	rates(a, NULL, SCHED_RATE, alone);
	rates(b, NULL, SCHED_RATE, rest);
	alone[1] = rest[0];
	rates(a, b, SCHED_RATE, sliced);
	rates(a, b, SCHED_AUTO, turns);
	of_slicing = (turns[0] / alone[0] + turns[1] / alone[1]) /
		     (sliced[0] / alone[0] + sliced[1] / alone[1]);
	if (getenv("PAIRS"))
		fprintf(stderr, "%4.2f  %4.2f + %4.2f  driver %4.2f + %4.2f  %s + %s\n", of_slicing,
			turns[0] / alone[0], turns[1] / alone[1], sliced[0] / alone[0],
			sliced[1] / alone[1], a->name, b->name);
	ck_assert_msg(of_slicing > 0.98,
		      "%s + %s: %.2f of what the driver gives (%.2f + %.2f, driver %.2f + %.2f)",
		      a->name, b->name, of_slicing, turns[0] / alone[0], turns[1] / alone[1],
		      sliced[0] / alone[0], sliced[1] / alone[1]);
}
END_TEST

/* Who polls cannot be seen to wait, and seems to need little: it must not be much slower than the driver would have it. */
START_TEST(a_loop_that_polls_gets_what_the_drivers_slicing_gives)
{
	double got[2];

	for (int turns = 0; turns < 2; turns++) {
		world_begin(&w);
		for (int i = 0; i < 2; i++) {
			struct process_model *p =
				world_add(&w, i ? "b" : "a", 0, 100, PRIORITY_NORMAL,
					  turns ? SCHED_AUTO : SCHED_RATE);

			become(p, &programs[_i]);
			p->polls = i == 0 || _i % 2;
		}
		world_run(&w, 2 * SECOND);
		world_reset(&w);
		world_run(&w, 3 * SECOND);
		got[turns] = (double)w.p[0].launches;
		world_end(&w);
	}
	ck_assert_msg(got[1] > 0.9 * got[0], "%s: %.0f launches, the driver %.0f",
		      programs[_i].name, got[1], got[0]);
}
END_TEST

START_TEST(collected_launches_are_run_when_they_are_waited_for_many_old_or_the_last_for_now)
{
	struct sched *sched;
	uint64_t now = 10 * SECOND;

	world_begin(&w);
	sched = &world_add(&w, "a", 0, 100, PRIORITY_NORMAL, SCHED_AUTO)->sched;
	sched->closed_launches = 1;
	sched->closed_ns = 1000;
	sched->closed_since_ns = sched->closed_last_ns = now;
	/* The host may wait in a way that nobody sees: no launch for a while. */
	ck_assert_uint_eq(backlog_ripe_at(sched, now), now + SCHED_BATCH_QUIET_NS);
	ck_assert_uint_eq(backlog_ripe_at(sched, now + SCHED_BATCH_QUIET_NS), 0);
	/* As long as they come: until the first is old. */
	sched->closed_last_ns = now + SCHED_BATCH_AGE_NS - 1000;
	ck_assert_uint_eq(backlog_ripe_at(sched, now + SCHED_BATCH_AGE_NS - 500),
			  now + SCHED_BATCH_AGE_NS);
	ck_assert_uint_eq(backlog_ripe_at(sched, now + SCHED_BATCH_AGE_NS), 0);
	sched->closed_ns = SCHED_BATCH_WORK_NS;
	ck_assert_uint_eq(backlog_ripe_at(sched, now), 0);
	sched->closed_ns = 1000;
	sched->closed_launches = SCHED_BATCH_MOST;
	ck_assert_uint_eq(backlog_ripe_at(sched, now), 0);
	sched->closed_launches = 1;
	ck_assert_uint_ne(backlog_ripe_at(sched, now), 0);
	sched_sync_begin(sched, now);
	ck_assert_uint_eq(backlog_ripe_at(sched, now), 0);
	world_end(&w);
}
END_TEST

/* ---- who is light, and when there are no turns ------------------------------------------------------- */

static struct process_model *run_pair(const char *a, const char *b, uint64_t ns)
{
	world_begin(&w);
	for (int i = 0; i < PROGRAMS; i++)
		if (!strcmp(programs[i].name, a))
			become(world_add(&w, "a", 0, 100, PRIORITY_NORMAL, SCHED_AUTO),
			       &programs[i]);
	for (int i = 0; i < PROGRAMS; i++)
		if (!strcmp(programs[i].name, b))
			become(world_add(&w, "b", 0, 100, PRIORITY_NORMAL, SCHED_AUTO),
			       &programs[i]);
	ck_assert_uint_eq(w.count, 2);
	world_run(&w, ns);
	return w.p;
}

static unsigned demand_of(const struct process_model *p)
{
	return atomic_load(&p->sched.slot_sm->demand_bp) / 100;
}

START_TEST(demand_is_what_a_program_would_use_alone_whoever_is_beside_it)
{
	struct process_model *p = run_pair("94 us, wait each", "training medium", 3 * SECOND);

	/* It gets two thirds of what it got alone, and would use 92 % all the same. */
	ck_assert_msg(demand_of(&p[0]) >= 85 && demand_of(&p[0]) <= 97, "%u", demand_of(&p[0]));
	ck_assert_msg(demand_of(&p[1]) >= 10 && demand_of(&p[1]) <= 22, "%u", demand_of(&p[1]));
	ck_assert(!atomic_load(&p[0].sched.demand.light));
	ck_assert(atomic_load(&p[1].sched.demand.light));
	ck_assert(!atomic_load(&p[0].sched.demand.free));
	ck_assert(!atomic_load(&p[1].sched.demand.free));
	world_end(&w);
}
END_TEST

START_TEST(programs_that_need_less_than_the_device_have_no_turns)
{
	struct process_model *p = run_pair("training small", "training medium", 2 * SECOND);
	uint64_t switches = atomic_load(&w.ledger.file->turn.switches);

	ck_assert(atomic_load(&p[0].sched.demand.free));
	ck_assert(atomic_load(&p[1].sched.demand.free));
	world_run(&w, SECOND);
	ck_assert_uint_eq(atomic_load(&w.ledger.file->turn.switches), switches);
	/* A third that needs all there is ends that within two tenths of a second. */
	become(world_add(&w, "c", 0, 100, PRIORITY_NORMAL, SCHED_AUTO), &programs[2]);
	world_run(&w, SECOND / 5);
	ck_assert(!atomic_load(&p[0].sched.demand.free));
	ck_assert(!atomic_load(&p[1].sched.demand.free));
	world_end(&w);
}
END_TEST

/* As in a benchmark that begins at the same instant for all, after a second in which they only waited for it. */
START_TEST(who_rested_before_he_began_has_turns_at_once)
{
	double alone[2], together = 0;

	rates(&programs[_i], NULL, SCHED_RATE, alone);
	world_begin(&w);
	for (unsigned i = 0; i < 2; i++) {
		struct process_model *p =
			world_add(&w, i ? "b" : "a", 0, 100, PRIORITY_NORMAL, SCHED_AUTO);

		become(p, &programs[_i]);
		p->launches_max = 20; /* its first launches, then a rest */
	}
	world_run(&w, SECOND);
	for (unsigned i = 0; i < 2; i++) {
		w.p[i].launches_max = 0;
		w.p[i].host_at = w.now + 1;
	}
	world_reset(&w);
	world_run(&w, SECOND / 2);
	for (unsigned i = 0; i < 2; i++)
		together += (double)w.p[i].launches * 2 / alone[0];
	ck_assert_msg(together > 0.9, "%s: %.2f", programs[_i].name, together);
	world_end(&w);
}
END_TEST

/* An hour of light use alone is neither held against a program nor for whoever comes then. */
START_TEST(time_without_turns_is_nobodys_credit)
{
	struct process_model *old, *fresh;
	double first;

	world_begin(&w);
	old = world_add(&w, "old", 0, 100, PRIORITY_NORMAL, SCHED_AUTO);
	become(old, &programs[6]);
	fresh = world_add(&w, "last-holder", 0, 100, PRIORITY_NORMAL, SCHED_AUTO);
	become(fresh, &programs[0]);
	world_run(&w, SECOND);
	while (!turn_is_ours(&fresh->sched.turns))
		world_run(&w, 100000);
	world_kill(fresh);
	world_run(&w, 60 * SECOND);
	ck_assert(atomic_load(&old->sched.demand.free));
	/* The newcomer has the device first, then the old one needs it as well. */
	fresh = world_add(&w, "fresh", 0, 100, PRIORITY_NORMAL, SCHED_AUTO);
	become(fresh, &programs[2]);
	world_run(&w, SECOND / 2);
	become(old, &programs[2]);
	world_run(&w, SECOND / 2);
	world_reset(&w);
	world_run(&w, SECOND);
	first = (double)old->busy_ns / (double)(old->busy_ns + fresh->busy_ns);
	ck_assert_msg(first > 0.48 && first < 0.52, "%.2f", first);
	world_end(&w);
}
END_TEST

START_TEST(a_newcomer_counts_as_needing_all_and_a_rested_one_not_at_all)
{
	struct process_model *p;

	world_begin(&w);
	p = world_add(&w, "a", 0, 100, PRIORITY_NORMAL, SCHED_AUTO);
	ck_assert_uint_eq(demand_of(p), 100);
	become(p, &programs[5]);
	world_run(&w, SECOND);
	ck_assert_uint_lt(demand_of(p), 15);
	ck_assert_uint_eq(atomic_load(&p->sched.demand.others), 0);
	become(world_add(&w, "b", 0, 100, PRIORITY_NORMAL, SCHED_AUTO), &programs[0]);
	world_run(&w, SECOND);
	ck_assert_uint_eq(atomic_load(&p->sched.demand.others), 1);
	world_stop(&w.p[1]);
	world_run(&w, SECOND);
	ck_assert_uint_eq(atomic_load(&p->sched.demand.others), 0);
	world_end(&w);
}
END_TEST

START_TEST(beside_a_deep_queue_a_light_program_takes_no_turns_and_costs_are_still_right)
{
	struct process_model *p = run_pair("5.6 ms, queue", "training medium", 3 * SECOND);
	uint64_t switches = atomic_load(&w.ledger.file->turn.switches), mean;

	ck_assert(atomic_load(&p[0].sched.slot_sm->deep));
	world_run(&w, SECOND);
	ck_assert_uint_le(atomic_load(&w.ledger.file->turn.switches), switches + 2);
	ck_assert_uint_gt(atomic_load(&w.ledger.file->turn.intruded_ns), 0);
	/* Every one of its kernels holds some of the other's. */
	mean = atomic_load(&costs_find(&p[0].sched.costs, 77)->mean_ns);
	ck_assert_msg(mean > 5300000 && mean < 5900000, "%lu", (unsigned long)mean);
	world_end(&w);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched_pairs");
	TCase *tcase = tcase_create("pairs");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, no_pair_gets_less_than_the_drivers_slicing_gives, 0,
			    PROGRAMS * PROGRAMS);
	tcase_add_loop_test(tcase, a_loop_that_polls_gets_what_the_drivers_slicing_gives, 0, 4);
	tcase_add_test(
		tcase,
		collected_launches_are_run_when_they_are_waited_for_many_old_or_the_last_for_now);
	tcase_add_test(tcase, demand_is_what_a_program_would_use_alone_whoever_is_beside_it);
	tcase_add_test(tcase, programs_that_need_less_than_the_device_have_no_turns);
	tcase_add_loop_test(tcase, who_rested_before_he_began_has_turns_at_once, 0, 4);
	tcase_add_test(tcase, time_without_turns_is_nobodys_credit);
	tcase_add_test(tcase, a_newcomer_counts_as_needing_all_and_a_rested_one_not_at_all);
	tcase_add_test(
		tcase,
		beside_a_deep_queue_a_light_program_takes_no_turns_and_costs_are_still_right);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
