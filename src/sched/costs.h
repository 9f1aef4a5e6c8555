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

#define COSTS_ENTRIES	   4096u
#define COST_GUESS_NS	   5000u    /* a launch of a kind never timed */
#define COST_LONG_NS	   2000000u /* every launch at least this long is timed */
#define COST_SAMPLE_GAP	   32u	    /* short kernels: one launch in this many, */
#define COST_STEADY	   32u	    /* and after this many samples */
#define COST_STEADY_GAP	   128u	    /* one in this many */
#define COST_SURE	   8u	    /* upper bounds after which their mean is taken for the truth */
#define COST_EARLY	   4u	    /* and each of the first few after the very first */
#define COST_PUT_OFF	   32u /* a sample that would say little is put off, this often in a row, */
#define COST_PUT_OFF_CLEAN 60000u   /* or this often when the kind was timed alone */
#define COST_SLICE_NS	   1000000u /* what another context takes inside a pair, at least */
#define COST_RISEN	   64u	    /* upper bounds above the mean in a row: it has risen */

struct cost {
	_Alignas(64) _Atomic uint64_t key; /* 0 = free */
	_Atomic uint64_t mean_ns;	   /* what a launch is charged */
	_Atomic uint32_t countdown;	   /* launches until the next sample */
	_Atomic uint32_t samples;
	_Atomic uint32_t sure;	/* the mean is no mere upper bound */
	_Atomic uint32_t plain; /* for the launch path: it is, and the frame is known */
	_Atomic uint32_t
		guessed; /* launches charged before it was: corrected at each sample until then */
	_Atomic uint32_t unknown; /* launches before the first sample was read */
	_Atomic uint64_t
		aside_ns; /* what those were charged; later the least upper bound above the mean */
	_Atomic uint16_t high_run; /* samples in a row that looked like outliers */
	_Atomic uint16_t put_off;  /* samples put off in a row */
	_Atomic uint16_t clean;	   /* one was no upper bound */
	_Atomic uint16_t highs;	   /* upper bounds in a row above the mean */
	uint64_t pad;
};

_Static_assert(sizeof(struct cost) == 64, "one cache line");

struct costs {
	struct cost entries[COSTS_ENTRIES];
};

/* Where a key is looked for first. */
static inline uint32_t cost_place(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 52) & (COSTS_ENTRIES - 1);
}

/* The entry for a key (never 0), made at the first call; the last entry serves all when the table is full. */
struct cost *costs_find(struct costs *costs, uint64_t key);

/*
 * Functions or contexts are gone: their handles may come to mean other functions, whose first launch loads code. Everything is
 * learnt anew. Pointers to entries stay valid.
 */
void costs_forget(struct costs *costs);
/*
 * A handle was given out, perhaps once more, to something of another length. What is known of the old one is charged until the
 * new one was timed, and then corrected.
 */
void costs_doubt(struct costs *costs, uint64_t key);

#define COST_UNKNOWN_MAX 2u

/*
 * 1 when more than COST_UNKNOWN_MAX launches were made and none has been timed: by guess a 20 ms kernel looks like a short
 * one, so under a cap or next to others no more of them should be queued.
 */
static inline int cost_is_unknown(const struct cost *cost)
{
	return !atomic_load_explicit(&cost->samples, memory_order_relaxed) &&
	       atomic_load_explicit(&cost->unknown, memory_order_relaxed) > COST_UNKNOWN_MAX;
}

/*
 * 1 while all that is known are a few upper bounds. With several streams those hold the other streams' kernels: such launches
 * should be made when they can be timed alone.
 */
static inline int cost_is_vague(const struct cost *cost)
{
	return !atomic_load_explicit(&cost->sure, memory_order_relaxed);
}

/* 1 when the next launches of this kind could take the short way and do not yet. The last entry of a full table is of many. */
static inline int cost_may_be_plain(const struct cost *cost, uint64_t key)
{
	return !atomic_load_explicit(&cost->plain, memory_order_relaxed) &&
	       atomic_load_explicit(&cost->sure, memory_order_relaxed) &&
	       atomic_load_explicit(&cost->key, memory_order_relaxed) == key;
}

/* What to charge for one launch now. Cheap: a load and a decrement. *ret_sample = 1 when it should be timed. */
uint64_t cost_launch(struct cost *cost, int *ret_sample);

/*
 * A measured launch that was charged `charged_ns`: returns what the group's account must be corrected by. `shared`: another
 * process, or another stream, may have had the device meanwhile, so that the measure is an upper bound of what the launch cost.
 */
int64_t cost_sampled(struct cost *cost, uint64_t measured_ns, uint64_t charged_ns, int shared);

/* A launch that is to be timed would give an upper bound only: 1 = put off, 0 = take that. */
int cost_sample_later(struct cost *cost);

/* A launch that was to be timed could not be: try again soon. */
void cost_sample_failed(struct cost *cost);

#endif
