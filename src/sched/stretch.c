/*
 * What launches are charged is a sum of means, and means may be wrong: what a pair of events reads is not all that a kernel
 * keeps from others, kinds whose launches differ are sampled too seldom, kernels of several streams run side by side. While
 * the device works without a pause the sum must be as long as the work. So now and then a stretch of some milliseconds is
 * timed as a whole: an event before its first launch and one after its last, in each stream. The ratio, followed slowly,
 * scales what launches are charged.
 *
 * The device worked without a pause if the host needed much less time to launch the stretch than the device to run it. Else
 * nothing is learnt. A capped program saves up the work for it, since its launches come one by one at its cap.
 *
 * One stream: the events stand in it, whatever is before and behind. Several: nobody knows in which order the device gets
 * to them. So their stretch goes from one pause of the cap to the next, and the last end counts.
 */
#include "base/clock.h"
#include "sched/bucket.h"
#include "sched/private.h"

#define FIRST_GAP      (20 * NS_PER_MS)	 /* between stretches, until some were good, */
#define GAP	       (500 * NS_PER_MS) /* from then on, */
#define GAP_MOST       (8 * NS_PER_S)	 /* and where none is */
#define DRY_WAIT_NS    (100 * NS_PER_MS)
#define GOOD	       4u
#define LEAST_BATCH_NS 500000u
#define LAUNCHES_LEAST 4u /* in a stretch, or it is not worth it: long kernels are known well */
#define TAIL_NS \
	500000u /* of several streams' stretch: each launch may be the last of its stream, */
#define TAIL_LAUNCHES 8u		  /* and of so many */
#define EVENTS_NS     1500u		  /* what the events themselves add */
#define LEAST_ONE     (SCHED_ONE / 4 * 3) /* of one stream */
/* What else the stream does, copies or waits for another one, is in a stretch as well: not much may come of that. */
#define MOST	   (SCHED_ONE / 100 * 108)
#define LEAST_MANY (SCHED_ONE / 32)

/* Work that is to run without a pause: not so much that a low cap's work comes in lumps. */
static uint64_t length_of(uint32_t cap)
{
	uint64_t length = cap ? SCHED_LUMPS_NS / 10000 * cap : SCHED_BATCH_NS;

	if (length > SCHED_BATCH_NS)
		return SCHED_BATCH_NS;
	return length < LEAST_BATCH_NS ? LEAST_BATCH_NS : length;
}

static int is_due(const struct sched *sched, uint64_t now_ns)
{
	return LOAD(&sched->stretch_state) == SCHED_STRETCH_NONE &&
	       now_ns >= LOAD(&sched->stretch_due_ns);
}

uint64_t stretch_batch_ns(const struct sched *sched, uint32_t cap, uint64_t cost_ns,
			  uint64_t now_ns)
{
	if (LOAD(&sched->several))
		return length_of(cap);
	return is_due(sched, now_ns) && cost_ns * LAUNCHES_LEAST <= length_of(cap) ? length_of(cap)
										   : 0;
}

static void next_at(struct sched *sched, uint64_t now_ns, int good)
{
	uint64_t gap = sched->stretch_gap_ns;

	if (good)
		gap = ++sched->stretch_good < GOOD ? FIRST_GAP : GAP;
	else
		gap = gap < FIRST_GAP ? FIRST_GAP : 2 * gap > GAP_MOST ? GAP_MOST : 2 * gap;
	sched->stretch_gap_ns = gap;
	STORE(&sched->stretch_due_ns, now_ns + gap);
}

static void ends(struct sched *sched)
{
	sched->stretch_ns = sched->issued_ns - sched->stretch_from_ns;
	STORE(&sched->stretch_tail, 0);
	STORE(&sched->stretch_state, SCHED_STRETCH_ENDED);
}

static enum stretch goes_on(struct sched *sched, uint32_t cap, uint64_t own_ns, uint64_t now_ns)
{
	uint64_t so_far = sched->issued_ns - sched->stretch_from_ns, length = length_of(cap);
	uint64_t tail = TAIL_LAUNCHES * own_ns > TAIL_NS ? TAIL_LAUNCHES * own_ns : TAIL_NS;

	sched->stretch_host_ns = now_ns - sched->stretch_began_ns;
	if (LOAD(&sched->several)) {
		if (so_far + tail >= length)
			STORE(&sched->stretch_tail, 1);
		if (so_far >= 2 * length)
			ends(sched);
		return so_far + tail >= length ? STRETCH_ENDS : STRETCH_NOT;
	}
	if (so_far < length / 2)
		return STRETCH_NOT;
	ends(sched);
	return STRETCH_ENDS;
}

