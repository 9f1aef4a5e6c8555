/* The launch path's decisions; sched.h tells the idea. Time is an argument; nothing here waits or calls CUDA. */
#include <string.h>

#include "base/clock.h"
#include "sched/bucket.h"
#include "sched/private.h"

/* An owner word never equals this (its slot part is out of range), so "not flowing" can not match. */
#define NOT_FLOWING UINT64_MAX

#define NOT_MEASURED (UINT64_MAX / 2)

#define DENSE_BP       8500u
#define DEEP_SHARE     16u     /* of 256 launches: the device is seldom idle when one comes */
#define DENSITY_MIN_NS 500000u /* shorter stretches of flow say little */

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
	STORE(&sched->slot_sm->demand_bp, 10000);
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
}

/* The group's cap in hundredths of a percent; 0 = none, or not to be kept here. */
static uint32_t cap_of(const struct sched *sched)
{
	uint32_t cap = LOAD(&sched->member->sm_cap_bp);

	return sched->capping && cap < QUOTA_SM_NONE ? cap : 0;
}

/* Pays `busy_ns` that goes to the device now. */
static void pay(struct sched *sched, uint64_t busy_ns, uint64_t launches, uint64_t now_ns)
{
	uint32_t cap = cap_of(sched);
	uint64_t until;

	STORE(&sched->last_flush_ns, now_ns);
	if (launches) {
		atomic_fetch_add_explicit(&sched->group_sm->launches, launches,
					  memory_order_relaxed);
		atomic_fetch_add_explicit(&sched->slot_sm->launches, launches,
					  memory_order_relaxed);
	}
	if (!busy_ns)
		return;
	atomic_fetch_add_explicit(&sched->group_sm->busy_ns, busy_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&sched->slot_sm->busy_ns, busy_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&sched->demand.paid_ns, busy_ns, memory_order_relaxed);
	STORE(&sched->group_sm->last_busy_ns, now_ns);
	STORE(&sched->slot_sm->paid_ns, now_ns);
	if (cap)
		bucket_charge(&sched->group_sm->tat_ns, now_ns, (int64_t)busy_ns, cap,
			      sched_is_shared(sched) ? BUCKET_BURST_SHARED_NS : BUCKET_BURST_NS);
	turn_charge(&sched->turns, (int64_t)busy_ns);
	until = LOAD(&sched->slot_sm->busy_until_ns);
	STORE(&sched->slot_sm->busy_until_ns, (until > now_ns ? until : now_ns) + busy_ns);
	if (LOAD(&sched->flowing) != NOT_FLOWING)
		atomic_fetch_add_explicit(&sched->flow_busy_ns, busy_ns, memory_order_relaxed);
}

static uint64_t pay_pending(struct sched *sched, uint64_t now_ns)
{
	uint64_t pending = atomic_exchange_explicit(&sched->pending, 0, memory_order_relaxed);

	pay(sched, pending & SCHED_NS_MASK, pending >> SCHED_NS_BITS, now_ns);
	return pending & SCHED_NS_MASK;
}

/* Launches flow from now on: with what was opened before done, the program is on its own. */
static void begin_flow(struct sched *sched, uint64_t word, uint64_t now_ns)
{
	uint64_t until = LOAD(&sched->slot_sm->busy_until_ns);

	if (LOAD(&sched->flowing) == word)
		return;
	STORE(&sched->flow_began_ns, until > now_ns ? until : now_ns);
	STORE(&sched->flow_busy_ns, 0);
	STORE(&sched->flowing, word);
}

static void density_sample(struct sched *sched, uint32_t bp)
{
	uint32_t old = LOAD(&sched->density_bp);

	STORE(&sched->density_bp, old ? (old * 3 + bp) / 4 : bp);
}

/* Launches flow, but others may be on the device as well: nothing is learnt about the program. */
static void flow_along(struct sched *sched, uint64_t word)
{
	STORE(&sched->flow_began_ns, NOT_MEASURED);
	STORE(&sched->flowing, word);
}

