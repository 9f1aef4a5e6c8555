/* What the service thread does for the scheduler: turns for launches behind the gate, marks, what was left pending. */
#include "base/clock.h"
#include "sched/bucket.h"
#include "sched/private.h"

/* Nothing is left closed: launches flow, or the next burst is collected. */
static void opened_all(struct sched *sched, uint64_t word, uint64_t now_ns, unsigned *ret_wake)
{
	if (!collects(sched))
		begin_flow(sched, word, now_ns);
	else if (LOAD(&sched->demand.above) && !LOAD(&sched->slot_sm->in_sync))
		STORE(&sched->burst_runs, 1); /* asked ahead: the rest is still to come */
	else
		turn_rest(&sched->turns, ret_wake);
}

/* Gated work waits: try for the turn, open what fits. */
static uint64_t tick_gate(struct sched *sched, uint64_t now_ns, unsigned *ret_wake)
{
	uint64_t word, look = 0, paid;
	int all, idle = is_idle(sched, now_ns);
	uint32_t cap = cap_of(sched);

	if (cap) {
		look = bucket_ready_at(&sched->group_sm->tat_ns, now_ns, cap, SCHED_BATCH_NS);
		if (look) {
			turn_forget(&sched->turns);
			turn_rest(&sched->turns, ret_wake);
			return look;
		}
	}
	turn_resume(&sched->turns);
	if (goes_along(sched)) {
		turn_forget(&sched->turns);
		paid = backlog_open_all(sched);
		intrude(sched, paid);
		pay(sched, paid, 0, now_ns);
		flow_along(sched, LOAD(sched->owner));
		return 0;
	}
	if (collects(sched)) {
		look = backlog_ripe_at(sched, now_ns);
		if (look)
			return look;
	}
	if (turn_try(&sched->turns, now_ns, &word, &look, ret_wake) != TURN_HELD)
		return look;
	if (idle)
		work_begins(sched, now_ns);
	all = backlog_open(sched, now_ns, &paid);
	pay(sched, paid, 0, now_ns);
	if (all) {
		opened_all(sched, word, now_ns, ret_wake);
		return 0;
	}
	if (paid >= TURN_QUANTUM_NS * 3 / 4)
		density_sample(
			sched,
			10000); /* a whole lease did not empty the backlog: the host is far ahead */
	/* What is left closed waits for the next lease, or for room in this one. */
	look = LOAD(&sched->turns.file->turn.until_ns);
	if (turn_ahead_ns(&sched->turns, now_ns) < TURN_QUANTUM_NS)
		look = LOAD(&sched->slot_sm->busy_until_ns) - SCHED_LATE_NS;
	return look > now_ns + SCHED_LATE_NS ? look : now_ns + SCHED_LATE_NS;
}

int sched_open(struct sched *sched, uint64_t now_ns, unsigned *ret_wake)
{
	*ret_wake = 0;
	if (sched->closed_launches)
		tick_gate(sched, now_ns, ret_wake);
	return !sched->closed_launches;
}

/*
 * A program that waits for all of its kernels learns of their end itself, and is not taken for done meanwhile: until its
 * lease is over nobody needs to know.
 */
static uint64_t no_hurry(const struct sched *sched, uint64_t at_ns)
{
	uint64_t lease = LOAD(&sched->turns.file->turn.until_ns);

	if (!LOAD(&sched->slot_sm->in_sync) || !LOAD(&sched->waits_for_all) || lease <= at_ns)
		return at_ns;
	at_ns += SCHED_SYNC_LOOK_NS;
	return lease < at_ns ? lease : at_ns;
}

uint64_t sched_tick(struct sched *sched, uint64_t now_ns, unsigned *ret_wake)
{
	uint64_t next = 0, flushed = LOAD(&sched->last_flush_ns), demand = 0;

	*ret_wake = 0;
	cap_follow(sched, now_ns);
	if (sched->use_turns)
		demand = demand_look(sched, now_ns);
	if (sched->use_turns && sched->closed_launches)
		next = tick_gate(sched, now_ns, ret_wake);
	if (LOAD(&sched->ticking))
		STORE(&sched->ticking, 0);
	if (sched->use_turns && turn_is_ours(&sched->turns)) {
		uint32_t unsure = LOAD(&sched->slot_sm->unsure);
		uint64_t at = marks_look(sched, now_ns);

		if (at)
			at = no_hurry(sched, at);
		if (at)
			STORE(&sched->ticking, 1);
		if (at && (next == 0 || at < next))
			next = at;
		if (unsure && !at && *ret_wake == 0)
			turn_must_yield(&sched->turns, now_ns, ret_wake);
	}
	if (LOAD(&sched->pending) && !LOAD(&sched->waiting) &&
	    now_ns - flushed > SCHED_IDLE_FLUSH_NS && LOAD(&sched->flowing) == LOAD(sched->owner)) {
		pay_pending(sched, now_ns);
		/* The next launch comes the long way, however little it is charged: is it what it was? Beside others
		 * launches come that way all the time. */
		if (!LOAD(&sched->demand.others))
			STORE(&sched->flush_ns, 0);
	}
	return demand && (next == 0 || demand < next) ? demand : next;
}
