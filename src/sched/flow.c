/*
 * Launches that flow: since when, by whose leave, and how busy they keep the device. sched.h and demand.c tell what for.
 */
#include "sched/private.h"

#define NOT_MEASURED (UINT64_MAX / 2)

#define DENSE_BP       8500u
#define DEEP_SHARE     16u     /* of 256 launches: the device is seldom idle when one comes */
#define DENSITY_MIN_NS 500000u /* shorter stretches of flow say little */

/* Launches flow from now on: with what was opened before done, the program is on its own. */
void begin_flow(struct sched *sched, uint64_t word, uint64_t now_ns)
{
	uint64_t until = LOAD(&sched->slot_sm->busy_until_ns);

	if (LOAD(&sched->flowing) == word)
		return;
	STORE(&sched->flow_began_ns, until > now_ns ? until : now_ns);
	STORE(&sched->flow_busy_ns, 0);
	STORE(&sched->flowing, word);
}

void density_sample(struct sched *sched, uint32_t bp)
{
	uint32_t old = LOAD(&sched->density_bp);

	STORE(&sched->density_bp, old ? (old * 3 + bp) / 4 : bp);
}

/* Launches flow, but others may be on the device as well: nothing is learnt about the program. */
void flow_along(struct sched *sched, uint64_t word)
{
	STORE(&sched->flow_began_ns, NOT_MEASURED);
	STORE(&sched->flowing, word);
}

int flows_along(const struct sched *sched)
{
	return LOAD(&sched->flow_began_ns) == NOT_MEASURED;
}

void end_flow(struct sched *sched, uint64_t now_ns)
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

/*
 * Held back by its cap until then, which says nothing about the program; but with work on the device its host is ahead of
 * it.
 */
void flow_pauses(struct sched *sched, uint64_t now_ns, uint64_t until_ns)
{
	if (LOAD(&sched->slot_sm->busy_until_ns) > now_ns + SCHED_FLUSH_NS)
		density_sample(sched, 10000);
	if (flows_along(sched))
		return;
	STORE(&sched->flow_began_ns, until_ns);
	STORE(&sched->flow_busy_ns, 0);
}

int sched_is_dense(const struct sched *sched)
{
	return LOAD(&sched->density_bp) >= DENSE_BP;
}

/*
 * Is the device idle when a launch comes, but for the first of a turn, which has waited for it? If not, others who need
 * little flow along. A kernel that takes all of a turn counts as a queue: the driver's slices divide it as well.
 */
void note_dry(struct sched *sched, int in_flow, uint64_t now_ns)
{
	int dry = in_flow && LOAD(&sched->slot_sm->busy_until_ns) <= now_ns;

	sched->dry_share = (sched->dry_share * 15 + (dry ? 256u : 0)) / 16;
	if (sched->dry_share < DEEP_SHARE || sched->dry_share > 2 * DEEP_SHARE)
		STORE(&sched->slot_sm->deep,
		      sched->dry_share < DEEP_SHARE && !LOAD(&sched->demand.light));
}

/* Others who go by turns learn that they were not alone. */
void intrude(const struct sched *sched, uint64_t busy_ns)
{
	if (LOAD(&sched->demand.others))
		atomic_fetch_add_explicit(&sched->turns.file->turn.intruded_ns, busy_ns,
					  memory_order_relaxed);
}

/*
 * Without a turn: where all together need less than there is, and beside a holder that is never dry for one who needs less
 * than his part.
 */
int goes_along(const struct sched *sched)
{
	if (LOAD(&sched->demand.free))
		return 1;
	return LOAD(&sched->demand.light) && turn_holder_is_deep(&sched->turns);
}

/* Light beside others who wait for each kernel: collected, and run in one go. */
int collects(const struct sched *sched)
{
	return LOAD(&sched->demand.light) && LOAD(&sched->demand.others);
}
