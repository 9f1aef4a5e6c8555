/*
 * The backlog: launches that stand behind a gate in their streams, numbered in chunks of about SCHED_CHUNK_NS of
 * predicted work, and opened in order by one store. sched.h tells the idea.
 */
#include "sched/private.h"

/* Puts a launch behind the gate. Under the lock. */
static uint32_t into_chunk(struct sched *sched, uint64_t cost_ns)
{
	uint32_t at;

	if ((int32_t)(LOAD(sched->open) - sched->chunk) >= 0 || sched->chunk_ns >= SCHED_CHUNK_NS) {
		sched->chunk++;
		sched->chunk_ns = 0;
		at = sched->chunk % SCHED_CHUNKS;
		sched->ring_ns[at] = 0;
		sched->ring_launches[at] = 0;
	}
	at = sched->chunk % SCHED_CHUNKS;
	sched->chunk_ns += cost_ns;
	sched->ring_ns[at] += cost_ns;
	sched->ring_launches[at]++;
	sched->closed_launches++;
	sched->closed_ns += cost_ns;
	return sched->chunk;
}

static int is_full(const struct sched *sched)
{
	return sched->closed_launches >= SCHED_QUEUE_MAX ||
	       sched->chunk - LOAD(sched->open) >= SCHED_CHUNKS - 1;
}

uint32_t backlog_add(struct sched *sched, uint64_t cost_ns, uint64_t now_ns, int *ret_first)
{
	uint32_t chunk = 0;

	sched_lock(sched);
	if (!is_full(sched)) {
		chunk = into_chunk(sched, cost_ns);
		*ret_first =
			sched->closed_launches == 1 || sched->closed_launches == SCHED_BATCH_MOST;
		if (sched->closed_launches == 1)
			sched->closed_since_ns = now_ns;
		sched->closed_last_ns = now_ns;
		burst_launch(sched, now_ns);
	}
	sched_unlock(sched);
	return chunk;
}

int backlog_open(struct sched *sched, uint64_t now_ns, uint64_t *ret_paid_ns)
{
	uint64_t until = LOAD(&sched->turns.file->turn.until_ns);
	uint64_t busy_until = LOAD(&sched->slot_sm->busy_until_ns);
	uint64_t begin = busy_until > now_ns ? busy_until : now_ns;
	uint64_t end = now_ns + turn_ahead_ns(&sched->turns, now_ns), room, paid = 0;
	uint32_t open;
	int all;

	if (until && until < end)
		end = until;
	room = end > begin ? end - begin : 0;
	if (LOAD(&sched->hangs)) /* what hangs may wait for what is closed */
		room = UINT64_MAX;
	sched_lock(sched);
	open = LOAD(sched->open);
	while (open != sched->chunk && paid < room) {
		uint32_t at = ++open % SCHED_CHUNKS;

		paid += sched->ring_ns[at];
		sched->closed_launches -= sched->ring_launches[at];
		sched->closed_ns -= sched->ring_ns[at];
		sched->ring_launches[at] = 0;
	}
	all = open == sched->chunk;
	STORE(sched->open, open);
	sched_unlock(sched);
	*ret_paid_ns = paid;
	return all;
}

uint64_t backlog_open_all(struct sched *sched)
{
	uint64_t opened;

	sched_lock(sched);
	opened = sched->closed_ns;
	for (uint32_t chunk = LOAD(sched->open); chunk != sched->chunk;)
		sched->ring_launches[++chunk % SCHED_CHUNKS] = 0;
	sched->closed_launches = 0;
	sched->closed_ns = 0;
	STORE(sched->open, sched->chunk);
	sched_unlock(sched);
	return opened;
}

uint64_t backlog_ripe_at(struct sched *sched, uint64_t now_ns)
{
	uint64_t at, ask = burst_ask_at(sched);

	if (LOAD(&sched->slot_sm->in_sync) || sched->closed_launches >= SCHED_BATCH_MOST)
		return 0;
	sched_lock(sched);
	at = sched->closed_since_ns + SCHED_BATCH_AGE_NS;
	if (at > sched->closed_last_ns + SCHED_BATCH_QUIET_NS)
		at = sched->closed_last_ns + SCHED_BATCH_QUIET_NS;
	if (sched->closed_ns >= SCHED_BATCH_WORK_NS)
		at = 0;
	sched_unlock(sched);
	if (ask < at)
		at = ask;
	return at <= now_ns ? 0 : at;
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
