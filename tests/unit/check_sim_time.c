/*
 * The simulated device's timeline (tests/sim/shared_time.c), in virtual time: contexts in loops of
 * launches and waits get what they got on the card.
 */
#include <check.h>
#include <stdlib.h>

#include "../sim/shared_time.c"

struct sim_state *sim_shared;

#define US 1000ull

/* A program: `batch` kernels of `kernel_ns`, then a wait, then `gap_ns` on the host, over and over. */
struct program {
	uint32_t context;
	unsigned batch;
	uint64_t kernel_ns, gap_ns;
	uint64_t next_ns; /* when it launches again; NEVER while it waits */
	uint64_t last;	  /* place of its last kernel */
	uint64_t done;
};

static void set_up(void)
{
	sim_shared = calloc(1, sizeof(*sim_shared));
	sim_shared->machine.device_count = 1;
	sim_shared->machine.slice_ns = 2090 * US;
	sim_shared->machine.switch_ns = 150 * US;
	sim_shared->process_top = 1;
	sim_shared->process[0].used = 1;
}

static void tear_down(void)
{
	free(sim_shared);
}

static void add_program(struct program *p, uint32_t context, unsigned batch, uint64_t kernel_ns)
{
	*p = (struct program){context, batch, kernel_ns, 7 * US, 1000 + context, 0, 0};
	sim_shared->context[context].process = 1;
	if (sim_shared->context_top < context + 1)
		sim_shared->context_top = context + 1;
}

static void launch(struct program *p, uint64_t now)
{
	for (unsigned i = 0; i < p->batch; i++)
		p->last = time_push(p->context, now, p->kernel_ns);
	p->next_ns = NEVER;
}

/* Steps of half a microsecond are the hosts' reaction time. */
static uint64_t run_programs(struct program *programs, unsigned count, uint64_t length_ns)
{
	uint64_t sum = 0;

	for (uint64_t now = 0; now < length_ns; now += 500) {
		time_advance(0, now);
		for (unsigned i = 0; i < count; i++) {
			struct program *p = &programs[i];
			if (p->next_ns <= now) {
				launch(p, now);
			} else if (p->next_ns == NEVER &&
				   sim_shared->cursor[p->context].next > p->last) {
				p->done += p->batch;
				p->next_ns = now + p->gap_ns;
			}
		}
	}
	for (unsigned i = 0; i < count; i++)
		sum += programs[i].done;
	return sum;
}

static uint64_t per_second(unsigned count, unsigned batch, uint64_t kernel_ns)
{
	struct program programs[8];

	set_up();
	for (unsigned i = 0; i < count; i++)
		add_program(&programs[i], i, batch, kernel_ns);
	uint64_t rate = run_programs(programs, count, 1000000000ull);
	for (unsigned i = 1; i < count; i++) {
		uint64_t a = programs[i].done, b = programs[0].done;
		ck_assert_msg((a > b ? a - b : b - a) * 50 <= b + 100, "unfair: %llu and %llu",
			      (unsigned long long)a, (unsigned long long)b);
	}
	tear_down();
	return rate;
}

/* Kernels per second in all, measured on an H200 (driver 580.159.04) with sim_tools/loops. */
static const struct {
	unsigned contexts, batch;
	uint64_t kernel_ns, rate;
} measured[] = {
	{1, 1, 94 * US, 9706},	 {2, 1, 94 * US, 4356},	  {3, 1, 94 * US, 4358},
	{2, 20, 10 * US, 55343}, {3, 20, 10 * US, 55342}, {2, 1, 570 * US, 1418},
	{3, 1, 570 * US, 1418},	 {2, 1, 25 * US, 6227},	  {3, 1, 25 * US, 6232},
	{2, 4, 5600 * US, 163},
};

START_TEST(loops_of_several_contexts_get_what_they_got_on_the_card)
{
	uint64_t rate =
		per_second(measured[_i].contexts, measured[_i].batch, measured[_i].kernel_ns);
	double ratio = (double)rate / (double)measured[_i].rate;

	ck_assert_msg(ratio > 0.92 && ratio < 1.10, "%llu kernels/s, the card made %llu",
		      (unsigned long long)rate, (unsigned long long)measured[_i].rate);
}
END_TEST

/* When item `place` of a context ended. */
static uint64_t end_of(uint32_t context, uint64_t place)
{
	return sim_shared->context[context].ring[place % SIM_RING].done_ns;
}

