/*
 * The two words that charging turns on, and how to read the rest of the shared memory safely.
 * Inside src/ledger only. docs/ledger.md, "Detectable charge", explains and proves it; tests/model
 * checks it.
 *
 *   group.total  granules, and who changed it last with which operation: changed by
 * compare-and-swap. slot.op      the slot's operation: sequence, and three bits. Changed by
 * compare-and-swap, always to a value it never had, so that a late helper's attempt fails.
 */
#ifndef CUOTA_LEDGER_PROTOCOL_H
#define CUOTA_LEDGER_PROTOCOL_H

#include <stdint.h>
#include <string.h>

#include "base/spin.h"
#include "ledger/ledger.h"

#define GRANULES_MAX ((1ull << TOTAL_GRANULE_BITS) - 1)

/* slot.op: sequence << 3 | ACTIVE | SECOND | PENDING. A fresh file's 0 is a free slot. */
#define OP_PENDING   1ull /* used[other] is the value to be, if the operation is in total */
#define OP_SECOND    2ull /* used[1] holds the value that counts, else used[0] */
#define OP_ACTIVE    4ull /* the owner's; without it the slot is being retired, or is worth 0 */
#define OP_SEQ_ONE   8ull
#define OP_SEQ(op)   ((op) >> 3)
#define OP_INDEX(op) (((op) >> 1) & 1)

/* 1 when the slot counts for nothing: free, or not begun. */
static inline int op_is_zero(uint64_t op)
{
	return !(op & (OP_ACTIVE | OP_PENDING));
}

static inline uint64_t total_make(uint64_t granules, unsigned slot, uint64_t seq)
{
	return granules << (TOTAL_SLOT_BITS + TOTAL_SEQ_BITS) | (uint64_t)slot << TOTAL_SEQ_BITS |
	       (seq & ((1u << TOTAL_SEQ_BITS) - 1));
}

static inline uint64_t total_granules(uint64_t total)
{
	return total >> (TOTAL_SLOT_BITS + TOTAL_SEQ_BITS);
}

static inline unsigned total_slot(uint64_t total)
{
	return (unsigned)(total >> TOTAL_SEQ_BITS) & TOTAL_NO_SLOT;
}

/* 1 when the last change to `total` was operation `seq` of `slot`. */
static inline int total_is_by(uint64_t total, unsigned slot, uint64_t seq)
{
	return (total & ((1ull << (TOTAL_SLOT_BITS + TOTAL_SEQ_BITS)) - 1)) ==
	       total_make(0, slot, seq);
}

/* Granules after adding or, clamped, taking away. */
static inline uint64_t granules_move(uint64_t now, uint64_t from, uint64_t to)
{
	if (to >= from)
		return to - from > GRANULES_MAX - now ? GRANULES_MAX : now + (to - from);
	return from - to > now ? 0 : now - (from - to);
}

static inline uint64_t granules_of(uint64_t bytes)
{
	return bytes / GRANULE_BYTES + (bytes % GRANULE_BYTES != 0);
}

static inline unsigned slot_group(const struct slot *slot)
{
	uint32_t group = atomic_load(&slot->group);

	return group - 1 < LEDGER_GROUPS ? group - 1 : LEDGER_GROUPS;
}

static inline uint64_t group_cap_bytes(const struct group *group)
{
	uint64_t cap = atomic_load_explicit(&group->mem_cap_bytes, memory_order_relaxed);

	return cap == QUOTA_UNSET ? QUOTA_NONE : cap;
}

static inline uint32_t group_sm_cap(const struct group *group)
{
	uint32_t bp = atomic_load_explicit(&group->sm_cap_bp, memory_order_relaxed);

	return bp == 0 || bp > QUOTA_SM_NONE ? QUOTA_SM_NONE : bp;
}

static inline uint32_t group_weight(const struct group *group)
{
	uint32_t weight = atomic_load_explicit(&group->weight, memory_order_relaxed);

	return weight == 0 || weight > 10000 ? QUOTA_WEIGHT_DEFAULT : weight;
}

static inline uint32_t group_priority(const struct group *group)
{
	uint32_t priority = atomic_load_explicit(&group->priority, memory_order_relaxed);

	return priority == PRIORITY_UNSET || priority > PRIORITY_HIGH ? PRIORITY_NORMAL : priority;
}

