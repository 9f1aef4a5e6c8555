/* The launch path's decisions; sched.h tells the idea. Time is an argument; nothing here waits or calls CUDA. */
#include <string.h>

#include "base/clock.h"
#include "sched/bucket.h"
#include "sched/private.h"

#define PAUSE_NS \
	20000000u /* a group that did nothing for so long, and did not wait for a turn, had nothing to do */

/* Where in the ledger we look; the member's own numbers are in private memory and were checked. */
static void point(struct sched *sched)
{
	const struct member *member = sched->member;
	struct ledger_file *file = member->ledger->file;

	sched->group_sm = &file->group[member->group].sm;
	sched->slot_sm = &file->slot[member->slot].sm;
	sched->turns = (struct turns){member->ledger, file, member->slot, &sched->clean};
	sched->owner = sched->use_turns ? &file->turn.owner : &sched->nobody;
	/* What the seat's last owner left behind is not ours. */
	turn_forget(&sched->turns);
	STORE(&sched->slot_sm->in_sync, 0);
	STORE(&sched->slot_sm->resting, 0);
	STORE(&sched->slot_sm->unsure, 0);
	STORE(&sched->slot_sm->busy_until_ns, 0);
	STORE(&sched->slot_sm->deep, 0);
	STORE(&sched->slot_sm->hung, 0);
	STORE(&sched->slot_sm->demand_bp, 10000);
	cap_begin(sched);
}

void sched_rebind(struct sched *sched)
{
	if (sched->turns.file == sched->member->ledger->file &&
	    sched->turns.slot == sched->member->slot &&
	    sched->group_sm == &sched->turns.file->group[sched->member->group].sm)
		return;
	point(sched);
	if (sched->use_turns)
		STORE(&sched->flowing, NOT_FLOWING);
}

void sched_init(struct sched *sched, struct member *member, enum sched_mode mode,
		int contexts_overlap)
{
	memset(sched, 0, sizeof(*sched));
	sched->member = member;
	sched->capping = mode != SCHED_OFF;
	sched->use_turns = mode == SCHED_TURNS || (mode == SCHED_AUTO && !contexts_overlap);
	if (member->ledger->private_copy)
		sched->use_turns = 0;
	point(sched);
	sched->flowing = sched->use_turns ? NOT_FLOWING : 0;
	sched->open = &sched->open_word;
	sched->lanes = sched->lane_words;
	sched->chunk = 1;
	sched->scale = SCHED_ONE;
	sched->flush_ns = SCHED_FLUSH_NS;
}

/* A gated launch is paid when its chunk opens; 0 if it has been paid already, while it waited for the cap. */
static uint64_t take_back(struct sched *sched, uint64_t cost_ns)
{
	uint64_t pending = LOAD(&sched->pending);

	do {
		if ((pending & SCHED_NS_MASK) < cost_ns)
			return 0;
	} while (!atomic_compare_exchange_weak(&sched->pending, &pending, pending - cost_ns));
	return cost_ns;
}

/* No turn: a gate in the stream, or a wait on the host. */
static enum admission hold_back(struct sched *sched, uint64_t cost_ns, uint64_t now_ns,
				int can_gate, struct admit_result *ret)
{
	uint64_t unpaid;

	if (!can_gate)
		return ADMIT_WAIT;
	end_flow(sched, now_ns);
	unpaid = take_back(sched, cost_ns);
	ret->chunk = backlog_add(sched, unpaid, now_ns, &ret->kick);
	if (ret->chunk)
		return ADMIT_GATE;
	atomic_fetch_add_explicit(&sched->pending, unpaid, memory_order_relaxed);
	return ADMIT_WAIT;
}