static void end_flow(struct sched *sched, uint64_t now_ns)
{
	uint64_t began = LOAD(&sched->flow_began_ns), busy = LOAD(&sched->flow_busy_ns), wall;

	if (LOAD(&sched->flowing) == NOT_FLOWING)
		return;
	STORE(&sched->flowing, NOT_FLOWING);
	if (began == NOT_MEASURED || now_ns < began + DENSITY_MIN_NS)
		return;
	wall = now_ns - began;
	density_sample(sched, busy >= wall ? 10000u : (uint32_t)(busy * 10000 / wall));
}

int sched_is_dense(const struct sched *sched)
{
	return LOAD(&sched->density_bp) >= DENSE_BP;
}

int sched_is_shared(const struct sched *sched)
{
	if (!sched->use_turns)
		return 0;
	return LOAD(&sched->turns.file->turn.until_ns) != 0 || turn_contended(&sched->turns);
}

struct company sched_company(const struct sched *sched, uint64_t now_ns)
{
	struct company company = {.at_ns = now_ns};

	if (!sched->use_turns)
		company.word = !sched_is_shared(sched);
	else if (LOAD(&sched->demand.free))
		company.word = !LOAD(&sched->demand.others);
	else
		company.word = turn_alone(&sched->turns);
	company.intruded_ns = LOAD(&sched->turns.file->turn.intruded_ns);
	return company;
}

/*
 * What is left of a measure when those who went along had part of the time since the launch, and each slice's end cost two
 * changes of context.
 */
static uint64_t without_intruders(uint64_t measured_ns, const struct company *then,
				  const struct company *now)
{
	uint64_t wall = now->at_ns > then->at_ns ? now->at_ns - then->at_ns : 0;
	uint64_t theirs = now->intruded_ns - then->intruded_ns;
	double mine = wall > theirs ? 1 - (double)theirs / (double)wall : 0;

	return (uint64_t)((double)measured_ns * mine * TURN_SLICE_NS /
			  (TURN_SLICE_NS + 2 * TURN_SWITCH_NS)) +
	       1;
}

void sched_sampled(struct sched *sched, struct cost *cost, uint64_t measured_ns,
		   uint64_t charged_ns, const struct company *then, uint64_t now_ns)
{
	struct company company = sched_company(sched, now_ns);
	int shared = then->word == 0 || then->word != company.word;
	uint64_t mean = LOAD(&cost->mean_ns);

	/* An estimate says whether a cost has risen; that it has fallen only while none was ever measured alone. */
	if (!shared && company.intruded_ns != then->intruded_ns) {
		uint64_t rest = without_intruders(measured_ns, then, &company);

		shared = 1;
		if (rest > mean || !LOAD(&cost->clean))
			measured_ns = rest;
		else if (measured_ns > mean)
			measured_ns = mean;
	}
	sched_correct(sched, cost_sampled(cost, measured_ns, charged_ns, shared), now_ns);
}

/* Others who go by turns learn that they were not alone. */
static void intrude(const struct sched *sched, uint64_t busy_ns)
{
	if (LOAD(&sched->demand.others))
		atomic_fetch_add_explicit(&sched->turns.file->turn.intruded_ns, busy_ns,
					  memory_order_relaxed);
}

/*
 * Without a turn: where all together need less than there is, and beside a holder that is never dry for one who needs less
 * than his part.
 */
static int goes_along(const struct sched *sched)
{
	if (LOAD(&sched->demand.free))
		return 1;
	return LOAD(&sched->demand.light) && turn_holder_is_deep(&sched->turns);
}

