/*
 * How much of the device each process would use if it had it for itself, and what follows from that for turns.
 *
 * Exclusive turns win where somebody always has work: nobody runs dry between two kernels of his, and contexts change a
 * hundred times a second instead of thousands. They lose where programs leave gaps: who holds the device while his host
 * thinks keeps the others from filling them. So:
 * * - When all who use the device need less than there is together, there are no turns: everybody flows, as without cuota. But
 *   where priorities differ somebody must not wait for the others' slices.
* - A process that needs less than its group's part is light. Beside a holder that is never dry it flows: the driver's slices
 *   cost the holder two changes of context for a handful of kernels. Beside one that waits for each kernel it collects its
 *   launches behind the gate and has them run in one go, a short turn each (sched.c, backlog.c).
 * * Demand is busy time over the time that the work would have taken alone: that of the host while no thread waited for the device,
 * and that of the device, of which some is one in the other: half of the lesser, for want of knowing.
*/
#include "sched/demand.h"

#include "ledger/protocol.h"
#include "sched/private.h"

#define WINDOW_NS  50000000ull	/* how long is looked at */
#define RECENT_NS  300000000ull /* who has not used the device for so long does not count */
#define ALL	   10000u
#define FREE_BELOW 8000u /* all together: no turns, */
#define FREE_UNTIL 9000u /* until they need more than this */

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

void demand_wait_begins(struct sched *sched, uint64_t now_ns)
{
	if (atomic_fetch_add(&sched->demand.waiters, 1) == 0)
		STORE(&sched->demand.wait_since_ns, now_ns);
}

void demand_wait_ends(struct sched *sched, uint64_t now_ns)
{
	struct demand *d = &sched->demand;
	uint64_t began;

	if (atomic_fetch_sub(&d->waiters, 1) != 1)
		return;
	began = atomic_exchange(&d->wait_since_ns, 0);
	if (began)
		atomic_fetch_add(&d->waited_ns, since(now_ns, began));
}

void demand_works(struct sched *sched, uint64_t now_ns)
{
	if (since(now_ns, LOAD(&sched->slot_sm->paid_ns)) <= RECENT_NS)
		return;
	STORE(&sched->demand.free, 0);
	STORE(&sched->demand.light, 0);
}

/* Time in which some thread waited, since the last call. */
static uint64_t take_waited(struct sched *sched, uint64_t now_ns)
{
	struct demand *d = &sched->demand;
	uint64_t began = LOAD(&d->wait_since_ns), waited = atomic_exchange(&d->waited_ns, 0);

	if (began && atomic_compare_exchange_strong(&d->wait_since_ns, &began, now_ns))
		waited += since(now_ns, began);
	return waited;
}

/* Of the device, had it been for itself, in this window. Work paid for at once runs for as long as it takes. */
static uint32_t measure(struct sched *sched, uint64_t now_ns)
{
	struct demand *d = &sched->demand;
	uint64_t paid_ns = LOAD(&d->paid_ns), wall = since(now_ns, d->at_ns), busy, cpu, alone;
	uint64_t waited = take_waited(sched, now_ns);
	uint32_t before = LOAD(&sched->slot_sm->demand_bp);

	d->owed_ns += since(paid_ns, d->seen_paid_ns);
	busy = d->owed_ns < wall ? d->owed_ns : wall;
	d->owed_ns -= busy;
	d->seen_paid_ns = paid_ns;
	d->at_ns = now_ns; /* Who rests says nothing about what he needs when he works. */
	if (!busy && !waited)
		return before;
	if (waited > wall)
		waited = wall;
	cpu = wall - waited;
	alone = cpu + busy - (cpu < busy ? cpu : busy) / 2;
	/* Who does nothing but wait needs all there is. */
	return busy >= alone || alone < wall / 16 ? ALL : (uint32_t)(busy * ALL / alone);
}

/* Up by half, since turns are missed where somebody needs all; down by less, since a pause is no lesser need. */
static uint32_t followed(uint32_t old, uint32_t measured)
{
	return measured > old ? (old + measured + 1) / 2 : (old * 3 + measured) / 4;
}

struct sum {
	uint64_t all, group; /* demand of everybody, and of our group */
	uint64_t weights;    /* of all groups that use the device */
	unsigned others;     /* processes beside this one that use the device, */
	unsigned seats;	     /* and that have a seat */
	int unequal;	     /* some group comes before another whatever it used, */
	int above;	     /* and ours does */
};

static struct sum sum_up(const struct sched *sched, uint64_t now_ns)
{
	const struct ledger_file *file = sched->turns.file;
	uint64_t counted[(LEDGER_GROUPS + 63) / 64] = {0};
	uint32_t mine = group_priority(&file->group[sched->member->group]);
	struct sum sum = {0};

	for (unsigned i = 0; i < LEDGER_SLOTS; i++) {
		const struct slot_sm *sm = &file->slot[i].sm;
		unsigned group = slot_group(&file->slot[i]);
		uint32_t demand;
		if (!atomic_load_explicit(&file->live[i].word, memory_order_relaxed) ||
		    group >= LEDGER_GROUPS || !slot_alive(sched->turns.ledger, i))
			continue;
		if (i != sched->member->slot)
			sum.seats++;
		if (since(now_ns, LOAD(&sm->paid_ns)) > RECENT_NS)
			continue;
		if (group_priority(&file->group[group]) != mine)
			sum.unequal = 1;
		if (group_priority(&file->group[group]) < mine)
			sum.above = 1;
		demand = LOAD(&sm->demand_bp);
		sum.all += demand <= ALL ? demand : ALL;
		if (group == sched->member->group)
			sum.group += demand <= ALL ? demand : ALL;
		if (i != sched->member->slot)
			sum.others++;
		if (!(counted[group / 64] >> group % 64 & 1))
			sum.weights += group_weight(&file->group[group]);
		counted[group / 64] |= 1ull << group % 64;
	}
	return sum;
}

static void decide(struct sched *sched, const struct sum *sum)
{
	uint64_t mine = group_weight(&sched->turns.file->group[sched->member->group]);
	uint64_t part = sum->weights ? mine * ALL / sum->weights : ALL;
	if (sum->unequal || sum->all >= FREE_UNTIL || sum->all < FREE_BELOW)
		STORE(&sched->demand.free, sum->all < FREE_BELOW && !sum->unequal);
	STORE(&sched->demand.light, sum->others && sum->group < part);
	/* Its queue may be long now and then; nobody should go along with one who needs less than his part. */
	if (LOAD(&sched->demand.light))
		STORE(&sched->slot_sm->deep, 0);
	STORE(&sched->demand.others, sum->others);
	STORE(&sched->demand.above, (uint32_t)sum->above);
	STORE(&sched->demand.seats, sum->seats);
}

uint64_t demand_look(struct sched *sched, uint64_t now_ns)
{
	struct demand *d = &sched->demand;
	uint32_t old = LOAD(&sched->slot_sm->demand_bp);
	struct sum sum;

	if (now_ns < d->at_ns + WINDOW_NS)
		return d->at_ns + WINDOW_NS;
	/* Who has just come may need all of it. */
	if (!d->at_ns || since(now_ns, d->at_ns) > 20 * WINDOW_NS)
		(void)measure(sched, now_ns);
	else
		STORE(&sched->slot_sm->demand_bp, followed(old, measure(sched, now_ns)));
	if (since(now_ns, LOAD(&sched->slot_sm->paid_ns)) > RECENT_NS)
		return 0;
	sum = sum_up(sched, now_ns);
	decide(sched, &sum);
	return now_ns + WINDOW_NS;
}
