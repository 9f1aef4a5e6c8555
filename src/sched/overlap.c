/*
 * Kernels that leave room run side by side when they are on several streams: the device works for the length of one, and a
 * charge of each one's own length would be several times too high. Nobody can tell from the launches. But while the device
 * works without a pause, what was charged for a stretch of work cannot be more than the stretch was long: the marks that
 * streams write tell when it was over. The ratio, followed slowly, scales what launches are charged.
 *
 * With gaps in the work the stretch is longer than what ran in it: then the scale goes back towards one, by which each
 * launch costs its own length.
 */
#include "sched/private.h"

#define LEAST_SCALE  (SCHED_ONE / 32)
#define SIDE_BY_SIDE (SCHED_ONE / 100 * 95)
#define ALONE_GAP    16
#define FOLLOW	     4	/* a quarter of what a stretch says, */
#define MOST_UP	     10 /* percent: who has gaps seems to take longer */

/* The scale moves towards what the stretch said: `percent` of what was charged. */
static uint32_t followed(uint32_t scale, uint32_t percent)
{
	uint64_t next;

	if (percent > 100 + MOST_UP)
		percent = 100 + MOST_UP;
	next = ((FOLLOW - 1) * (uint64_t)scale + (uint64_t)scale * percent / 100) / FOLLOW;
	if (next > SCHED_ONE)
		return SCHED_ONE;
	return next < LEAST_SCALE ? LEAST_SCALE : (uint32_t)next;
}

void overlap_begin(struct sched *sched, uint64_t at_ns)
{
	sched_lock(sched);
	if (sched->seen_percent)
		STORE(&sched->scale, followed(LOAD(&sched->scale), sched->seen_percent));
	sched->seen_percent = 0;
	sched->seen_at_ns = at_ns;
	sched->seen_ns = sched->issued_ns - sched->closed_ns;
	sched_unlock(sched);
}

void overlap_seen(struct sched *sched, uint64_t seen_ns, uint64_t now_ns)
{
	uint64_t charged = seen_ns - sched->seen_ns, percent;

	/* Alone under a cap stretches are timed by events (stretch.c). */
	if (!LOAD(&sched->several) || (cap_of(sched) && !turn_contended(&sched->turns))) {
		sched->seen_at_ns = 0;
		sched->seen_percent = 0;
		return;
	}
	if (!sched->seen_at_ns || charged < SCHED_SEEN_NS || charged > SCHED_NS_MASK ||
	    now_ns <= sched->seen_at_ns)
		return;
	percent = (now_ns - sched->seen_at_ns) * 100 / charged + 1;
	/* It was over when it was seen, or before: the least is the nearest. */
	if (!sched->seen_percent || percent < sched->seen_percent)
		sched->seen_percent = percent > 1000 ? 1000 : (uint32_t)percent;
}

static int overlaps(const struct sched *sched)
{
	return LOAD(&sched->scale) < SIDE_BY_SIDE;
}

int sched_times_alone(struct sched *sched)
{
	return !overlaps(sched) ||
	       atomic_fetch_add_explicit(&sched->alone_chances, 1, memory_order_relaxed) %
			       ALONE_GAP ==
		       0;
}
