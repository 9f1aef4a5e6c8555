/* Turns over the shared ledger; turns.h tells the idea. */
#include "sched/line.h"

/* What we hand to the device now starts when the last holder's work is done and the contexts are changed. */
static void start_after(const struct turns *turns, unsigned last, uint64_t now_ns)
{
	struct slot_sm *mine = &turns->file->slot[turns->slot].sm;
	uint64_t start = now_ns, its;

	if (last == NOBODY || last == turns->slot)
		return;
	its = LOAD(&turns->file->slot[last].sm.busy_until_ns);
	if (its > start && its < now_ns + TURN_DRAIN_NS)
		start = its;
	start += TURN_SWITCH_NS;
	if (LOAD(&mine->busy_until_ns) < start)
		STORE(&mine->busy_until_ns, start);
}

/*
 * The lease of a holder whom nobody asks just now: none when it has the device for itself; but a competitor that was
 * there a moment ago may only rest (for its cap, or between two bursts), and a queue without bounds would be in its
 * way, and its samples would hold the holder's kernels, when it comes back.
 */
static uint64_t quiet_lease(const struct turns *turns, uint64_t now_ns)
{
	uint64_t asked = LOAD(&turns->file->turn.contended_ns);

	return asked && asked <= now_ns && now_ns - asked < TURN_MEMORY_NS
		       ? now_ns + TURN_QUANTUM_NS
		       : 0;
}

/* We ask for what another has, or had a moment ago. */
static void note_contention(const struct turns *turns, unsigned holder, uint64_t now_ns)
{
	if (holder == NOBODY || holder == turns->slot)
		return;
	if (LOAD(&turns->file->slot[holder].sm.busy_until_ns) + TURN_MEMORY_NS > now_ns)
		STORE(&turns->file->turn.contended_ns, now_ns);
}

/* 1 when the holder's work is known to be over, rather than late or given up on. */
static int has_finished(const struct turns *turns, unsigned holder, uint64_t now_ns)
{
	const struct slot_sm *sm;

	if (holder == NOBODY || holder == turns->slot || !slot_alive(turns->ledger, holder))
		return 1;
	sm = &turns->file->slot[holder].sm;
	return !LOAD(&sm->unsure) && LOAD(&sm->busy_until_ns) <= now_ns;
}

/*
 * Work that does not end may wait for another process, which needs the device for that: the more often a holder's work has hung
 * of late, the less long it is waited for, down to a thirty-second.
 */
static uint64_t patience_ns(const struct turns *turns, unsigned holder)
{
	uint32_t hung = LOAD(&turns->file->slot[holder].sm.hung);

	return TURN_DRAIN_NS >> (hung < TURN_HUNG_MOST ? hung : TURN_HUNG_MOST) / TURN_HUNG_STEP;
}

static int take(const struct turns *turns, uint64_t old, uint64_t now_ns, uint64_t *ret_word)
{
	struct turn *turn = &turns->file->turn;
	uint64_t word = ((old >> 16) + 1) << 16 | (turns->slot + 1);
	int clean = has_finished(turns, owner_slot(old), now_ns);

	if (!atomic_compare_exchange_strong_explicit(&turn->owner, &old, word, memory_order_acq_rel,
						     memory_order_acquire))
		return 0;
	turn_forget(turns);
	if (turns->clean)
		STORE(turns->clean, clean ? word : 0);
	start_after(turns, owner_slot(old), now_ns);
	STORE(&turn->since_ns, now_ns);
	STORE(&turn->until_ns, first_in_line(turns, NOBODY) != NOBODY ? now_ns + TURN_QUANTUM_NS
								      : quiet_lease(turns, now_ns));
	set_present(turns, turns->slot);
	atomic_fetch_add_explicit(&turn->switches, 1, memory_order_relaxed);
	*ret_word = word;
	return 1;
}

