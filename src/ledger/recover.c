/*
 * What becomes of the dead. A slot whose owner's word the kernel has released is brought to zero by
 * whoever comes by: any number of processes at once, each of which may itself die or be stopped at
 * any step. Nobody waits: every step is one compare-and-swap to a value the word never had.
 *
 * No step here trusts that the slot is still the dead owner's: `op` is read first, then the owner's
 * death, and the swap of `op` fails if anybody has moved it since.
 */
#include "ledger/journal.h"
#include "ledger/live.h"
#include "ledger/protocol.h"

/* Each try that fails is somebody else's step done; honest ones need a handful. */
#define RETIRE_TRIES 100000u

void total_help(struct ledger_file *file, unsigned group, uint64_t total)
{
	unsigned q = total_slot(total);
	struct slot *slot;
	uint64_t seq, behind, done;

	if (q >= LEDGER_SLOTS)
		return;
	slot = &file->slot[q];
	if (slot_group(slot) != group)
		return; /* that owner is gone from here, all it did is settled */
	seq = OP_SEQ(atomic_load_explicit(&slot->op, memory_order_acquire));
	behind = (seq - total) & ((1u << TOTAL_SEQ_BITS) - 1);
	if (behind > 1 || behind > seq)
		return; /* while the tag stands its owner is at that operation or the next */
	if (slot_group(slot) != group ||
	    atomic_load_explicit(&file->group[group].total, memory_order_acquire) != total)
		return; /* `seq` may be of another time; the caller's swap fails too */
	done = atomic_load_explicit(&slot->done, memory_order_relaxed);
	while (done < seq - behind &&
	       !atomic_compare_exchange_weak_explicit(&slot->done, &done, seq - behind,
						      memory_order_release, memory_order_relaxed))
		;
}

/* Whether operation `seq` of slot i is in the total. Read the total first: who overwrites the tag
 * has raised `done` before. */
static int in_total(const struct slot *slot, unsigned i, uint64_t total, uint64_t seq)
{
	return total_is_by(total, i, seq) ||
	       atomic_load_explicit(&slot->done, memory_order_acquire) >= seq;
}

/* Takes the retired slot's granules out of the total, if that is not done yet. 0 = look again. */
static int retire_from_total(struct ledger_file *file, unsigned i, unsigned group, uint64_t op)
{
	struct slot *slot = &file->slot[i];
	_Atomic uint64_t *word = &file->group[group].total;
	uint64_t granules, total;

	granules = atomic_load_explicit(&slot->used[OP_INDEX(op)], memory_order_acquire) &
		   GRANULES_MAX;
	total = atomic_load_explicit(word, memory_order_acquire);
	if (atomic_load_explicit(&slot->op, memory_order_acquire) != op)
		return 0; /* not that operation any more: group and granules may be another owner's
			   */
	if (in_total(slot, i, total, OP_SEQ(op)))
		return 1;
	total_help(file, group, total);
	ledger_test_point(20);
	return atomic_compare_exchange_strong_explicit(
		word, &total,
		total_make(granules_move(total_granules(total), granules, 0), i, OP_SEQ(op)),
		memory_order_acq_rel, memory_order_acquire);
}

int slot_retire(struct ledger *ledger, unsigned i, int by_owner)
{
	struct ledger_file *file = ledger->file;
	struct slot *slot = &file->slot[i];
	char name[GROUP_NAME_BYTES] = "";
	struct slot_view last;
	uint64_t op, total, next;
	unsigned group, tries;

	for (tries = 0; tries < RETIRE_TRIES; tries++) {
		op = atomic_load_explicit(&slot->op, memory_order_acquire);
		if (op_is_zero(op))
			return 0;
		if (!by_owner && slot_alive(ledger, i))
			return 0; /* after reading op: a swap from it can only hit the dead owner's
				   */
		group = slot_group(slot);
		if (group ==
		    LEDGER_GROUPS) { /* hostile: an owner has a group before it is active */
			next = ((op | 7) ^ 7) + OP_SEQ_ONE;
		} else if ((op & OP_ACTIVE) && (op & OP_PENDING)) { /* died in a charge */
			total = atomic_load_explicit(&file->group[group].total,
						     memory_order_acquire);
			next = op ^ OP_PENDING;
			if (in_total(slot, i, total, OP_SEQ(op)))
				next ^= OP_SECOND;
		} else if (op & OP_ACTIVE) {
			next = (op ^ OP_ACTIVE ^ OP_PENDING) + OP_SEQ_ONE;
		} else {
			if (!retire_from_total(file, i, group, op))
				continue;
			next = (op | 7) ^ 7;
			/* Before the swap: after it slot and group may be somebody else's. */
			view_slot(ledger, i, group, &last);
			words_load(file->group[group].name, GROUP_NAME_BYTES / 8, name);
		}
		ledger_test_point(21);
		if (atomic_compare_exchange_strong_explicit(
			    &slot->op, &op, next, memory_order_acq_rel, memory_order_acquire) &&
		    op_is_zero(next)) {
			if (name[0])
				journal_end(ledger, &last, name);
			return 1;
		}
	}
	return 0;
}

uint64_t slot_granules(const struct ledger_file *file, unsigned i)
{
	const struct slot *slot = &file->slot[i];
	uint64_t op, now, total, granules = 0;
	unsigned group, tries;

	now = atomic_load_explicit(&slot->op, memory_order_acquire);
	for (tries = 0; tries < 16; tries++) { /* a busy owner must not hold a reader up */
		op = now;
		granules = 0;
		group = slot_group(slot);
		if (op_is_zero(op) || group == LEDGER_GROUPS)
			return 0;
		total = atomic_load_explicit(&file->group[group].total, memory_order_acquire);
		if (!(op & OP_PENDING) || !in_total(slot, i, total, OP_SEQ(op)))
			granules = atomic_load_explicit(&slot->used[OP_INDEX(op)],
							memory_order_acquire);
		else if (op & OP_ACTIVE)
			granules = atomic_load_explicit(&slot->used[!OP_INDEX(op)],
							memory_order_acquire);
		now = atomic_load_explicit(&slot->op, memory_order_acquire);
		if (now == op)
			break;
	}
	return granules & GRANULES_MAX;
}

/* Most words are nobody's: eight at a time are seen to be. */
enum { LOOK_AT_ONCE = 8 };

static int nobodys(const struct live *live)
{
	uint32_t words = 0;

	for (unsigned i = 0; i < LOOK_AT_ONCE; i++)
		words |= atomic_load_explicit(&live[i].word, memory_order_relaxed);
	return !words;
}

unsigned ledger_reap(struct ledger *ledger)
{
	const struct live *live = ledger->file->live;
	unsigned i, freed = 0;

	if (ledger->read_only)
		return 0;
	for (i = 0; i < LEDGER_SLOTS; i++) {
		if (i % LOOK_AT_ONCE == 0 && nobodys(&live[i])) {
			i += LOOK_AT_ONCE - 1;
			continue;
		}
		if (!live_is_dead(ledger, i))
			continue;
		if (!slot_retire(ledger, i, 0))
			continue;
		freed++;
		atomic_fetch_add_explicit(&ledger->file->header.reclaimed_slots, 1,
					  memory_order_relaxed);
	}
	return freed;
}

int slot_alive(const struct ledger *ledger, unsigned slot)
{
	return slot < LEDGER_SLOTS && live_is_held(ledger, slot);
}