/* Text in atomic words: a torn read gives a mixed text, never an unterminated one. */
static inline void words_load(const _Atomic uint64_t *words, unsigned count, char *ret_text)
{
	unsigned i, j;

	for (i = 0; i < count; i++) {
		uint64_t word = atomic_load_explicit(&words[i], memory_order_relaxed);

		for (j = 0; j < 8; j++)
			ret_text[i * 8 + j] = (char)(word >> (8 * j));
	}
	ret_text[count * 8 - 1] = '\0';
	for (i = 0; ret_text[i]; i++)
		if (ret_text[i] < 0x20 || ret_text[i] == 0x7f)
			ret_text[i] = '?';
}

static inline void words_store(_Atomic uint64_t *words, unsigned count, const char *text)
{
	size_t length = strnlen(text, count * 8);
	unsigned i, j;

	for (i = 0; i < count; i++) {
		uint64_t word = 0;

		for (j = 0; j < 8 && i * 8 + j < length; j++)
			word |= (uint64_t)(unsigned char)text[i * 8 + j] << (8 * j);
		atomic_store_explicit(&words[i], word, memory_order_relaxed);
	}
}

/* ---- shared by the files of this layer
 * ------------------------------------------------------------- */

/* Says in slot q's `done` what the tag of `total` says, before somebody overwrites that tag. */
void total_help(struct ledger_file *file, unsigned group, uint64_t total);

/* Brings a slot whose owner is dead, or who calls this itself, to zero and marks it so. 1 when this
 * call did the last step. */
int slot_retire(struct ledger *ledger, unsigned slot, int by_owner);

/* A checked copy of slot i, which is of group g (view.c). */
void view_slot(const struct ledger *ledger, unsigned i, unsigned g, struct slot_view *ret);

/* What the slot counts for now, in granules. */
uint64_t slot_granules(const struct ledger_file *file, unsigned slot);

/* The group's cap as it binds this member: its own figure and the ledger's, or the limits file's.
 */
static inline uint64_t member_group_cap(const struct member *member)
{
	uint64_t own = atomic_load_explicit(&member->cap_bytes, memory_order_relaxed), ledgers;

	if (!atomic_load_explicit(&member->follow_ledger, memory_order_relaxed))
		return own;
	ledgers = group_cap_bytes(&member->ledger->file->group[member->group]);
	return own < ledgers ? own : ledgers;
}

/* 1 when `cuota set` has spoken since the limits file was read. */
static inline int member_limits_moved(const struct member *member)
{
	const struct group *group = &member->ledger->file->group[member->group];

	return atomic_load_explicit(&group->limits_gen, memory_order_acquire) !=
	       atomic_load_explicit(&member->limits_gen, memory_order_relaxed);
}

/* Under the member's lock, with a slot just claimed: counts private_bytes there, past any cap. */
void member_count_again(struct member *member);

/* A slot, the group in it, and out of both again, charges and all; under the member's lock. seat_leave()
 * touches nothing of a slot that has become another's. */
int seat_take(struct member *member, struct error *err);
void seat_leave(struct member *member);

/* Puts the member, whose slot is claimed and counts for nothing, into its group: -EUSERS,
 * -ETIMEDOUT. */
int group_enter(struct member *member, struct error *err);

/* Who refused and why, for a person. */
void refusal_fill(const struct member *member, enum refusal_why why, uint64_t asked_bytes,
		  struct refusal *ret);

/* Recomputes the effective caps of a member from its quotas and the ledger. */
void member_recompute(struct member *member);

static inline void member_lock(struct member *member)
{
	nap_lock(&member->lock);
}

static inline void member_unlock(struct member *member)
{
	nap_unlock(&member->lock);
}

/* Marks the member lost and says so once. */
void member_lose(struct member *member, const char *why);

/*
 * For tests that kill or stop a process between two steps; nothing otherwise. The numbers are in
 * docs/ledger.md's table of crashes.
 */
#ifdef CUOTA_TEST_POINTS
void ledger_test_point(int point);
#else
#define ledger_test_point(point) ((void)0)
#endif

#endif