/* A group that seldom wants the device is let in early: it is behind by more than a turn can make up. */
static int far_behind(const struct group *mine, const struct group *its)
{
	uint64_t vtime = LOAD(&mine->sm.vtime_ns);

	return group_priority(mine) == group_priority(its) &&
	       vtime + TURN_QUANTUM_NS * QUOTA_WEIGHT_DEFAULT / group_weight(mine) <
		       LOAD(&its->sm.vtime_ns);
}

/* Asks the holder to end: sets its lease if it has none, or shortens it for a higher priority. */
static uint64_t lease_end(const struct turns *turns, unsigned holder, uint64_t now_ns)
{
	struct turn *turn = &turns->file->turn;
	uint64_t until = LOAD(&turn->until_ns), since = LOAD(&turn->since_ns);
	const struct group *mine = group_of(turns, turns->slot), *its = group_of(turns, holder);
	uint64_t quantum = TURN_QUANTUM_NS, end;

	if (mine && its && group_priority(mine) > group_priority(its))
		quantum = TURN_QUANTUM_HIGH_NS;
	else if (mine && its && far_behind(mine, its))
		quantum = LOAD(&turns->file->slot[turns->slot].sm.in_sync) ? TURN_QUANTUM_HIGH_NS
									   : TURN_QUANTUM_MIN_NS;
	end = since + quantum > now_ns ? since + quantum : now_ns;
	if (end > now_ns + quantum)
		end = now_ns + quantum; /* a since from the future is damage */
	if (until == 0)
		set_present(turns, holder);
	if (until == 0 || until > end) {
		atomic_compare_exchange_strong(&turn->until_ns, &until, end);
		until = end;
	}
	return until;
}

/* How long a pause may be that is none. */
static uint64_t grace_of(const struct turns *turns, unsigned holder)
{
	const struct group *mine = group_of(turns, turns->slot), *its = group_of(turns, holder);

	if (LOAD(&turns->file->slot[holder].sm.in_sync))
		return TURN_SYNC_GRACE_NS;
	return mine && its && group_priority(its) > group_priority(mine) ? TURN_GRACE_HIGH_NS
									 : TURN_GRACE_NS;
}

/*
 * 1 when the holder has nothing on the device. Not while a mark is still to come: the end is then seen, not
 * guessed, since another context that becomes runnable too early costs two more switches.
 */
static int is_dry(const struct turns *turns, unsigned holder, uint64_t now_ns)
{
	const struct slot_sm *sm = &turns->file->slot[holder].sm;
	uint64_t grace = grace_of(turns, holder);

	if (LOAD(&sm->resting))
		grace = 0;
	if (LOAD(&sm->unsure))
		grace = patience_ns(turns, holder);
	return LOAD(&sm->busy_until_ns) + grace <= now_ns;
}

/* The lease is over: goes on if the holder comes before everybody who waits; anybody may say so. */
static int lease_goes_on(const struct turns *turns, unsigned holder, uint64_t until,
			 uint64_t now_ns)
{
	const struct slot_sm *sm = &turns->file->slot[holder].sm;
	struct turn *turn = &turns->file->turn;

	/* One whose work hangs is first in line for ever: what it waits for may be ours to run. */
	if (LOAD(&sm->unsure) && LOAD(&sm->paid_ns) < LOAD(&turn->since_ns))
		return 0;
	if (LOAD(&sm->resting) || first_in_line(turns, holder) != holder)
		return 0;
	if (atomic_compare_exchange_strong(&turn->until_ns, &until, now_ns + TURN_QUANTUM_NS)) {
		STORE(&turn->since_ns, now_ns);
		set_present(turns, holder);
	}
	return 1;
}

