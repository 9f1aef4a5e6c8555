/*
 * The SM-time cap of a group: a bucket in one 64-bit word of the ledger.
 *
 * The word is the instant at which everything charged so far is paid for ("theoretical arrival time"): busy
 * time c under a cap moves it c / cap into the future, and work may start when it is not ahead of now. So the
 * members of a group share one cap with one atomic step each and no lock, a member that dies leaves nothing
 * behind, and debt from a long kernel is repaid exactly. A changed cap counts for what is still owed, too.
 *
 * Credit is bounded: at most BUCKET_BURST_NS of device time may be saved up, which bounds any window's
 * excess; a newcomer or sleeper starts at the present.
 */
#ifndef CUOTA_SCHED_BUCKET_H
#define CUOTA_SCHED_BUCKET_H

#include <stdatomic.h>
#include <stdint.h>

#define BUCKET_BURST_NS 8000000ull /* device time that may be saved up: 0.8 points of 1 s */
#define BUCKET_BURST_SHARED_NS \
	30000000ull /* while others have turns: a group may not lose what it waits for */
#define BUCKET_BURST_WALL_NS 200000000ull     /* and never from longer ago than this */
#define BUCKET_DEBT_MAX_NS   3600000000000ull /* further ahead than an hour is damage, not debt */

/* Wall time that pays for `busy_ns` of device time under the cap (hundredths of a percent, 1..10000). */
uint64_t bucket_wall_ns(uint64_t busy_ns, uint32_t cap_bp);

/* Charges device time (negative: a correction); credit beyond burst_ns is lost. Any thread of any member. */
void bucket_charge(_Atomic uint64_t *tat, uint64_t now_ns, int64_t busy_ns, uint32_t cap_bp,
		   uint64_t burst_ns);

/* 1 when busy_ns of device time are saved up. */
static inline int bucket_has(const _Atomic uint64_t *tat, uint64_t now_ns, uint32_t cap_bp,
			     uint64_t busy_ns)
{
	return atomic_load_explicit(tat, memory_order_relaxed) + bucket_wall_ns(busy_ns, cap_bp) <=
	       now_ns;
}

/* The cap has changed: what is owed in device time stays, and is owed for as long as the new cap takes to pay for it. */
void bucket_recap(_Atomic uint64_t *tat, uint64_t now_ns, uint32_t old_bp, uint32_t new_bp);

/* Who comes after a pause has saved up no more than burst_ns. */
void bucket_forget(_Atomic uint64_t *tat, uint64_t now_ns, uint32_t cap_bp, uint64_t burst_ns);

/*
 * 0 when work may start now, else the instant at which it may. `batch_ns` of device time is saved up first
 * when the caller has to wait at all: next to competitors fewer, longer bursts cost fewer context switches.
 */
uint64_t bucket_ready_at(const _Atomic uint64_t *tat, uint64_t now_ns, uint32_t cap_bp,
			 uint64_t batch_ns);

#endif
