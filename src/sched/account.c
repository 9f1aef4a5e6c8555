/* What is paid into the ledger, and what is corrected when timed launches come back. */
#include "base/clock.h"
#include "sched/bucket.h"
#include "sched/private.h"

int sched_is_shared(const struct sched *sched)
{
	if (!sched->use_turns)
		return 0;
	return LOAD(&sched->turns.file->turn.until_ns) != 0 || turn_contended(&sched->turns);
}

/* The group's cap in hundredths of a percent; 0 = none, or not to be kept here. */
uint32_t cap_of(const struct sched *sched)
{
	uint32_t cap = LOAD(&sched->member->sm_cap_bp);

	return sched->capping && cap < QUOTA_SM_NONE ? cap : 0;
}

static uint32_t cap_or_all(const struct sched *sched)
{
	uint32_t cap = cap_of(sched);

	return cap ? cap : QUOTA_SM_NONE;
}

void cap_begin(struct sched *sched)
{
	uint64_t nobodys = 0;

	sched->cap_seen_bp = cap_or_all(sched);
	atomic_compare_exchange_strong(&sched->group_sm->tat_cap_bp, &nobodys, sched->cap_seen_bp);
}

/* All members see the change, and one of them acts. Those whose own ceilings differ from the group's leave it alone. */
void cap_follow(struct sched *sched, uint64_t now_ns)
{
	uint32_t cap = cap_or_all(sched), old = sched->cap_seen_bp;
	uint64_t was = old;

	if (cap == old)
		return;
	sched->cap_seen_bp = cap;
	if (atomic_compare_exchange_strong(&sched->group_sm->tat_cap_bp, &was, cap))
		bucket_recap(&sched->group_sm->tat_ns, now_ns, old, cap);
}

/*
 * Virtual time decides between those who wait for one another. While nobody does it stands still: what somebody used then
 * is neither a debt nor anybody's credit.
 */
static void charge_clocks(const struct sched *sched, int64_t busy_ns)
{
	if (!LOAD(&sched->demand.free))
		turn_charge(&sched->turns, busy_ns);
}

/* How much may be charged before the next look: little where others wait for the device or the cap may hold it back. */
static void set_pace(struct sched *sched, uint32_t cap, int shared, uint64_t now_ns)
{
	int free = !LOAD(&sched->demand.others) && !shared;

	if (free && cap)
		free = bucket_has(&sched->group_sm->tat_ns, now_ns, cap, BUCKET_BURST_NS / 2);
	STORE(&sched->flush_ns, free ? SCHED_FLUSH_FREE_NS : SCHED_FLUSH_NS);
}

/* Pays `busy_ns` that goes to the device now. */
void pay(struct sched *sched, uint64_t busy_ns, uint64_t launches, uint64_t now_ns)
{
	uint32_t cap = cap_of(sched);
	uint64_t until, worked_ns = busy_ns;
	int shared;

	STORE(&sched->last_flush_ns, now_ns);
	if (launches) {
		atomic_fetch_add_explicit(&sched->group_sm->launches, launches,
					  memory_order_relaxed);
		atomic_fetch_add_explicit(&sched->slot_sm->launches, launches,
					  memory_order_relaxed);
	}
	if (!busy_ns)
		return;
	/* The meter leaves the gaps between kernels out, as profilers do; those that several streams fill are no gaps. */
	if (!LOAD(&sched->several))
		worked_ns -= launches * SCHED_GAP_NS;
	atomic_fetch_add_explicit(&sched->group_sm->busy_ns, worked_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&sched->slot_sm->busy_ns, worked_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&sched->demand.paid_ns, busy_ns, memory_order_relaxed);
	STORE(&sched->group_sm->last_busy_ns, now_ns);
	demand_works(sched, now_ns);
	STORE(&sched->slot_sm->paid_ns, now_ns);
	shared = sched_is_shared(sched);
	if (cap)
		bucket_charge(&sched->group_sm->tat_ns, now_ns, (int64_t)busy_ns, cap,
			      shared ? BUCKET_BURST_SHARED_NS : BUCKET_BURST_NS);
	charge_clocks(sched, (int64_t)busy_ns);
	set_pace(sched, cap, shared, now_ns);
	until = LOAD(&sched->slot_sm->busy_until_ns);
	STORE(&sched->slot_sm->busy_until_ns, (until > now_ns ? until : now_ns) + busy_ns);
	if (LOAD(&sched->flowing) != NOT_FLOWING)
		atomic_fetch_add_explicit(&sched->flow_busy_ns, busy_ns, memory_order_relaxed);
}

uint64_t pay_pending(struct sched *sched, uint64_t now_ns)
{
	uint64_t pending = atomic_exchange_explicit(&sched->pending, 0, memory_order_relaxed);

	pay(sched, pending & SCHED_NS_MASK, pending >> SCHED_NS_BITS, now_ns);
	return pending & SCHED_NS_MASK;
}

void pay_flown(struct sched *sched, uint64_t cost_ns, uint64_t now_ns)
{
	uint64_t pending = LOAD(&sched->pending), own = cost_ns + (1ull << SCHED_NS_BITS);

	/* Only the first time that it waits; and not what another thread has paid meanwhile. */
	if ((pending & SCHED_NS_MASK) <= cost_ns || pending < own ||
	    !atomic_compare_exchange_strong(&sched->pending, &pending, own))
		return;
	pending -= own;
	sched_lock(sched);
	sched->issued_ns += pending & SCHED_NS_MASK;
	sched_unlock(sched);
	pay(sched, pending & SCHED_NS_MASK, pending >> SCHED_NS_BITS, now_ns);
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
	charge_clocks(sched, delta_ns);
}

struct company sched_company(const struct sched *sched, uint64_t now_ns)
{
	struct company company = {.at_ns = now_ns};

	if (!sched->use_turns)
		company.word = !sched_is_shared(sched);
	else if (LOAD(&sched->demand.free))
		company.word = !LOAD(&sched->demand.seats);
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

/* By one part in so many, at least. */
static int differs(uint64_t before_ns, uint64_t after_ns, unsigned parts)
{
	return after_ns > before_ns + before_ns / parts || after_ns + before_ns / parts < before_ns;
}

void sched_sampled(struct sched *sched, struct cost *cost, uint64_t measured_ns,
		   uint64_t charged_ns, const struct company *then, uint64_t now_ns)
{
	struct company company = sched_company(sched, now_ns);
	int shared = then->word == 0 || then->word != company.word;
	uint64_t mean = LOAD(&cost->mean_ns);
	int64_t correction;

	/* An estimate says whether a cost has risen; that it has fallen only while none was ever measured alone. */
	if (!shared && company.intruded_ns != then->intruded_ns) {
		uint64_t rest = without_intruders(measured_ns, then, &company);

		shared = 1;
		if (rest > mean || !LOAD(&cost->clean))
			measured_ns = rest;
		else if (measured_ns > mean)
			measured_ns = mean;
	}
	/* Who launches on several streams may have been thought alone too soon. */
	if (LOAD(&sched->several) && LOAD(&cost->clean) && measured_ns > mean + mean / 4)
		shared = 1;
	correction = cost_sampled(cost, measured_ns, charged_ns, shared);
	/* Launches in it were charged by another mean. */
	if (correction || differs(mean, LOAD(&cost->mean_ns), 16))
		stretch_void(sched, differs(mean, LOAD(&cost->mean_ns), 4));
	sched_correct(sched, correction, now_ns);
}
