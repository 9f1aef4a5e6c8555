/*
 * Kernels that leave room run side by side when they are on several streams: the device works for the length of one, and a
 * charge of each one's own length would be several times too high. Those that fill the device fill the gaps between two
 * kernels of another stream. Nobody can tell from the launches. But while the device works without a pause, what was charged
 * for a stretch of work cannot be more than the stretch was long. So now and then a stretch is timed like a kernel: an event
 * before its first launch, which finds the device idle, and one after a launch some milliseconds of work later. The ratio,
 * followed slowly, scales what launches are charged.
 *
 * With gaps in the work the stretch is longer than what ran in it: then the scale goes back towards one, by which each
 * launch costs its own length.
 */
#include "sched/private.h"

#define LEAST_SCALE  (SCHED_ONE / 32)
#define SIDE_BY_SIDE (SCHED_ONE / 100 * 99)
#define ALONE_GAP    16
#define FOLLOW	     4	/* a quarter of what a stretch says, */
#define MOST_UP	     10 /* percent: who has gaps seems to take longer */

enum { STRETCH_NONE, STRETCH_BEGUN, STRETCH_ENDED, STRETCH_VOID };

/* The scale moves towards what the stretch said it should be. */
static uint32_t followed(uint32_t scale, uint64_t measured)
{
	uint64_t most = scale + (uint64_t)scale * MOST_UP / 100;
	uint64_t next = measured < most ? measured : most;

	next = ((FOLLOW - 1) * (uint64_t)scale + next) / FOLLOW;
	if (next > SCHED_ONE)
		return SCHED_ONE;
	return next < LEAST_SCALE ? LEAST_SCALE : (uint32_t)next;
}

/* Now and then, from the first moment on. */
static int probes(struct sched *sched, uint64_t now_ns)
{
	uint64_t since = LOAD(&sched->probe_at_ns);

	if (!since || now_ns < since || now_ns - since >= SCHED_PROBE_GAP_NS) {
		STORE(&sched->probe_at_ns, now_ns);
		return 1;
	}
	return now_ns - since < SCHED_PROBE_NS;
}

enum stretch overlap_step(struct sched *sched, int idle, uint64_t own_ns, uint64_t now_ns)
{
	enum stretch what = STRETCH_GOES_ON;

	if (!LOAD(&sched->several)) {
		if (LOAD(&sched->scale) != SCHED_ONE)
			STORE(&sched->scale, SCHED_ONE);
		return what;
	}
	sched_lock(sched);
	if (idle && sched->stretch_state <= STRETCH_BEGUN && probes(sched, now_ns)) {
		sched->stretch_state = STRETCH_BEGUN;
		sched->stretch_from_ns = sched->issued_ns - own_ns;
		sched->stretch_word = turn_alone(&sched->turns);
		what = STRETCH_BEGINS;
	} else if (sched->stretch_state == STRETCH_BEGUN &&
		   sched->issued_ns - sched->stretch_from_ns >= SCHED_STRETCH_NS) {
		sched->stretch_state = STRETCH_ENDED;
		sched->stretch_ns = sched->issued_ns - sched->stretch_from_ns;
		what = STRETCH_ENDS;
	}
	sched_unlock(sched);
	return what;
}

void sched_stretch(struct sched *sched, uint64_t took_ns)
{
	uint64_t word = turn_alone(&sched->turns);
	uint32_t before = LOAD(&sched->scale), after;

	sched_lock(sched);
	/* Another process had the device meanwhile? */
	if (took_ns && sched->stretch_state == STRETCH_ENDED && word && word == sched->stretch_word)
		STORE(&sched->scale, followed(before, took_ns * before / sched->stretch_ns + 1));
	after = LOAD(&sched->scale);
	/* Far from where it was: looked at again soon. */
	if (after + before / 16 < before || after > before + before / 16)
		STORE(&sched->probe_at_ns, 0);
	sched->stretch_state = STRETCH_NONE;
	sched_unlock(sched);
}

void sched_stretch_late(struct sched *sched)
{
	sched_lock(sched);
	STORE(&sched->scale, followed(LOAD(&sched->scale), SCHED_ONE));
	sched->stretch_state = STRETCH_NONE;
	sched_unlock(sched);
}

void overlap_learnt(struct sched *sched, uint64_t before_ns, uint64_t mean_ns)
{
	uint64_t scale;

	if (!LOAD(&sched->several) || !mean_ns || mean_ns >= before_ns ||
	    before_ns > SCHED_NS_MASK / SCHED_ONE)
		return;
	sched_lock(sched);
	scale = LOAD(&sched->scale) * before_ns / mean_ns;
	STORE(&sched->scale, scale < SCHED_ONE ? (uint32_t)scale : SCHED_ONE);
	/* What is being timed was charged by another scale. */
	if (sched->stretch_state == STRETCH_BEGUN)
		sched->stretch_state = STRETCH_NONE;
	else if (sched->stretch_state == STRETCH_ENDED)
		sched->stretch_state = STRETCH_VOID;
	sched_unlock(sched);
}

static int overlaps(const struct sched *sched)
{
	return LOAD(&sched->scale) < SIDE_BY_SIDE;
}

int sched_times_alone(struct sched *sched, const struct cost *cost)
{
	return !overlaps(sched) || !atomic_load_explicit(&cost->clean, memory_order_relaxed) ||
	       atomic_fetch_add_explicit(&sched->alone_chances, 1, memory_order_relaxed) %
			       ALONE_GAP ==
		       0;
}

int overlap_wants_batch(struct sched *sched, uint64_t now_ns)
{
	return LOAD(&sched->several) && (probes(sched, now_ns) || overlaps(sched));
}
