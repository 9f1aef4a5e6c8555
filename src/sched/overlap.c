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

#define LEAST_SCALE    (SCHED_ONE / 32)
#define SIDE_BY_SIDE   (SCHED_ONE / 100 * 99)
#define ALONE_GAP      16
#define FOLLOW	       4  /* a quarter of what a stretch says, */
#define MOST_UP	       10 /* percent: who has gaps seems to take longer */
#define CLOSE_LOOK     24 /* part of a stretch that its end may be uncertain by, */
#define STRETCH_MAX_NS 20000000u
#define SURELY_LESS    8 /* unless it took less than was charged by this part even so */

/* The scale moves towards what the stretch said it should be. */
static uint32_t followed(uint32_t scale, uint32_t measured)
{
	uint64_t most = scale + (uint64_t)scale * MOST_UP / 100;
	uint64_t next = measured < most ? measured : most;

	next = ((FOLLOW - 1) * (uint64_t)scale + next) / FOLLOW;
	if (next > SCHED_ONE)
		return SCHED_ONE;
	return next < LEAST_SCALE ? LEAST_SCALE : (uint32_t)next;
}

void overlap_begin(struct sched *sched, uint64_t at_ns)
{
	sched_lock(sched);
	if (sched->seen_scale)
		STORE(&sched->scale, followed(LOAD(&sched->scale), sched->seen_scale));
	sched->seen_scale = 0;
	sched->seen_at_ns = at_ns;
	sched->seen_ns = sched->issued_ns - sched->closed_ns;
	sched_unlock(sched);
}

/*
 * How long a stretch took that was over between the look before, which did not see it, and now; 0 when they are too wide
 * apart to tell more than is known.
 */
static uint64_t took_about(const struct sched *sched, uint64_t before_ns, uint64_t now_ns,
			   uint64_t charged)
{
	uint64_t begun = sched->seen_at_ns, most = now_ns - begun;

	if (before_ns < begun)
		before_ns = begun;
	if ((now_ns - before_ns) * CLOSE_LOOK <= most)
		return most - (now_ns - before_ns) / 2;
	return most < charged / SURELY_LESS * (SURELY_LESS - 1) ? most : 0;
}

/* The last that is seen of a stretch counts: the longer, the better known. */
void overlap_seen(struct sched *sched, uint64_t seen_ns, uint64_t before_ns, uint64_t now_ns)
{
	uint64_t charged = seen_ns - sched->seen_ns, took, scale;

	if (!LOAD(&sched->many_streams)) {
		STORE(&sched->scale, SCHED_ONE);
		sched->seen_at_ns = 0;
		sched->seen_scale = 0;
		return;
	}
	if (!sched->seen_at_ns || charged < SCHED_SEEN_NS || charged > SCHED_NS_MASK ||
	    now_ns <= sched->seen_at_ns || now_ns <= before_ns)
		return;
	took = took_about(sched, before_ns, now_ns, charged);
	if (!took)
		return;
	scale = took * LOAD(&sched->scale) / charged + 1;
	sched->seen_scale = scale > SCHED_ONE * 10ull ? SCHED_ONE * 10 : (uint32_t)scale;
	/* A device that is never idle begins no new stretch. */
	if (took >= STRETCH_MAX_NS) {
		STORE(&sched->scale, followed(LOAD(&sched->scale), sched->seen_scale));
		sched->seen_scale = 0;
		sched->seen_at_ns += took;
		sched->seen_ns = seen_ns;
	}
}

void overlap_learnt(struct sched *sched, uint64_t before_ns, uint64_t mean_ns)
{
	uint64_t scale;

	if (!mean_ns || !before_ns || before_ns > SCHED_NS_MASK / SCHED_ONE)
		return;
	scale = LOAD(&sched->scale) * before_ns / mean_ns;
	if (LOAD(&sched->many_streams) && mean_ns < before_ns)
		STORE(&sched->scale, scale < SCHED_ONE ? (uint32_t)scale : SCHED_ONE);
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

/* Now and then, from the first moment on, a stretch is made long enough to tell, and its end is looked for often. */
int overlap_probes(struct sched *sched, uint64_t now_ns)
{
	uint64_t since = LOAD(&sched->probe_at_ns);

	if (!LOAD(&sched->many_streams))
		return 0;
	if (!since || now_ns < since || now_ns - since >= SCHED_PROBE_GAP_NS) {
		STORE(&sched->probe_at_ns, now_ns);
		return 1;
	}
	return now_ns - since < SCHED_PROBE_NS;
}

int overlap_wants_batch(struct sched *sched, uint64_t now_ns)
{
	return LOAD(&sched->many_streams) && (overlap_probes(sched, now_ns) || overlaps(sched));
}
