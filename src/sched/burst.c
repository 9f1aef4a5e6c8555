/*
 * Bursts: what a light program launches between two waits for the device. Its launches are collected behind the gate and run
 * in one go when it waits (backlog.c); by then whoever waits has waited for the turn and for all of the work. A service of a
 * higher priority should not: one burst is much like the other, so it asks for the turn early enough that the work behind the
 * gate is done when the last launch comes, and holds it until then.
 */
#include "sched/private.h"

#define FOLLOW	   4	   /* a quarter of what the last burst says */
#define PREPARE_NS 450000u /* the holder's queue is done, the contexts change, two threads wake */

/* Under the lock. */
void burst_launch(struct sched *sched, uint64_t now_ns)
{
	if (LOAD(&sched->burst_began_ns))
		return;
	STORE(&sched->burst_began_ns, now_ns);
	sched->burst_issued_ns = sched->issued_ns;
}

void burst_waits(struct sched *sched, uint64_t now_ns)
{
	uint64_t began, wall, work;

	/* Most who wait never stood behind a gate. */
	if (!LOAD(&sched->burst_began_ns))
		return;
	sched_lock(sched);
	began = LOAD(&sched->burst_began_ns);
	if (began && now_ns > began) {
		wall = now_ns - began;
		work = sched->issued_ns - sched->burst_issued_ns;
		if (!sched->burst_wall_ns) {
			sched->burst_wall_ns = wall;
			sched->burst_work_ns = work;
		}
		sched->burst_wall_ns = (sched->burst_wall_ns * (FOLLOW - 1) + wall) / FOLLOW;
		sched->burst_work_ns = (sched->burst_work_ns * (FOLLOW - 1) + work) / FOLLOW;
	}
	STORE(&sched->burst_began_ns, 0);
	sched_unlock(sched);
}

uint64_t burst_ask_at(struct sched *sched)
{
	uint64_t early, at = UINT64_MAX;

	if (!LOAD(&sched->demand.above))
		return at;
	sched_lock(sched);
	early = sched->burst_work_ns + PREPARE_NS;
	if (LOAD(&sched->burst_began_ns) && sched->burst_wall_ns)
		at = LOAD(&sched->burst_began_ns) +
		     (sched->burst_wall_ns > early ? sched->burst_wall_ns - early : 0);
	sched_unlock(sched);
	return at;
}