/* When the holder may be relieved: 0 = now, else the instant to look again. */
static uint64_t relief_at(const struct turns *turns, unsigned holder, uint64_t now_ns)
{
	const struct slot_sm *sm;
	uint64_t busy_until, until, patience;

	if (holder == NOBODY || !slot_alive(turns->ledger, holder))
		return 0;
	sm = &turns->file->slot[holder].sm;
	if (is_dry(turns, holder, now_ns))
		return 0;
	patience = patience_ns(turns, holder);
	busy_until = LOAD(&sm->busy_until_ns);
	until = lease_end(turns, holder, now_ns);
	if (LOAD(&sm->resting) && until > now_ns)
		until = now_ns;
	if (now_ns >= until) {
		/* Who asks for the first time is not in line yet: not over its head. */
		if (!comes_before(turns, turns->slot, holder) &&
		    lease_goes_on(turns, holder, until, now_ns))
			return now_ns + TURN_QUANTUM_NS;
		if (now_ns >= until + patience)
			return 0;
		/* Too early costs two more changes of context, a little late costs that little. */
		busy_until += TURN_MARGIN_NS;
		if (busy_until <= now_ns)
			return LOAD(&sm->unsure) ? now_ns + TURN_POLL_NS : 0;
		return busy_until < until + patience ? busy_until : until + patience;
	}
	/* Whichever comes first: it runs dry, or its lease is over. */
	busy_until += grace_of(turns, holder);
	if (busy_until <= now_ns)
		busy_until = now_ns + TURN_POLL_NS;
	return busy_until < until ? busy_until : until;
}

/* Whose turn it is does not take it: stopped, perhaps. It asks again when it runs. */
static void pass_over(const struct turns *turns, unsigned slot)
{
	STORE(&turns->file->slot[slot].sm.want, 0);
}

/* Those below keep their queues short while we are about. */
static void note_priority(const struct turns *turns, uint64_t now_ns)
{
	const struct group *group = group_of(turns, turns->slot);

	if (group && group_priority(group) > PRIORITY_LOW)
		STORE(&turns->file->turn.asked_ns[group_priority(group)], now_ns);
}

enum turn_state turn_try(const struct turns *turns, uint64_t now_ns, uint64_t *ret_word,
			 uint64_t *ret_look_ns, unsigned *ret_wake)
{
	uint64_t word = LOAD(&turns->file->turn.owner), look;
	unsigned holder = owner_slot(word), first;

	*ret_wake = 0;
	note_priority(turns, now_ns);
	note_contention(turns, holder, now_ns);
	if (holder == turns->slot) {
		if (!turn_must_yield(turns, now_ns, ret_wake)) {
			*ret_word = word;
			return TURN_HELD;
		}
	}
	look = relief_at(turns, holder, now_ns);
	join_line(turns, now_ns);
	first = first_in_line(turns, turns->slot);
	if (look == 0 && first == turns->slot && take(turns, word, now_ns, ret_word))
		return TURN_HELD;
	if (look == 0) {
		/* Somebody else's: wake it, and take over should it not act. */
		uint64_t free_since = holder == NOBODY
					      ? LOAD(&turns->file->turn.since_ns)
					      : LOAD(&turns->file->slot[holder].sm.busy_until_ns);

		if (now_ns > free_since + TURN_SLOW_NS &&
		    now_ns > LOAD(&turns->file->slot[first].sm.want_since_ns) + TURN_SLOW_NS &&
		    now_ns > LOAD(&turns->file->turn.until_ns) + TURN_SLOW_NS) {
			pass_over(turns, first);
			if (take(turns, word, now_ns, ret_word))
				return TURN_HELD;
		}
		*ret_wake = first + 1;
		look = now_ns + TURN_SLOW_NS;
	}
	*ret_look_ns = look;
	return TURN_WAIT;
}

int turn_must_yield(const struct turns *turns, uint64_t now_ns, unsigned *ret_wake)
{
	struct turn *turn = &turns->file->turn;
	uint64_t until = LOAD(&turn->until_ns);
	unsigned first;

	*ret_wake = 0;
	if (until == 0 || now_ns < until)
		return 0;
	first = first_in_line(turns, NOBODY);
	if (first == NOBODY) {
		if (atomic_compare_exchange_strong(&turn->until_ns, &until,
						   quiet_lease(turns, now_ns)))
			STORE(&turn->since_ns, now_ns);
		return 0; /* nobody asks any more */
	}
	if (lease_goes_on(turns, turns->slot, until, now_ns))
		return 0;
	*ret_wake = first + 1;
	return 1;
}

