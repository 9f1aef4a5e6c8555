/* The cost model; costs.h tells why. Plain arithmetic on a table, tested with made-up samples. */
#include "sched/costs.h"

#define MEAN_SHIFT 3 /* weight of a new sample: 1/8, once there are that many */
#define OUTLIER_RUN \
	3u /* that many high samples in a row are the truth, not other contexts' slices */
#define KEEP   64u
#define PROBES 16u

struct cost *costs_find(struct costs *costs, uint64_t key)
{
	uint32_t at = cost_place(key);

	for (uint32_t i = 0; i < PROBES; i++) {
		struct cost *cost = &costs->entries[(at + i) & (COSTS_ENTRIES - 1)];
		uint64_t have = atomic_load_explicit(&cost->key, memory_order_relaxed);

		if (have == key)
			return cost;
		if (have == 0 &&
		    (atomic_compare_exchange_strong_explicit(
			     &cost->key, &have, key, memory_order_relaxed, memory_order_relaxed) ||
		     have == key))
			return cost;
	}
	return &costs->entries[COSTS_ENTRIES - 1];
}

void costs_forget(struct costs *costs)
{
	for (uint32_t i = 0; i < COSTS_ENTRIES; i++) {
		struct cost *cost = &costs->entries[i];

		if (!atomic_load_explicit(&cost->key, memory_order_relaxed))
			continue;
		atomic_store_explicit(&cost->countdown, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->mean_ns, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->samples, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->guessed, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->aside_ns, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->sure, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->plain, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->unknown, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->high_run, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->key, 0, memory_order_release);
	}
}

void costs_doubt(struct costs *costs, uint64_t key)
{
	uint32_t at = cost_place(key);

	for (uint32_t i = 0; i < PROBES; i++) {
		struct cost *cost = &costs->entries[(at + i) & (COSTS_ENTRIES - 1)];

		if (atomic_load_explicit(&cost->key, memory_order_relaxed) != key)
			continue;
		atomic_store_explicit(&cost->plain, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->countdown, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->samples, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->high_run, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->guessed, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->aside_ns, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->clean, 0, memory_order_relaxed);
		atomic_store_explicit(&cost->sure, 0, memory_order_relaxed);
	}
}

/* Timing a launch costs some 5 us of host and device time: spend at most a quarter of a percent on it. */
static uint32_t sample_gap(uint64_t mean_ns, uint32_t samples)
{
	uint32_t most = samples < COST_STEADY ? COST_SAMPLE_GAP : COST_STEADY_GAP;
	uint64_t gap;

	if (mean_ns >= COST_LONG_NS)
		return 1;
	gap = COST_LONG_NS / (mean_ns ? mean_ns : 1);
	return gap > most ? most : (uint32_t)gap;
}

/* Charged before anybody knew: settled when somebody does. */
static void note_guess(struct cost *cost, uint64_t charged_ns)
{
	atomic_fetch_add_explicit(&cost->guessed, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&cost->aside_ns, charged_ns, memory_order_relaxed);
}

uint64_t cost_launch(struct cost *cost, int *ret_sample)
{
	uint64_t mean = atomic_load_explicit(&cost->mean_ns, memory_order_relaxed);
	uint32_t left = atomic_load_explicit(&cost->countdown, memory_order_relaxed);

	if (left > 1) {
		atomic_store_explicit(&cost->countdown, left - 1, memory_order_relaxed);
		*ret_sample = 0;
	} else if (left == 1) {
		/* While one is doubted each is timed: the next ones tell. */
		if (!atomic_load_explicit(&cost->high_run, memory_order_relaxed))
			atomic_store_explicit(
				&cost->countdown,
				sample_gap(mean, atomic_load_explicit(&cost->samples,
								      memory_order_relaxed)),
				memory_order_relaxed);
		*ret_sample = 1;
	} else {
		/* The very first may load code and synchronise: never timed, never behind a closed gate. */
		atomic_store_explicit(&cost->countdown, 1, memory_order_relaxed);
		*ret_sample = 0;
	}
	if (atomic_load_explicit(&cost->sure, memory_order_relaxed))
		return mean;
	if (!mean) {
		atomic_fetch_add_explicit(&cost->unknown, 1, memory_order_relaxed);
		mean = COST_GUESS_NS;
	}
	if (!*ret_sample) /* a timed one is corrected by its own sample */
		note_guess(cost, mean);
	return mean;
}

/* Launches charged by guess are corrected to what is known now, and once more when more is known. */
static int64_t settle_guesses(struct cost *cost, uint64_t mean)
{
	uint32_t guessed = atomic_exchange_explicit(&cost->guessed, 0, memory_order_relaxed);
	uint64_t charged = atomic_exchange_explicit(&cost->aside_ns, 0, memory_order_relaxed);

	if (!atomic_load_explicit(&cost->sure, memory_order_relaxed)) {
		atomic_fetch_add_explicit(&cost->guessed, guessed, memory_order_relaxed);
		atomic_fetch_add_explicit(&cost->aside_ns, mean * guessed, memory_order_relaxed);
	}
	return (int64_t)(mean * guessed) - (int64_t)charged;
}