static enum admission admit_turn(struct sched *sched, uint64_t cost_ns, uint64_t now_ns,
				 int can_gate, struct admit_result *ret)
{
	uint64_t word;

	if (goes_along(sched)) {
		if (sched->closed_launches == 0) {
			turn_forget(&sched->turns);
			intrude(sched, LOAD(&sched->pending) & SCHED_NS_MASK);
			flow_along(sched, LOAD(sched->owner));
			return ADMIT_GO;
		}
		ret->kick = 1; /* the tick opens the backlog first */
	} else if (collects(sched) && can_gate && !LOAD(&sched->burst_runs)) {
		ret->until_ns = now_ns + TURN_GRACE_NS;
		return hold_back(sched, cost_ns, now_ns, can_gate, ret);
	}
	/* With launches behind the gate, later ones must not overtake them: the tick takes the turn. */
	if (LOAD(&sched->slot_sm->want) && sched->closed_launches && can_gate)
		return hold_back(sched, cost_ns, now_ns, can_gate, ret);
	if (turn_try(&sched->turns, now_ns, &word, &ret->until_ns, &ret->wake) == TURN_HELD) {
		if (sched->closed_launches == 0) {
			uint64_t room_at = LOAD(&sched->hangs)
						   ? 0
						   : turn_room_at(&sched->turns, now_ns, can_gate);

			if (room_at == 0) {
				note_dry(sched, LOAD(&sched->flowing) == word, now_ns);
				/* While it holds the turn for a burst each launch is paid for, that it be
				 * seen to work. */
				if (!LOAD(&sched->burst_runs))
					begin_flow(sched, word, now_ns);
				return ADMIT_GO;
			}
			ret->until_ns = room_at;
			return can_gate ? hold_back(sched, cost_ns, now_ns, can_gate, ret)
					: ADMIT_WAIT;
		}
		ret->until_ns = now_ns + TURN_GRACE_NS; /* the tick opens the backlog first */
		ret->kick = 1;
	} else {
		end_flow(sched, now_ns);
	}
	return hold_back(sched, cost_ns, now_ns, can_gate, ret);
}

/* The device has nothing of ours, and begins with what comes now: at once, or when it has changed contexts. */
void work_begins(struct sched *sched, uint64_t now_ns)
{
	uint64_t until = LOAD(&sched->slot_sm->busy_until_ns);

	if (LOAD(&sched->several))
		overlap_begin(sched, until > now_ns ? until : now_ns);
}

int is_idle(const struct sched *sched, uint64_t now_ns)
{
	return sched_done_by(sched, now_ns) && !LOAD(&sched->slot_sm->unsure);
}

/* Others compete, or a cap has to know what several streams take together. */
static int wants_marks(const struct sched *sched, uint32_t cap)
{
	if (flows_along(sched))
		return 0;
	return LOAD(&sched->turns.file->turn.until_ns) != 0 || LOAD(&sched->demand.others) ||
	       (cap && LOAD(&sched->several));
}

/* A group may not lose what it waits for; what it did not ask for it has not waited for. */
static void forget_credit(struct sched *sched, uint32_t cap, uint64_t now_ns)
{
	uint64_t last = LOAD(&sched->group_sm->last_busy_ns);

	if (!LOAD(&sched->slot_sm->want) && last <= now_ns && now_ns - last > PAUSE_NS)
		bucket_forget(&sched->group_sm->tat_ns, now_ns, cap, BUCKET_BURST_NS);
}

/* 0 when the cap lets work begin now; else when: next to others, and for several streams, a batch is saved up first. */
static uint64_t cap_allows_at(struct sched *sched, uint32_t cap, uint64_t cost_ns, uint64_t now_ns)
{
	uint64_t at = bucket_ready_at(&sched->group_sm->tat_ns, now_ns, cap, 0), batch;

	if (!at || !sched->use_turns)
		return at;
	batch = turn_contended(&sched->turns) ? SCHED_BATCH_NS
					      : stretch_batch_ns(sched, cap, cost_ns, now_ns);
	return batch ? bucket_ready_at(&sched->group_sm->tat_ns, now_ns, cap, batch) : at;
}

/*
 * No launch came here for long: either the program had little to do, or its launches take much longer than they are charged. Not
 * while a cap held it back.
 */