void turn_rest(const struct turns *turns, unsigned *ret_wake)
{
	struct slot_sm *sm = &turns->file->slot[turns->slot].sm;
	unsigned first;

	*ret_wake = 0;
	if (LOAD(&sm->resting))
		return;
	STORE(&sm->resting, 1);
	if (!turn_is_ours(turns))
		return;
	first = first_in_line(turns, NOBODY);
	if (first != NOBODY)
		*ret_wake = first + 1;
}

void turn_resume(const struct turns *turns)
{
	struct slot_sm *sm = &turns->file->slot[turns->slot].sm;

	if (LOAD(&sm->resting))
		STORE(&sm->resting, 0);
}

unsigned turn_done(const struct turns *turns)
{
	const struct group *mine = group_of(turns, turns->slot), *its;
	unsigned first;

	if (!mine || LOAD(&turns->file->turn.until_ns) == 0 || !turn_is_ours(turns))
		return 0;
	first = first_in_line(turns, NOBODY);
	its = first == NOBODY ? NULL : group_of(turns, first);
	return its && group_priority(its) < group_priority(mine) ? first + 1 : 0;
}

uint64_t turn_ahead_ns(const struct turns *turns, uint64_t now_ns)
{
	const struct group *group = group_of(turns, turns->slot);
	uint32_t mine = group ? group_priority(group) : PRIORITY_NORMAL;

	for (uint32_t higher = mine + 1; higher <= PRIORITY_HIGH; higher++) {
		uint64_t asked = LOAD(&turns->file->turn.asked_ns[higher]);

		if (asked && asked <= now_ns && now_ns - asked < TURN_HIGH_NS)
			return TURN_AHEAD_HIGH_NS;
	}
	return TURN_QUANTUM_NS;
}

uint64_t turn_room_at(const struct turns *turns, uint64_t now_ns, int can_gate)
{
	uint64_t until = LOAD(&turns->file->turn.until_ns);
	uint64_t busy_until = LOAD(&turns->file->slot[turns->slot].sm.busy_until_ns);
	uint64_t ahead = turn_ahead_ns(turns, now_ns), limit;

	if ((until == 0 && ahead == TURN_QUANTUM_NS) || busy_until <= now_ns)
		return 0;
	if (until == 0)
		until = now_ns + TURN_QUANTUM_NS;
	if (!can_gate && ahead > TURN_AHEAD_NS)
		ahead = TURN_AHEAD_NS;
	limit = until < now_ns + ahead ? until : now_ns + ahead;
	if (busy_until < limit)
		return 0;
	return busy_until >= until ? until : busy_until - ahead + 1;
}

int turn_is_ours(const struct turns *turns)
{
	return owner_slot(LOAD(&turns->file->turn.owner)) == turns->slot;
}

int turn_holder_is_deep(const struct turns *turns)
{
	unsigned holder = owner_slot(LOAD(&turns->file->turn.owner));
	const struct group *mine = group_of(turns, turns->slot), *its;

	if (holder == NOBODY || holder == turns->slot || !slot_alive(turns->ledger, holder) ||
	    !mine)
		return 0;
	its = group_of(turns, holder);
	return its && group_priority(its) == group_priority(mine) &&
	       LOAD(&turns->file->slot[holder].sm.deep);
}

uint64_t turn_alone(const struct turns *turns)
{
	uint64_t word = LOAD(&turns->file->turn.owner);

	return owner_slot(word) == turns->slot && turns->clean && LOAD(turns->clean) == word ? word
											     : 0;
}

int turn_contended(const struct turns *turns)
{
	unsigned holder = owner_slot(LOAD(&turns->file->turn.owner));

	/* Whoever asks a holder gives it a lease: no look along the line for each launch of a program that is alone. */
	if (holder == turns->slot)
		return LOAD(&turns->file->turn.until_ns) != 0;
	return holder != NOBODY || first_in_line(turns, NOBODY) != NOBODY;
}