/* Light beside others who wait for each kernel: collected, and run in one go. */
static int collects(const struct sched *sched)
{
	return LOAD(&sched->demand.light) && LOAD(&sched->demand.others);
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

/*
 * Is the device idle when a launch comes, but for the first of a turn, which has waited for it? If not, others who need
 * little flow along. A kernel that takes all of a turn counts as a queue: the driver's slices divide it as well.
 */
static void note_dry(struct sched *sched, int in_flow, uint64_t now_ns)
{
	int dry = in_flow && LOAD(&sched->slot_sm->busy_until_ns) <= now_ns;

	sched->dry_share = (sched->dry_share * 15 + (dry ? 256u : 0)) / 16;
	if (sched->dry_share < DEEP_SHARE || sched->dry_share > 2 * DEEP_SHARE)
		STORE(&sched->slot_sm->deep, sched->dry_share < DEEP_SHARE);
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
	} else if (collects(sched) && can_gate) {
		ret->until_ns = now_ns + TURN_GRACE_NS;
		return hold_back(sched, cost_ns, now_ns, can_gate, ret);
	}
	/* With launches behind the gate, later ones must not overtake them: the tick takes the turn. */
	if (LOAD(&sched->slot_sm->want) && sched->closed_launches && can_gate)
		return hold_back(sched, cost_ns, now_ns, can_gate, ret);
	if (turn_try(&sched->turns, now_ns, &word, &ret->until_ns, &ret->wake) == TURN_HELD) {
		if (sched->closed_launches == 0) {
			uint64_t room_at = turn_room_at(&sched->turns, now_ns, can_gate);
			if (room_at == 0) {
				note_dry(sched, LOAD(&sched->flowing) == word, now_ns);
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
static void work_begins(struct sched *sched, uint64_t now_ns)
{
	uint64_t until = LOAD(&sched->slot_sm->busy_until_ns);

	if (LOAD(&sched->many_streams))
		overlap_begin(sched, until > now_ns ? until : now_ns);
}

static int is_idle(const struct sched *sched, uint64_t now_ns)
{
	return LOAD(&sched->slot_sm->busy_until_ns) <= now_ns && !LOAD(&sched->slot_sm->unsure);
}

/* Others compete, or a cap has to know what several streams take together. */
static int wants_marks(const struct sched *sched, uint32_t cap)
{
	return LOAD(&sched->turns.file->turn.until_ns) != 0 || LOAD(&sched->demand.others) ||
	       (cap && LOAD(&sched->many_streams));
}

enum admission sched_admit(struct sched *sched, uint64_t cost_ns, unsigned lane, uint64_t now_ns,
			   int can_gate, struct admit_result *ret)
{
	uint32_t cap = cap_of(sched);
	enum admission what = ADMIT_GO;
	/* Before a turn is taken: from then on the end of its last holder's work counts as ours. */
	int idle = is_idle(sched, now_ns);

	memset(ret, 0, sizeof(*ret));
	if (cap) {
		uint64_t batch = sched->use_turns && (turn_contended(&sched->turns) ||
						      overlap_wants_batch(sched, now_ns))
					 ? SCHED_BATCH_NS
					 : 0;

		ret->until_ns = bucket_ready_at(&sched->group_sm->tat_ns, now_ns, cap, batch);
		if (ret->until_ns) {
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
		if (LOAD(&sched->many_streams) && turn_is_ours(&sched->turns))
			marks_look(sched, now_ns);
		what = admit_turn(sched, cost_ns, now_ns, can_gate, ret);
	}
	STORE(&sched->waiting, what == ADMIT_WAIT);
	if (what == ADMIT_GO) {
		uint64_t paid;

		ret->dry = idle;
		if (idle)
			work_begins(sched, now_ns);
		paid = pay_pending(sched, now_ns);

		if (sched->use_turns)
			ret->mark = marks_issue(sched, paid, lane, wants_marks(sched, cap));
		if (LOAD(&sched->flow_began_ns) == NOT_MEASURED)
			ret->dry = 0;
	} else if (what == ADMIT_GATE) {
		ret->mark = marks_issue(sched, cost_ns, lane, 1);
	}
	if (ret->mark && !atomic_exchange_explicit(&sched->ticking, 1, memory_order_acq_rel))
		ret->kick = 1;
	return what;
}

int sched_sync_begin(struct sched *sched, uint64_t now_ns)
{
	atomic_fetch_add_explicit(&sched->slot_sm->in_sync, 1, memory_order_acq_rel);
	demand_wait_begins(sched, now_ns);
	return sched->closed_launches && collects(sched);
}
unsigned sched_sync_end(struct sched *sched, uint64_t now_ns, int all_done)
{
	uint32_t n = LOAD(&sched->slot_sm->in_sync);

	while (n && !atomic_compare_exchange_weak(&sched->slot_sm->in_sync, &n, n - 1))
		;
	demand_wait_ends(sched, now_ns);
	if (!all_done || sched->closed_launches || !sched->use_turns)
		return 0;
	if (LOAD(&sched->slot_sm->busy_until_ns) > now_ns)
		STORE(&sched->slot_sm->busy_until_ns, now_ns);
	return turn_done(&sched->turns);
}

void sched_move_words(struct sched *sched, _Atomic uint32_t *open, _Atomic uint32_t *lanes)
{
	sched_lock(sched);
	if (open != sched->open)
		STORE(open, LOAD(sched->open));
	for (unsigned i = 0; i < SCHED_LANES; i++)
		STORE(&lanes[i], LOAD(&sched->lanes[i]));
	sched->open = open;
	sched->lanes = lanes;
	sched_unlock(sched);
}

void sched_own_words(struct sched *sched)
{
	sched_lock(sched);
	STORE(sched->open, sched->chunk);
	for (uint32_t chunk = sched->chunk - SCHED_CHUNKS + 1; chunk != sched->chunk + 1; chunk++)
		sched->ring_launches[chunk % SCHED_CHUNKS] = 0;
	sched->closed_launches = 0;
	sched->closed_ns = 0;
	STORE(&sched->open_word, sched->chunk);
	for (unsigned i = 0; i < SCHED_LANES; i++)
		STORE(&sched->lane_words[i],
		      sched->mark); /* what was under way is not waited for */
	sched->open = &sched->open_word;
	sched->lanes = sched->lane_words;
	sched_unlock(sched);
}

void sched_correct(struct sched *sched, int64_t delta_ns, uint64_t now_ns)
{
	uint32_t cap = cap_of(sched);

	if (delta_ns == 0)
		return;
	delta_ns = delta_ns < 0 ? -(int64_t)sched_scaled(sched, (uint64_t)-delta_ns)
				: (int64_t)sched_scaled(sched, (uint64_t)delta_ns);
	atomic_fetch_add_explicit(&sched->group_sm->busy_ns, (uint64_t)delta_ns,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&sched->slot_sm->busy_ns, (uint64_t)delta_ns,
				  memory_order_relaxed);
	if (cap)
		bucket_charge(&sched->group_sm->tat_ns, now_ns, delta_ns, cap,
			      BUCKET_BURST_SHARED_NS);
	turn_charge(&sched->turns, delta_ns);
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
	if (all && collects(sched)) {
		turn_rest(&sched->turns, ret_wake);
		return 0;
	}
	if (all)
		begin_flow(sched, word, now_ns);
	else if (paid >= TURN_QUANTUM_NS * 3 / 4)
		density_sample(
			sched,
			10000); /* a whole lease did not empty the backlog: the host is far ahead */
	if (LOAD(&sched->flowing) == word)
		return 0;
	/* What is left closed waits for the next lease, or for room in this one. */
	look = LOAD(&sched->turns.file->turn.until_ns);
	if (turn_ahead_ns(&sched->turns, now_ns) < TURN_QUANTUM_NS)
		look = LOAD(&sched->slot_sm->busy_until_ns) - SCHED_LATE_NS;
	return look > now_ns + SCHED_LATE_NS ? look : now_ns + SCHED_LATE_NS;
}

uint64_t sched_tick(struct sched *sched, uint64_t now_ns, unsigned *ret_wake)
{
	uint64_t next = 0, flushed = LOAD(&sched->last_flush_ns), demand = 0;

	*ret_wake = 0;
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
			STORE(&sched->ticking, 1);
		if (at && (next == 0 || at < next))
			next = at;
		if (unsure && !at && *ret_wake == 0)
			turn_must_yield(&sched->turns, now_ns, ret_wake);
	}
	if (LOAD(&sched->pending) && !LOAD(&sched->waiting) &&
	    now_ns - flushed > SCHED_IDLE_FLUSH_NS && LOAD(&sched->flowing) == LOAD(sched->owner))
		pay_pending(sched, now_ns);
	return demand && (next == 0 || demand < next) ? demand : next;
}
