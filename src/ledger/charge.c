/*
 * Charging and refunding: the hot path. No system call, no wait for another process; about five
 * atomic operations on two cache lines.
 *
 * What this process has charged is kept in private memory (private_bytes, op, kind_bytes) and the
 * shared words are only written from it: bytes flipped in the ledger by somebody else can make a
 * group's sum wrong, never this process larger than its own cap.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "ledger/live.h"
#include "ledger/map.h"
#include "ledger/protocol.h"

/* Far beyond honest contention: a total that never holds still this long is being tampered with. */
#define SWAP_TRIES 1000000u

int member_is_ours(const struct member *member)
{
	return member_is_here(member);
}

__attribute__((cold)) void member_lose(struct member *member, const char *why)
{
	if (atomic_exchange(&member->lost, 1) == 0)
		log_line(LOG_WARN,
			 "ledger %s: slot %u is lost (%s); until it is joined again the cap holds "
			 "within this process alone",
			 member->ledger->uuid, member->slot, why);
}

static uint64_t relaxed(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static unsigned relaxed_index(const _Atomic unsigned *index)
{
	return atomic_load_explicit(index, memory_order_relaxed);
}

static int fits(uint64_t total, uint64_t more, uint64_t cap_bytes)
{
	uint64_t granules = total_granules(total);

	return more <= GRANULES_MAX - granules && granules + more <= cap_bytes / GRANULE_BYTES;
}

static inline void raise_peak(_Atomic uint64_t *peak, uint64_t bytes)
{
	uint64_t seen = relaxed(peak);

	while (seen < bytes &&
	       !atomic_compare_exchange_weak_explicit(peak, &seen, bytes, memory_order_relaxed,
						      memory_order_relaxed))
		;
}

/* Ends the operation `op` as kept (SECOND flips) or dropped. */
static void settle(struct member *member, struct slot *slot, uint64_t op, int kept)
{
	uint64_t settled = (op ^ OP_PENDING) ^ (kept ? OP_SECOND : 0);

	if (atomic_compare_exchange_strong_explicit(&slot->op, &op, settled, memory_order_release,
						    memory_order_relaxed))
		member->op = settled;
	else
		member_lose(member, "its operation was changed by somebody else");
}

/* An operation from `from` to `to` that is published as `next` and not in the total yet. */
struct step {
	struct slot *slot;
	struct group *group;
	unsigned self;
	uint64_t from, to, next;
};

/* Tries to put it into the total, which was *total; 1 when it is there, and settled. Else *total is what it is now. */
static inline __attribute__((always_inline)) int
into_total(struct member *member, const struct step *step, uint64_t *total)
{
	uint64_t granules = granules_move(total_granules(*total), step->from, step->to);

	if (total_slot(*total) != step->self)
		total_help(member->ledger->file, member->group, *total);
	ledger_test_point(11);
	if (__builtin_expect(!atomic_compare_exchange_strong_explicit(
				     &step->group->total, total,
				     total_make(granules, step->self, OP_SEQ(step->next)),
				     memory_order_acq_rel, memory_order_acquire),
			     0))
		return 0;
	ledger_test_point(12);
	settle(member, step->slot, step->next, 1);
	raise_peak(&step->group->peak_bytes, granules * GRANULE_BYTES);
	return 1;
}

/* Others have changed the total meanwhile. */
static __attribute__((noinline, cold)) int move_on(struct member *member, const struct step *given,
						   uint64_t total, uint64_t cap_bytes)
{
	struct step step = *given;
	uint64_t more = step.to > step.from ? step.to - step.from : 0;

	for (unsigned tries = 1; tries < SWAP_TRIES; tries++) {
		if (more && !fits(total, more, cap_bytes)) {
			ledger_test_point(13);
			settle(member, step.slot, step.next, 0);
			return -ENOMEM;
		}
		if (into_total(member, &step, &total))
			return 0;
	}
	settle(member, step.slot, step.next, 0);
	member_lose(member, "the group's total never holds still");
	return 0;
}

/*
 * Moves this process's granules from `from` to `to`, in the slot and in the group's total: the
 * detectable operation of docs/ledger.md. 0, or -ENOMEM when that would pass cap_bytes.
 */
static inline __attribute__((always_inline)) int move(struct member *member, uint64_t from,
						      uint64_t to, uint64_t cap_bytes)
{
	struct ledger_file *file = member->ledger->file;
	unsigned self = relaxed_index(&member->slot);
	struct group *group = &file->group[relaxed_index(&member->group)];
	uint64_t op = member->op;
	uint64_t total = atomic_load_explicit(&group->total, memory_order_acquire);
	struct step step = {&file->slot[self], group, self, from, to, op + OP_SEQ_ONE + OP_PENDING};

	if (to > from && !fits(total, to - from, cap_bytes))
		return -ENOMEM;
	atomic_store_explicit(&step.slot->used[!OP_INDEX(op)], to, memory_order_relaxed);
	ledger_test_point(10);
	if (__builtin_expect(!atomic_compare_exchange_strong_explicit(
				     &step.slot->op, &op, step.next, memory_order_release,
				     memory_order_relaxed),
			     0)) {
		member_lose(member, "it was reaped, or its operation changed by somebody else");
		return 0;
	}
	return into_total(member, &step, &total) ? 0 : move_on(member, &step, total, cap_bytes);
}

void member_count_again(struct member *member)
{
	if (move(member, 0, granules_of(relaxed(&member->private_bytes)), UINT64_MAX) != 0)
		member_lose(member, "the group's total is full");
}

/* Under the private lock: bytes from private_bytes `from` to `to`. One copy, so that a free finds it where the
 * allocation before it has left it: in the cache. */
static __attribute__((noinline)) int move_bytes(struct member *member, enum charge_kind kind,
						uint64_t from, uint64_t to, uint64_t cap_bytes)
{
	uint64_t here = granules_of(from), there = granules_of(to);
	struct ledger_file *file = member->ledger->file;
	unsigned self = relaxed_index(&member->slot);
	struct slot *slot = &file->slot[self];
	uint32_t word = atomic_load_explicit(&file->live[self].word, memory_order_acquire);
	int code;

	if (__builtin_expect((word & FUTEX_TID_MASK) != member->mark, 0) &&
	    !atomic_load_explicit(&member->lost, memory_order_relaxed))
		member_lose(member, "its owner's mark is gone");
	if (here != there && !atomic_load_explicit(&member->lost, memory_order_relaxed)) {
		code = move(member, here, there, cap_bytes);
		if (code != 0)
			return code;
	}
	atomic_store_explicit(&member->private_bytes, to, memory_order_relaxed);
	member->kind_bytes[kind] += to - from; /* modulo 2^64: also down */
	member->charged_ever += to > from ? to - from : 0;
	if (atomic_load_explicit(&member->lost, memory_order_relaxed))
		return 0;
	atomic_store_explicit(&slot->kind_bytes[kind], member->kind_bytes[kind],
			      memory_order_relaxed);
	if (to > relaxed(&slot->peak_bytes))
		atomic_store_explicit(&slot->peak_bytes, to, memory_order_relaxed);
	return 0;
}

static int try_charge(struct member *member, enum charge_kind kind, uint64_t bytes, uint64_t others,
		      enum refusal_why *ret_why)
{
	uint64_t from, own, process, group;
	int code = -ENOMEM;

	member_lock(member);
	from = relaxed(&member->private_bytes);
	own = relaxed(&member->cap_bytes);
	process = relaxed(&member->process_cap_bytes);
	*ret_why = REFUSED_PROCESS;
	if (bytes <= GRANULES_MAX * GRANULE_BYTES && from + bytes <= process) {
		*ret_why = REFUSED_GROUP;
		group = member_group_cap(member);
		if (from + bytes <= own && others <= group)
			code = move_bytes(member, kind, from, from + bytes, group - others);
	}
	member_unlock(member);
	return code;
}

/* 1 when a cap that covers `charged` has `spare` left. */
static int leaves(uint64_t charged, uint64_t spare, uint64_t cap_bytes)
{
	return spare <= cap_bytes && charged <= cap_bytes - spare;
}

int ledger_charge_far(struct member *member, enum charge_kind kind, uint64_t bytes, uint64_t spare)
{
	uint64_t to, cap;
	int code = -EAGAIN;

	if (!member_is_here(member) || (unsigned)kind >= CHARGE_KINDS ||
	    bytes > GRANULES_MAX * GRANULE_BYTES || member_limits_moved(member))
		return -EAGAIN;
	member_lock(member);
	to = relaxed(&member->private_bytes) + bytes;
	cap = member_group_cap(member);
	if (!atomic_load_explicit(&member->lost, memory_order_relaxed) && leaves(to, spare, cap) &&
	    leaves(to, spare, relaxed(&member->process_cap_bytes)) &&
	    move_bytes(member, kind, to - bytes, to, cap - spare) == 0)
		code = 0;
	member_unlock(member);
	return code;
}

int ledger_charge(struct member *member, enum charge_kind kind, uint64_t bytes, struct refusal *ret)
{
	return ledger_charge_beside(member, kind, bytes, 0, ret);
}

int ledger_charge_beside(struct member *member, enum charge_kind kind, uint64_t bytes,
			 uint64_t others, struct refusal *ret)
{
	enum refusal_why why;
	struct slot *slot;

	if (!member_is_here(member) || (unsigned)kind >= CHARGE_KINDS)
		return -ESRCH;
	member_refresh(member);
	if (try_charge(member, kind, bytes, others, &why) == 0)
		return 0;
	/* Somebody's charge may be a dead one's: take it back before saying no. */
	if (why == REFUSED_GROUP && ledger_reap(member->ledger) &&
	    try_charge(member, kind, bytes, others, &why) == 0)
		return 0;
	slot = &member->ledger->file->slot[member->slot];
	if (!atomic_load_explicit(&member->lost, memory_order_relaxed))
		atomic_fetch_add_explicit(&slot->denials, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&member->ledger->file->group[member->group].denials, 1,
				  memory_order_relaxed);
	if (ret)
		refusal_fill(member, why, bytes, ret);
	return -ENOMEM;
}

void ledger_charge_forced(struct member *member, enum charge_kind kind, uint64_t bytes)
{
	uint64_t from;

	if (!member_is_here(member) || (unsigned)kind >= CHARGE_KINDS)
		return;
	member_lock(member);
	from = relaxed(&member->private_bytes);
	if (bytes <= GRANULES_MAX * GRANULE_BYTES - from &&
	    move_bytes(member, kind, from, from + bytes, UINT64_MAX) != 0)
		member_lose(member, "the group's total is full");
	member_unlock(member);
}

void ledger_refund(struct member *member, enum charge_kind kind, uint64_t bytes)
{
	uint64_t from, held;

	if (!member_is_here(member) || (unsigned)kind >= CHARGE_KINDS)
		return;
	member_lock(member);
	from = relaxed(&member->private_bytes);
	held = member->kind_bytes[kind];
	if (bytes > held) {
		if (log_allowed(&member->logged_ns, clock_now_ns(), 60 * NS_PER_S))
			log_line(
				LOG_WARN,
				"ledger %s: refund of %llu bytes of kind %u, %llu charged: clamped",
				member->ledger->uuid, (unsigned long long)bytes, (unsigned)kind,
				(unsigned long long)held);
		bytes = held;
	}
	move_bytes(member, kind, from, from - bytes, UINT64_MAX);
	member_unlock(member);
}
