/* The line of those who want the device: who is in it, who comes first, and the virtual time that decides it. */
#include "sched/line.h"

static void want_set(const struct turns *turns, uint64_t now_ns)
{
	struct slot_sm *sm = &turns->file->slot[turns->slot].sm;

	if (LOAD(&sm->want))
		return;
	STORE(&sm->want_since_ns, now_ns);
	STORE(&sm->want, 1);
	atomic_fetch_or_explicit(&turns->file->turn.wanting[turns->slot / 64],
				 1ull << turns->slot % 64, memory_order_acq_rel);
}

void turn_forget(const struct turns *turns)
{
	STORE(&turns->file->slot[turns->slot].sm.want, 0);
	atomic_fetch_and_explicit(&turns->file->turn.wanting[turns->slot / 64],
				  ~(1ull << turns->slot % 64), memory_order_acq_rel);
}

/* 1 when slot a comes before slot b. */
int comes_before(const struct turns *turns, unsigned a, unsigned b)
{
	const struct group *ga = group_of(turns, a), *gb = group_of(turns, b);
	uint64_t va, vb;

	if (!ga || !gb)
		return ga != NULL;
	if (group_priority(ga) != group_priority(gb))
		return group_priority(ga) > group_priority(gb);
	if (ga != gb) {
		va = LOAD(&ga->sm.vtime_ns);
		vb = LOAD(&gb->sm.vtime_ns);
	} else {
		va = LOAD(&turns->file->slot[a].sm.vtime_ns);
		vb = LOAD(&turns->file->slot[b].sm.vtime_ns);
	}
	return va < vb;
}

/* The first in line among those that want the device, `self` included if it is a slot. */
unsigned first_in_line(const struct turns *turns, unsigned self)
{
	unsigned best = self;

	for (unsigned word = 0; word < LEDGER_SLOTS / 64; word++) {
		uint64_t bits = LOAD(&turns->file->turn.wanting[word]);

		while (bits) {
			unsigned slot = word * 64 + (unsigned)__builtin_ctzll(bits);
			const struct slot *s = &turns->file->slot[slot];

			bits &= bits - 1;
			if (slot == self || !LOAD(&s->sm.want))
				continue;
			if (!slot_alive(turns->ledger, slot)) {
				atomic_fetch_and_explicit(&turns->file->turn.wanting[word],
							  ~(1ull << slot % 64),
							  memory_order_acq_rel);
				continue;
			}
			if (best == NOBODY || comes_before(turns, slot, best))
				best = slot;
		}
	}
	return best;
}

/*
 * The present of virtual time moves to what a group has when it takes the turn, when its lease is renewed, and as long as
 * it has the device for itself. Not during a lease: who waits meanwhile must not lose what the holder uses up.
 */
void set_present(const struct turns *turns, unsigned holder)
{
	const struct group *group = group_of(turns, holder);

	if (group)
		STORE(&turns->file->turn.vclock_ns, LOAD(&group->sm.vtime_ns));
}

/* A newcomer or sleeper starts at the present, give or take a little: no credit from long ago. */
void join_line(const struct turns *turns, uint64_t now_ns)
{
	struct group *group = group_of(turns, turns->slot);
	uint64_t clock, floor, vtime;

	if (LOAD(&turns->file->slot[turns->slot].sm.want) || !group)
		return;
	clock = LOAD(&turns->file->turn.vclock_ns);
	floor = clock > TURN_LAG_NS ? clock - TURN_LAG_NS : 0;
	vtime = LOAD(&group->sm.vtime_ns);
	if (vtime < floor)
		atomic_compare_exchange_strong(&group->sm.vtime_ns, &vtime, floor);
	want_set(turns, now_ns);
}

/* Back by what was charged too much, but not to an hour ago: that would shut the others out. */
static void take_back(_Atomic uint64_t *vtime_ns, uint64_t by_ns, uint64_t present_ns)
{
	uint64_t floor = present_ns > TURN_REFUND_NS ? present_ns - TURN_REFUND_NS : 0;
	uint64_t old = LOAD(vtime_ns), new;

	do {
		if (old <= floor)
			return;
		new = old - floor > by_ns ? old - by_ns : floor;
	} while (!atomic_compare_exchange_weak(vtime_ns, &old, new));
}

void turn_charge(const struct turns *turns, int64_t busy_ns)
{
	struct group *group = group_of(turns, turns->slot);
	_Atomic uint64_t *mine = &turns->file->slot[turns->slot].sm.vtime_ns;
	uint64_t weighed, amount = (uint64_t)(busy_ns < 0 ? -busy_ns : busy_ns);

	if (!group)
		return;
	weighed = amount * QUOTA_WEIGHT_DEFAULT / group_weight(group);
	if (busy_ns < 0) {
		take_back(&group->sm.vtime_ns, weighed, LOAD(&turns->file->turn.vclock_ns));
		take_back(mine, amount, LOAD(mine));
		return;
	}
	atomic_fetch_add_explicit(&group->sm.vtime_ns, weighed, memory_order_relaxed);
	if (LOAD(&turns->file->turn.until_ns) == 0 && turn_is_ours(turns))
		set_present(turns, turns->slot);
	atomic_fetch_add_explicit(mine, amount, memory_order_relaxed);
}
