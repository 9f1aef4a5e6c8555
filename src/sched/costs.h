/*
 * What a launch costs the device: learnt per function and launch shape from timed samples.
 *
 * The host cannot see how long a kernel runs without timing it, and timing each one costs more than many
 * kernels take. So a few launches of each kind are timed by the device's own clock and every launch is charged
 * the running mean (docs/sm-time.md has the measured error: within 3 points of the device for five programs).
 * Long kernels are all timed, and their charge is corrected to the measured value.
 *
 * Private memory of one process, one table per device. Any thread; entries never move.
 */
#ifndef CUOTA_SCHED_COSTS_H
#define CUOTA_SCHED_COSTS_H

#include <stdatomic.h>
#include <stdint.h>

#define COSTS_ENTRIES	4096u
#define COST_GUESS_NS	5000u	 /* a launch of a kind never timed */
#define COST_LONG_NS	2000000u /* every launch at least this long is timed */
#define COST_SAMPLE_GAP 32u	 /* short kernels: one launch in this many, */
#define COST_STEADY	32u	 /* and after this many samples */
#define COST_STEADY_GAP 128u	 /* one in this many */
#define COST_SURE	3u	 /* samples after which launches charged by guess are corrected */
#define COST_EARLY	4u	 /* and each of the first few after the very first */

struct cost {
	_Atomic uint64_t key;	    /* 0 = free */
	_Atomic uint64_t mean_ns;   /* what a launch is charged */
	_Atomic uint32_t countdown; /* launches until the next sample */
	_Atomic uint32_t samples;
	_Atomic uint32_t guessed;  /* launches charged by guess: corrected at the first sample */
	_Atomic uint32_t high_run; /* samples in a row that looked like outliers */
	_Atomic uint32_t unknown;  /* launches before the first sample was read */
	uint32_t pad0;
	uint64_t pad[3];
};

struct costs {
	struct cost entries[COSTS_ENTRIES];
};

/* The entry for a key (never 0), made at the first call; the last entry serves all when the table is full. */
struct cost *costs_find(struct costs *costs, uint64_t key);

/*
 * Functions or contexts are gone: their handles may come to mean other functions, whose first launch loads code. Everything is
 * learnt anew. Pointers to entries stay valid.
 */
void costs_forget(struct costs *costs);

/* What to charge for one launch now. Cheap: a load and a decrement. *ret_sample = 1 when it should be timed. */
uint64_t cost_launch(struct cost *cost, int *ret_sample);

/*
 * A measured launch that was charged `charged_ns`: returns what the group's account must be corrected by. `shared`: another
 * process may have had the device meanwhile, so that the measure is an upper bound of what the launch cost.
 */
int64_t cost_sampled(struct cost *cost, uint64_t measured_ns, uint64_t charged_ns, int shared);

/* A launch that was to be timed could not be: try again soon. */
void cost_sample_failed(struct cost *cost);

#endif