/* How much a new sample moves the mean: 1 / 2^shift; KEEP = not at all. */
static uint32_t weight_shift(struct cost *cost, uint64_t measured, uint64_t mean, uint32_t samples,
			     int shared)
{
	/* A slice of another context inside the pair shows as a jump; believe it only when it stays. Less than a slice is a
	 * kind whose launches differ, as matrix products of one grid do: its mean is wanted. */
	if (measured > mean * 2 + COST_SLICE_NS) {
		if (atomic_fetch_add_explicit(&cost->high_run, 1, memory_order_relaxed) + 1u <
		    OUTLIER_RUN) {
			atomic_store_explicit(&cost->countdown, 1, memory_order_relaxed);
			return KEEP;
		}
	} else {
		atomic_store_explicit(&cost->high_run, 0, memory_order_relaxed);
	}
	if (shared && measured > mean + mean / 16)
		return KEEP;
	return samples < 2 ? 1 : samples < 4 ? 2 : MEAN_SHIFT;
}

/* Upper bounds only, and all of them higher, for long: the least of them is nearer than a mean of before. */
static uint64_t risen(struct cost *cost, uint64_t measured)
{
	uint64_t least = atomic_load_explicit(&cost->aside_ns, memory_order_relaxed);

	if (least == 0 || measured < least)
		least = measured;
	atomic_store_explicit(&cost->aside_ns, least, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&cost->highs, 1, memory_order_relaxed) + 1u < COST_RISEN)
		return 0;
	return least;
}

/*
 * The mean after one more sample, 0 when it is not believed. Upper bounds alone: the least of them; the first that is
 * none takes their place.
 */
static uint64_t mean_with(struct cost *cost, uint64_t measured, uint64_t mean, uint32_t samples,
			  int shared)
{
	uint32_t shift;

	if (samples == 0 || mean == 0)
		return measured;
	if (!shared && !atomic_load_explicit(&cost->clean, memory_order_relaxed))
		return measured;
	if (!atomic_load_explicit(&cost->sure, memory_order_relaxed))
		return measured < mean ? measured : mean;
	shift = weight_shift(cost, measured, mean, samples, shared);
	if (shift == KEEP)
		return shared && measured > mean ? risen(cost, measured) : 0;
	mean = (uint64_t)((int64_t)mean + (((int64_t)measured - (int64_t)mean) >> shift));
	return mean ? mean : 1;
}

static void note_kind(struct cost *cost, int shared, int believed)
{
	if (!shared)
		atomic_store_explicit(&cost->clean, 1, memory_order_relaxed);
	if (!believed || !atomic_load_explicit(&cost->sure, memory_order_relaxed))
		return;
	atomic_store_explicit(&cost->highs, 0, memory_order_relaxed);
	atomic_store_explicit(&cost->aside_ns, 0, memory_order_relaxed);
}

int64_t cost_sampled(struct cost *cost, uint64_t measured_ns, uint64_t charged_ns, int shared)
{
	uint64_t old = atomic_load_explicit(&cost->mean_ns, memory_order_relaxed), mean;
	uint32_t samples = atomic_load_explicit(&cost->samples, memory_order_relaxed);
	int was_sure = (int)atomic_load_explicit(&cost->sure, memory_order_relaxed);

	if (measured_ns == 0)
		measured_ns = 1;
	if (samples < COST_EARLY)
		atomic_store_explicit(&cost->countdown, 1, memory_order_relaxed);
	mean = mean_with(cost, measured_ns, old, samples, shared);
	note_kind(cost, shared, mean != 0);
	if (!mean) /* it costs what the mean says */
		return (int64_t)old - (int64_t)charged_ns;
	atomic_store_explicit(&cost->mean_ns, mean, memory_order_relaxed);
	atomic_store_explicit(&cost->samples, samples + 1, memory_order_relaxed);
	if (!shared || samples + 1 >= COST_SURE)
		atomic_store_explicit(&cost->sure, 1, memory_order_relaxed);
	if (!was_sure) {
		/* Its own charge was a guess as well, and may be again. */
		note_guess(cost, charged_ns);
		return settle_guesses(cost, mean);
	}
	if (shared && measured_ns > mean) /* an upper bound */
		return (int64_t)mean - (int64_t)charged_ns;
	if (measured_ns < COST_LONG_NS && charged_ns < COST_LONG_NS)
		return 0; /* one in many: the mean carries it */
	return (int64_t)measured_ns - (int64_t)charged_ns;
}

void cost_sample_failed(struct cost *cost)
{
	atomic_store_explicit(&cost->countdown, 2, memory_order_relaxed);
}

int cost_sample_later(struct cost *cost)
{
	/* Timed alone once it will be again; among others a pair says little. */
	uint32_t most = atomic_load_explicit(&cost->clean, memory_order_relaxed)
				? COST_PUT_OFF_CLEAN
				: COST_PUT_OFF;

	if (!atomic_load_explicit(&cost->sure, memory_order_relaxed) ||
	    atomic_fetch_add_explicit(&cost->put_off, 1, memory_order_relaxed) + 1u >= most) {
		atomic_store_explicit(&cost->put_off, 0, memory_order_relaxed);
		return 0;
	}
	atomic_store_explicit(&cost->countdown, 1, memory_order_relaxed);
	return 1;
}