static int is_overdue(const struct sched *sched, uint64_t now_ns)
{
	return !LOAD(&sched->waiting) && now_ns > LOAD(&sched->admitted_ns) + SCHED_OVERDUE_NS;
}

enum admission sched_admit(struct sched *sched, uint64_t cost_ns, unsigned lane, uint64_t now_ns,
			   int can_gate, struct admit_result *ret)
{
	uint32_t cap = cap_of(sched);
	enum admission what = ADMIT_GO;
	int idle;

	memset(ret, 0, sizeof(*ret));
	ret->overdue = is_overdue(sched, now_ns);
	if (sched->use_turns && LOAD(&sched->many_streams) && turn_is_ours(&sched->turns))
		marks_look(sched, now_ns);
	/* Before a turn is taken: from then on the end of its last holder's work counts as ours. */
	idle = is_idle(sched, now_ns);
	if (cap) {
		forget_credit(sched, cap, now_ns);
		ret->until_ns = cap_allows_at(sched, cap, cost_ns, now_ns);
		if (ret->until_ns) {
			if (!LOAD(&sched->waiting)) {
				flow_pauses(sched, now_ns, ret->until_ns);
			}
			pay_flown(sched, cost_ns, now_ns);
			stretch_pauses(sched, now_ns);
			STORE(&sched->waiting, 1);
			if (sched->use_turns && sched->closed_launches == 0) {
				turn_forget(&sched->turns);
				turn_rest(&sched->turns, &ret->wake);
			}
			return ADMIT_WAIT;
		}
	}
	if (sched->use_turns) {
		turn_resume(&sched->turns);
		what = admit_turn(sched, cost_ns, now_ns, can_gate, ret);
	}
	STORE(&sched->waiting, what == ADMIT_WAIT);
	if (what == ADMIT_GO) {
		uint64_t paid;

		STORE(&sched->admitted_ns, now_ns);
		/* What flowed just before is on the device, though not paid for. */
		ret->dry = idle && !flows_along(sched) &&
			   (LOAD(&sched->pending) & SCHED_NS_MASK) <= cost_ns;
		if (idle)
			work_begins(sched, now_ns);
		paid = pay_pending(sched, now_ns);
		if (sched->use_turns)
			ret->mark = marks_issue(sched, paid, lane, wants_marks(sched, cap));
		if (sched->use_turns)
			ret->stretch = stretch_step(sched, cap, cost_ns, ret->dry, now_ns);
	} else if (what == ADMIT_GATE) {
		ret->mark = marks_issue(sched, cost_ns, lane, 1);
	}
	if (ret->mark && !atomic_exchange_explicit(&sched->ticking, 1, memory_order_acq_rel))
		ret->kick = 1;
	return what;
}

int sched_sync_begin(struct sched *sched, uint64_t now_ns)
{
	unsigned wake; /* whom need not be woken: he knows when the work is done */

	atomic_fetch_add_explicit(&sched->slot_sm->in_sync, 1, memory_order_acq_rel);
	demand_wait_begins(sched, now_ns);
	burst_waits(sched, now_ns);
	if (atomic_exchange(&sched->burst_runs, 0))
		turn_rest(&sched->turns, &wake);
	return sched->closed_launches && collects(sched);
}

unsigned sched_sync_end(struct sched *sched, uint64_t now_ns, int all_done)
{
	uint32_t n = LOAD(&sched->slot_sm->in_sync);

	while (n && !atomic_compare_exchange_weak(&sched->slot_sm->in_sync, &n, n - 1))
		;
	demand_wait_ends(sched, now_ns);
	STORE(&sched->waits_for_all, (uint32_t)all_done);
	if (!all_done || sched->closed_launches || !sched->use_turns)
		return 0;
	if (LOAD(&sched->slot_sm->busy_until_ns) > now_ns)
		STORE(&sched->slot_sm->busy_until_ns, now_ns);
	/* Its marks have passed: the service thread need not look for them. */
	if (LOAD(&sched->slot_sm->unsure))
		marks_look(sched, now_ns);
	return turn_done(&sched->turns);
}