/* Is this the moment, and is enough saved up? */
static int may_begin(const struct sched *sched, uint32_t cap, uint64_t own_ns, uint64_t now_ns)
{
	uint64_t length = length_of(cap);

	if (!is_due(sched, now_ns) || own_ns * LAUNCHES_LEAST > length)
		return 0;
	if (!cap)
		return !LOAD(&sched->several);
	return bucket_has(&sched->group_sm->tat_ns, now_ns, cap, length / 4 * 3);
}

/* Several streams: who is charged too little never comes to an end of his work. */
static int waited_long(const struct sched *sched, uint64_t now_ns)
{
	return !LOAD(&sched->several) || now_ns >= LOAD(&sched->stretch_due_ns) + DRY_WAIT_NS;
}

enum stretch stretch_step(struct sched *sched, uint32_t cap, uint64_t own_ns, int dry,
			  uint64_t now_ns)
{
	enum stretch what = STRETCH_NOT;
	uint64_t word;

	if (LOAD(&sched->stretch_state) == SCHED_STRETCH_NONE && !is_due(sched, now_ns))
		return what;
	word = turn_contended(&sched->turns) ? 0 : sched_company(sched, now_ns).word;
	sched_lock(sched);
	if (sched->stretch_state == SCHED_STRETCH_BEGUN) {
		what = goes_on(sched, cap, own_ns, now_ns);
	} else if (word && (dry || waited_long(sched, now_ns)) &&
		   may_begin(sched, cap, own_ns, now_ns)) {
		/* One stream: from the end of this launch on. Several: from its beginning on. */
		sched->stretch_from_ns = sched->issued_ns - (LOAD(&sched->several) ? own_ns : 0);
		sched->stretch_began_ns = now_ns;
		sched->stretch_word = word;
		STORE(&sched->stretch_state, SCHED_STRETCH_BEGUN);
		what = LOAD(&sched->several) ? STRETCH_BEGINS : STRETCH_BEGINS_AFTER;
	}
	sched_unlock(sched);
	return what;
}

void stretch_pauses(struct sched *sched, uint64_t now_ns)
{
	if (LOAD(&sched->stretch_state) != SCHED_STRETCH_BEGUN)
		return;
	sched_lock(sched);
	if (sched->stretch_state == SCHED_STRETCH_BEGUN) {
		if (LOAD(&sched->several) && LOAD(&sched->stretch_tail)) {
			ends(sched);
		} else {
			STORE(&sched->stretch_state, SCHED_STRETCH_NONE);
			next_at(sched, now_ns, 0);
		}
	}
	sched_unlock(sched);
}

void sched_stretch_cancel(struct sched *sched)
{
	sched_lock(sched);
	if (sched->stretch_state == SCHED_STRETCH_BEGUN)
		STORE(&sched->stretch_state, SCHED_STRETCH_NONE);
	sched_unlock(sched);
}

void stretch_void(struct sched *sched, int anew)
{
	if (!anew && LOAD(&sched->stretch_state) == SCHED_STRETCH_NONE)
		return;
	sched_lock(sched);
	sched->stretch_word = 0;
	if (anew && sched->stretch_good) {
		sched->stretch_good = 0;
		sched->stretch_gap_ns = 0;
		STORE(&sched->stretch_due_ns, 0);
	}
	sched_unlock(sched);
}

/* The scale moves a quarter of the way to what the stretch says; half of it at first, and when it is far off. */
static void follow(struct sched *sched, uint64_t measured)
{
	uint64_t scale = LOAD(&sched->scale), next = (3 * scale + measured) / 4;
	uint32_t least = LOAD(&sched->several) ? LEAST_MANY : LEAST_ONE;

	if (sched->stretch_good < GOOD || measured < scale / 2 || measured > 2 * scale)
		next = (scale + measured) / 2;
	STORE(&sched->scale, next < least ? least : next > MOST ? MOST : (uint32_t)next);
}

void sched_stretch(struct sched *sched, uint64_t took_ns, uint64_t now_ns)
{
	uint64_t word = sched_company(sched, now_ns).word, measured = 0;
	int through;

	sched_lock(sched);
	if (sched->stretch_state == SCHED_STRETCH_ENDED && took_ns > EVENTS_NS && word &&
	    word == sched->stretch_word)
		measured = (took_ns - EVENTS_NS) * LOAD(&sched->scale) / (sched->stretch_ns + 1);
	through = sched->stretch_host_ns < took_ns / 2;
	/* With pauses in it it still took no less than its work: who was charged more was charged too much. */
	if (measured && !through && measured > SCHED_ONE)
		measured = SCHED_ONE;
	if (measured)
		follow(sched, measured);
	/* What was void says nothing about the next one. */
	next_at(sched, now_ns,
		!sched->stretch_word || (measured && (through || measured < SCHED_ONE)));
	STORE(&sched->stretch_tail, 0);
	STORE(&sched->stretch_state, SCHED_STRETCH_NONE);
	sched_unlock(sched);
}
