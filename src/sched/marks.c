/*
 * Marks: numbers that the streams write to pinned memory as they get there. A prediction cannot notice that the
 * device was shared with another context meanwhile; a mark that is late can. Ordered within a lane only.
 */
#include "sched/private.h"

uint32_t marks_issue(struct sched *sched, uint64_t ns, unsigned lane, int contended)
{
	uint32_t mark = 0;

	sched_lock(sched);
	sched->issued_ns += ns;
	if (!contended) {
		/* Nobody looks: what was issued so far is known by prediction only. */
		sched->marked_ns = sched->issued_ns;
	} else if (sched->issued_ns - sched->marked_ns >= SCHED_CHUNK_NS &&
		   sched->mark - sched->done < SCHED_MARKS - 1) {
		mark = ++sched->mark;
		sched->mark_ns[mark % SCHED_MARKS] = sched->issued_ns;
		sched->mark_work_ns[mark % SCHED_MARKS] = sched->issued_ns - sched->marked_ns;
		sched->mark_lane[mark % SCHED_MARKS] = (uint8_t)lane;
		sched->marked_ns = sched->issued_ns;
	}
	sched_unlock(sched);
	return mark;
}

void sched_mark_lost(struct sched *sched, uint32_t mark)
{
	sched_lock(sched);
	if ((int32_t)(mark - sched->done) > 0)
		sched->mark_lane[mark % SCHED_MARKS] = SCHED_LANES;
	sched_unlock(sched);
}

/* When a mark is due, if the work opened so far ends at `until`. */
static uint64_t mark_due(const struct sched *sched, uint32_t mark, uint64_t opened, uint64_t until)
{
	uint64_t after = opened - sched->mark_ns[mark % SCHED_MARKS];

	return until > after ? until - after : 0;
}

/* All marks up to the answer have been passed. Under the lock. */
static uint32_t see_marks(struct sched *sched)
{
	while (sched->done != sched->mark) {
		uint32_t next = sched->done + 1;
		unsigned lane = sched->mark_lane[next % SCHED_MARKS];

		if (lane < SCHED_LANES && (int32_t)(LOAD(&sched->lanes[lane]) - next) < 0)
			break;
		sched->done = next;
	}
	return sched->done;
}

/*
 * Work that does not come to its end may wait for what the program launches or stores after it: a stream for another, or
 * for a word of the host. Then the host must not be made to wait for that work. Under the lock.
 */
static void note_late(struct sched *sched, uint64_t late_ns)
{
	uint64_t length = sched->mark_work_ns[(sched->done + 1) % SCHED_MARKS];
	struct slot_sm *sm = sched->slot_sm;
	uint32_t hung = LOAD(&sm->hung);

	sched->late_ns += late_ns;
	/* Once for each: others then wait less long for the next. */
	if (!sched->stuck && sched->late_ns > SCHED_STUCK_NS &&
	    sched->late_ns / SCHED_HANG_TIMES > length) {
		sched->stuck = 1;
		STORE(&sm->hung, hung + TURN_HUNG_STEP < TURN_HUNG_MOST ? hung + TURN_HUNG_STEP
									: TURN_HUNG_MOST);
	}
	if (sched->late_ns > SCHED_HANG_NS && sched->late_ns / SCHED_HANG_TIMES > length)
		STORE(&sched->hangs, 1);
}

static void note_passed(struct sched *sched)
{
	uint32_t hung = LOAD(&sched->slot_sm->hung);

	if (hung && !sched->stuck)
		STORE(&sched->slot_sm->hung, hung - 1);
	sched->stuck = 0;
	sched->late_ns = 0;
	STORE(&sched->hangs, 0);
}

uint64_t marks_look(struct sched *sched, uint64_t now_ns)
{
	struct slot_sm *sm = sched->slot_sm;
	uint32_t done, last, before;
	uint64_t opened, left, until, due, at = 0;

	sched_lock(sched);
	before = sched->done;
	done = see_marks(sched);
	opened = sched->issued_ns - sched->closed_ns;
	until = LOAD(&sm->busy_until_ns);
	last = sched->mark;
	while (last != done && sched->mark_ns[last % SCHED_MARKS] > opened)
		last--;
	if (done != before) {
		note_passed(sched);
		overlap_seen(sched, sched->mark_ns[done % SCHED_MARKS], now_ns);
	}
	/* Sooner than predicted: what has not been seen is left, at most. */
	left = opened - sched->mark_ns[done % SCHED_MARKS];
	if ((done != before || (last == done && LOAD(&sm->unsure))) && until > now_ns + left)
		until = now_ns + left;
	if (last != done) {
		due = mark_due(sched, done + 1, opened, until);
		if (now_ns >= due + SCHED_LATE_NS) {
			until += now_ns - due;
			note_late(sched, now_ns - due);
		}
		/* The last but one tells how late the end will be; the last is the end. */
		at = last != done + 1 ? mark_due(sched, last - 1, opened, until) + SCHED_LATE_NS
				      : until;
		if (at < now_ns + SCHED_POLL_NS)
			at = now_ns + SCHED_POLL_NS;
		/* It may as well be early: a first sample is an upper bound. */
		if (at > now_ns + SCHED_EARLY_NS)
			at = now_ns + SCHED_EARLY_NS;
	}
	STORE(&sm->busy_until_ns, until);
	STORE(&sm->unsure, last != done);
	sched_unlock(sched);
	return at;
}
