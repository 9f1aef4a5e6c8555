/* The cap's arithmetic; bucket.h tells the idea. No clock, no ledger: one word and the time are handed in. */
#include "sched/bucket.h"

#define BP 10000u

uint64_t bucket_wall_ns(uint64_t busy_ns, uint32_t cap_bp)
{
	if (cap_bp == 0 || cap_bp >= BP)
		return busy_ns;
	return busy_ns / cap_bp * BP + busy_ns % cap_bp * BP / cap_bp;
}

/* The earliest value the word may have: older credit is lost. */
static uint64_t credit_floor(uint64_t now_ns, uint32_t cap_bp, uint64_t burst_ns)
{
	uint64_t burst = bucket_wall_ns(burst_ns, cap_bp);

	if (burst > BUCKET_BURST_WALL_NS)
		burst = BUCKET_BURST_WALL_NS;
	return now_ns > burst ? now_ns - burst : 0;
}

void bucket_charge(_Atomic uint64_t *tat, uint64_t now_ns, int64_t busy_ns, uint32_t cap_bp,
		   uint64_t burst_ns)
{
	uint64_t wall = bucket_wall_ns((uint64_t)(busy_ns < 0 ? -busy_ns : busy_ns), cap_bp);
	uint64_t floor = credit_floor(now_ns, cap_bp, burst_ns);
	uint64_t old = atomic_load_explicit(tat, memory_order_relaxed);
	uint64_t new;

	do {
		uint64_t from = old < floor || old > now_ns + BUCKET_DEBT_MAX_NS ? floor : old;

		/* A group that has just begun owes nothing and has saved nothing. */
		if (old == 0)
			from = now_ns;
		if (busy_ns >= 0)
			new = from + wall;
		else
			new = from > floor + wall ? from - wall : floor;
	} while (!atomic_compare_exchange_weak_explicit(tat, &old, new, memory_order_relaxed,
							memory_order_relaxed));
}

void bucket_recap(_Atomic uint64_t *tat, uint64_t now_ns, uint32_t old_bp, uint32_t new_bp)
{
	uint64_t old = atomic_load_explicit(tat, memory_order_relaxed), owed;

	do {
		if (old <= now_ns || old > now_ns + BUCKET_DEBT_MAX_NS)
			return;
		owed = bucket_wall_ns((old - now_ns) * old_bp / BP, new_bp);
		if (owed > BUCKET_DEBT_MAX_NS)
			owed = BUCKET_DEBT_MAX_NS;
	} while (!atomic_compare_exchange_weak_explicit(
		tat, &old, now_ns + owed, memory_order_relaxed, memory_order_relaxed));
}

void bucket_forget(_Atomic uint64_t *tat, uint64_t now_ns, uint32_t cap_bp, uint64_t burst_ns)
{
	uint64_t floor = credit_floor(now_ns, cap_bp, burst_ns);
	uint64_t old = atomic_load_explicit(tat, memory_order_relaxed);

	while (old && old < floor && !atomic_compare_exchange_weak(tat, &old, floor))
		;
}

uint64_t bucket_ready_at(const _Atomic uint64_t *tat, uint64_t now_ns, uint32_t cap_bp,
			 uint64_t batch_ns)
{
	uint64_t at = atomic_load_explicit(tat, memory_order_relaxed);

	if (at <= now_ns || at > now_ns + BUCKET_DEBT_MAX_NS)
		return 0;
	if (batch_ns > BUCKET_BURST_NS / 2)
		batch_ns = BUCKET_BURST_NS / 2;
	return at + bucket_wall_ns(batch_ns, cap_bp);
}
