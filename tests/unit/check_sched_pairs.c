/*
 * The scheduler in the virtual-time model: what two programs get together, against the driver's own time-slicing, which is
 * the same model without turns. Programs as measured on the card: loops that wait for each kernel, deep queues, graphs, and
 * trainings and inference whose host takes longer than their kernels.
 */
#include <stdio.h>

#include "sched_world.h"

#define MODEL_IMPLEMENTATION
#include "sched_world_impl.h"

#define SECOND NS_PER_S

static const struct program {
	const char *name;
	uint64_t kernel_ns, launch_ns, think_ns;
	unsigned burst, depth;
} programs[] = {
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

static void become(struct process_model *p, const struct program *program)
{
	p->kernel_ns = program->kernel_ns;
	p->launch_ns = program->launch_ns;
	p->think_ns = program->think_ns;
	p->burst = program->burst;
	p->depth = program->depth;
}

/* Kernels a second of each, over three seconds; the second may be absent. */
static void rates(const struct program *a, const struct program *b, enum sched_mode mode,
		  double ret[2])
{
	static struct world w;

	world_begin(&w);
	w.late_samples = 1;
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

int main(void)
{
	Suite *suite = suite_create("sched_pairs");
	TCase *tcase = tcase_create("pairs");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, no_pair_gets_less_than_the_drivers_slicing_gives, 0,
			    PROGRAMS * PROGRAMS);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
