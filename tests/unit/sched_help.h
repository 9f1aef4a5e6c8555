/* What the tests of the scheduler in the virtual-time model share: one world, and the programs in it. */
#ifndef CUOTA_TESTS_SCHED_HELP_H
#define CUOTA_TESTS_SCHED_HELP_H

#include "sched_world.h"

#define MODEL_IMPLEMENTATION
#include "sched_world_impl.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define SECOND	     NS_PER_S
#define MS	     NS_PER_MS

static struct world w;

/* What a process does, by name. */
struct program {
	const char *name;
	uint64_t kernel_ns, launch_ns, think_ns;
	unsigned burst, depth;
};

static inline void become(struct process_model *p, const struct program *program)
{
	p->kernel_ns = program->kernel_ns;
	p->launch_ns = program->launch_ns;
	p->think_ns = program->think_ns;
	p->burst = program->burst;
	p->depth = program->depth;
}

static inline void setup(void)
{
	world_begin(&w);
}

static inline void teardown(void)
{
	world_end(&w);
}

static inline struct process_model *add(const char *group, uint32_t cap_bp, uint32_t weight)
{
	return world_add(&w, group, cap_bp, weight, PRIORITY_NORMAL, SCHED_AUTO);
}

static inline void deep(struct process_model *p, uint64_t kernel_ns, unsigned depth)
{
	p->kernel_ns = kernel_ns;
	p->depth = depth;
	p->launch_ns = 4000;
}

/* Percent of the device over the next `ns`. */
static inline double share_over(const struct process_model *p, uint64_t ns)
{
	world_reset(&w);
	world_run(&w, ns);
	return 100.0 * (double)p->busy_ns / (double)ns;
}

#define within(got, low, high) \
	do { \
		double got_ = (double)(got); \
\
		ck_assert_msg(got_ >= (low) && got_ <= (high), "%.2f, not %.2f..%.2f (case %d)", \
			      got_, (double)(low), (double)(high), _i); \
	} while (0)

#endif
