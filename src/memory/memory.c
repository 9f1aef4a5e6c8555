#include "memory/memory.h"

#include <errno.h>

#include "memory/arena.h"
#include "base/spin.h"

struct memory *memory_new(void)
{
	struct memory *memory = arena_map(sizeof(*memory));

	if (memory && memory_setup(memory)) {
		arena_unmap(memory, sizeof(*memory));
		return NULL;
	}
	return memory;
}

int memory_setup(struct memory *memory)
{
	int result = 0;

	spin_lock(&memory->lock);
	if (!atomic_load(&memory->ready)) {
		memory->charges = charges_new();
		if (!memory->charges || pools_setup(&memory->pools)) {
			if (memory->charges)
				charges_destroy(memory->charges);
			result = -ENOMEM;
		} else {
			atomic_store(&memory->next_object, 1);
			atomic_store(&memory->ready, 1);
		}
	}
	spin_unlock(&memory->lock);
	return result;
}

void memory_destroy(struct memory *memory)
{
	charges_destroy(memory->charges);
	pools_destroy(&memory->pools);
	arena_unmap(memory, sizeof(*memory));
}

/* An entry of that key was still there: its free went past us, or it waited for its block to come again. */
static void replaced(struct memory *memory, struct member *member, const struct charge *old)
{
	if (!(old->flags & CHARGE_FREED))
		memory_leave(memory, member, old);
}

/* Takes off what was entered; -ENOMEM. */
static int undo(struct memory *memory, const struct charge *entry)
{
	struct blocks_refund refund;
	struct charge gone;

	charges_take(memory->charges, AT_ADDRESS, entry->key, &gone);
	blocks_leave(memory->charges, entry->device, entry->key, entry->bytes,
		     &memory->devices[entry->device].slack_bytes, &refund);
	return -ENOMEM;
}

static __attribute__((noinline)) int enter_range(struct memory *memory, struct hold *hold,
						 const struct charge *entry, struct refusal *ret)
{
	uint64_t taken = blocks_enter(memory->charges, entry->device, entry->kind, entry->key,
				      entry->bytes, &memory->devices[entry->device].slack_bytes);
	struct charge old;
	int result;

	if (taken == UINT64_MAX)
		return -ENOMEM;
	result = charges_put(memory->charges, entry, &old);
	if (result == 1)
		replaced(memory, hold->member, &old);
	return result < 0 || hold_settle(hold, taken, ret) ? undo(memory, entry) : 0;
}

int memory_enter_linear(struct memory *memory, struct hold *hold, const struct charge *entry,
			struct refusal *ret)
{
	struct charge old;
	uint64_t taken;
	int result;

	if (!blocks_is_inside(entry->key, entry->bytes))
		return enter_range(memory, hold, entry, ret);
	result = blocks_enter_inside(memory->charges, entry,
				     &memory->devices[entry->device].slack_bytes, &taken, &old);
	if (result < 0)
		return -ENOMEM;
	if (result == 1)
		replaced(memory, hold->member, &old);
	/* The hold is what was foreseen, and mostly it was right. */
	return taken != hold->bytes && hold_settle(hold, taken, ret) ? undo(memory, entry) : 0;
}

int memory_enter(struct memory *memory, struct hold *hold, const struct charge *entry)
{
	struct charge whole = *entry, old;
	int result;

	whole.bytes = hold->bytes;
	result = charges_put(memory->charges, &whole, &old);
	if (result == 1)
		replaced(memory, hold->member, &old);
	return result < 0 ? -ENOMEM : 0;
}

/* The pages it leaves empty, each to the kind that it was charged to. */
static __attribute__((noinline)) void leave_range(struct memory *memory, struct member *member,
						  const struct charge *entry)
{
	struct blocks_refund refund;

	blocks_leave(memory->charges, entry->device, entry->key, entry->bytes,
		     &memory->devices[entry->device].slack_bytes, &refund);
	if (!member)
		return;
	if (refund.own_bytes)
		ledger_refund(member, entry->kind, refund.own_bytes);
	if (refund.head_bytes)
		ledger_refund(member, refund.head_kind, refund.head_bytes);
	if (refund.tail_bytes)
		ledger_refund(member, refund.tail_kind, refund.tail_bytes);
}

void memory_leave_linear(struct memory *memory, struct member *member, const struct charge *entry)
{
	uint64_t empty;
	uint8_t kind;

	if (!blocks_is_inside(entry->key, entry->bytes)) {
		leave_range(memory, member, entry);
		return;
	}
	empty = blocks_leave_inside(memory->charges, entry->device, entry->key, entry->bytes,
				    &memory->devices[entry->device].slack_bytes, &kind);
	if (empty && member)
		ledger_refund(member, kind, empty);
}

void memory_leave(struct memory *memory, struct member *member, const struct charge *entry)
{
	if (entry->space == AT_ADDRESS && entry->kind == CHARGE_POOL)
		pool_live(pools_at(&memory->pools, entry->owner), -(int64_t)entry->bytes);
	else if (entry->space == AT_ADDRESS)
		memory_leave_linear(memory, member, entry);
	else if (entry->bytes && member)
		ledger_refund(member, entry->kind, entry->bytes);
}

static int is_freed(const struct charge *entry, void *arg)
{
	(void)arg;
	return entry->space == AT_ADDRESS && entry->flags & CHARGE_FREED;
}

void memory_sweep_freed(struct memory *memory)
{
	struct charges_walk walk = {0};
	struct charge batch[64];
	uint64_t many = atomic_load(&memory->freed_entries);
	size_t count;

	/* One thread sweeps; what is freed meanwhile may go with it, which costs a question at most. */
	do
		if (many < MEMORY_FREED_MOST)
			return;
	while (!atomic_compare_exchange_weak(&memory->freed_entries, &many, 0));
	do
		count = charges_collect(memory->charges, &walk, 1, is_freed, NULL, batch, 64);
	while (count);
}

void memory_put_back(struct memory *memory, const struct charge *entry)
{
	struct charge old;

	/* Without memory the entry is lost and its charge stays: never less than is held. */
	charges_put(memory->charges, entry, &old);
}

static int lives_in(const struct charge *entry, void *arg)
{
	switch (entry->space) {
	case AT_ADDRESS: return entry->kind != CHARGE_POOL && entry->owner == *(uint64_t *)arg;
	case AT_IMPORT:
	case AT_ARRAY:
	case AT_MIPMAP:
	case AT_MODULE:
	case AT_LOADED:
	case AT_LIMIT: return entry->owner == *(uint64_t *)arg;
	case AT_CONTEXT: return entry->key == *(uint64_t *)arg;
	default: return 0;
	}
}

void memory_end_context(struct memory *memory, uint64_t context,
			void (*leave)(struct memory *memory, const struct charge *entry))
{
	struct charges_walk walk = {0};
	struct charge batch[64];
	size_t count;

	do {
		count = charges_collect(memory->charges, &walk, 1, lives_in, &context, batch, 64);
		for (size_t i = 0; i < count; i++)
			leave(memory, &batch[i]);
	} while (count);
}