START_TEST(a_long_kernel_is_cut_into_slices)
{
	set_up();
	struct program p[3];
	for (uint32_t i = 0; i < 3; i++) {
		add_program(&p[i], i, 1, 0);
		time_push(i, 0, 20900 * US);
	}
	time_advance(0, 1000000000ull);
	/* ten slices each; between two of one context: 2 others' and 3 switches, 4.63 ms */
	uint64_t first = end_of(0, 0);
	ck_assert_uint_ge(first, (10 * 2090 + 9 * 4630 - 10) * US);
	ck_assert_uint_le(first, (10 * 2090 + 9 * 4630 + 10) * US);
	tear_down();
}
END_TEST

START_TEST(an_idle_context_costs_nothing)
{
	set_up();
	struct program p[2];
	add_program(&p[0], 0, 1, 0);
	add_program(&p[1], 1, 1, 0);
	time_push(1, 0, 10 * US);
	time_advance(0, 1000 * US);
	time_push(0, 1000 * US, 100000 * US);
	time_advance(0, 1000000 * US);
	ck_assert_uint_eq(end_of(0, 0), (1000 + 135 + 100000) * US);
	tear_down();
}
END_TEST

START_TEST(a_neighbour_at_a_closed_wait_costs_a_little)
{
	set_up();
	struct program p[2];
	add_program(&p[0], 0, 1, 0);
	add_program(&p[1], 1, 1, 0);
	sim_shared->context[1].blocked = 1;
	time_push(0, 0, 100000 * US);
	time_advance(0, 1000000 * US);
	double cost = (double)end_of(0, 0) / (100000.0 * (double)US) - 1;
	ck_assert_msg(cost > 0.045 && cost < 0.065, "%f", cost);
	tear_down();
}
END_TEST

START_TEST(what_was_computed_stays_true_when_work_arrives_later)
{
	set_up();
	struct program p[2];
	add_program(&p[0], 0, 1, 0);
	add_program(&p[1], 1, 1, 0);
	time_push(0, 0, 50 * US);
	time_advance(0, 100 * US);
	uint64_t before = end_of(0, 0);
	time_push(1, 100 * US, 50 * US);
	time_advance(0, 1000 * US);
	ck_assert_uint_eq(end_of(0, 0), before);
	ck_assert_uint_eq(end_of(1, 0), (100 + 135 + 50) * US);
	tear_down();
}
END_TEST

START_TEST(looking_ahead_changes_nothing_and_is_right_if_nothing_comes)
{
	set_up();
	struct program p[2];
	add_program(&p[0], 0, 1, 0);
	add_program(&p[1], 1, 1, 0);
	for (int i = 0; i < 100; i++) {
		time_push(0, 0, 300 * US);
		time_push(1, 0, 700 * US);
	}
	time_advance(0, 5000 * US);
	struct sim_line line = sim_shared->device[0].line;
	uint64_t guess = time_look_ahead(1, 99);
	ck_assert_int_eq(memcmp(&line, &sim_shared->device[0].line, sizeof(line)), 0);
	time_advance(0, 1000000 * US);
	ck_assert_uint_eq(end_of(1, 99), guess);
	tear_down();
}
END_TEST

START_TEST(under_MPS_contexts_do_not_wait_for_each_other)
{
	set_up();
	sim_shared->machine.mps = 1;
	struct program p[2];
	add_program(&p[0], 0, 1, 0);
	add_program(&p[1], 1, 1, 0);
	time_push(0, 0, 5000 * US);
	time_push(1, 0, 5000 * US);
	time_advance(0, 6000 * US);
	ck_assert_uint_eq(end_of(0, 0), 5000 * US);
	ck_assert_uint_eq(end_of(1, 0), 5000 * US);
	tear_down();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim_time");
	TCase *tcase = tcase_create("device time");

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, loops_of_several_contexts_get_what_they_got_on_the_card, 0,
			    (int)(sizeof(measured) / sizeof(measured[0])));
	tcase_add_test(tcase, a_long_kernel_is_cut_into_slices);
	tcase_add_test(tcase, an_idle_context_costs_nothing);
	tcase_add_test(tcase, a_neighbour_at_a_closed_wait_costs_a_little);
	tcase_add_test(tcase, what_was_computed_stays_true_when_work_arrives_later);
	tcase_add_test(tcase, looking_ahead_changes_nothing_and_is_right_if_nothing_comes);
	tcase_add_test(tcase, under_MPS_contexts_do_not_wait_for_each_other);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
