/*
 * Reading the ledger for people: a copy in which every index and text is good whatever the file
 * holds. No lock is taken and nothing is retried without bound, so neither a stopped member nor a
 * hostile one can hold a reader up; figures of a member in the middle of a charge may be one
 * operation old.
 */
#include <stddef.h>
#include <string.h>

#include "ledger/live.h"
#include "ledger/protocol.h"

#define NO_INDEX UINT16_MAX

static uint64_t get(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void view_group(const struct ledger_file *file, unsigned g, struct group_view *ret)
{
	const struct group *group = &file->group[g];

	memset(ret, 0, sizeof(*ret));
	ret->index = g;
	words_load(group->name, GROUP_NAME_BYTES / 8, ret->name);
	ret->owner_uid = atomic_load(&group->owner_uid);
	ret->used_bytes = total_granules(atomic_load(&group->total)) * GRANULE_BYTES;
	ret->peak_bytes = get(&group->peak_bytes);
	ret->mem_cap_bytes = group_cap_bytes(group);
	ret->denials = get(&group->denials);
	ret->sm_cap_bp = group_sm_cap(group);
	ret->weight = group_weight(group);
	ret->priority = group_priority(group);
	ret->busy_ns = get(&group->sm.busy_ns);
	ret->throttled_ns = get(&group->sm.throttled_ns);
	ret->launches = get(&group->sm.launches);
	ret->created_ns = get(&group->created_ns);
	ret->byte_seconds = get(&group->byte_seconds);
}

void view_slot(const struct ledger *ledger, unsigned i, unsigned g, struct slot_view *ret)
{
	const struct slot *slot = &ledger->file->slot[i];
	unsigned kind;

	memset(ret, 0, sizeof(*ret));
	ret->slot = i;
	ret->group = g;
	ret->alive = slot_alive(ledger, i);
	ret->pid = atomic_load(&slot->pid);
	ret->uid = atomic_load(&slot->uid);
	ret->pid_ns_inode = get(&slot->pid_ns_inode);
	ret->start_ns = get(&slot->start_ns);
	ret->start_ticks = get(&slot->start_ticks);
	words_load(slot->comm, 2, ret->comm);
	ret->used_bytes = slot_granules(ledger->file, i) * GRANULE_BYTES;
	ret->peak_bytes = get(&slot->peak_bytes);
	ret->cap_bytes = get(&slot->cap_bytes);
	if (ret->cap_bytes == QUOTA_UNSET)
		ret->cap_bytes = QUOTA_NONE;
	ret->driver_bytes = get(&slot->driver_bytes);
	ret->denials = get(&slot->denials);
	for (kind = 0; kind < CHARGE_KINDS; kind++)
		ret->kind_bytes[kind] = get(&slot->kind_bytes[kind]);
	ret->busy_ns = get(&slot->sm.busy_ns);
	ret->throttled_ns = get(&slot->sm.throttled_ns);
	ret->launches = get(&slot->sm.launches);
	ret->byte_seconds = get(&slot->byte_seconds);
}

/* A slot that counts: owned, or dead and not yet reaped. */
static int is_occupied(const struct ledger *ledger, unsigned i)
{
	return atomic_load(&ledger->file->live[i].word) != 0 &&
	       !op_is_zero(atomic_load(&ledger->file->slot[i].op));
}

void ledger_view(const struct ledger *ledger, struct ledger_view *ret)
{
	const struct ledger_file *file = ledger->file;
	uint16_t index[LEDGER_GROUPS];
	struct group_view *group;
	struct slot_view *slot;
	unsigned i, g, kind;

	memset(ret, 0, offsetof(struct ledger_view, groups));
	memset(index, 0xff, sizeof(index));
	memcpy(ret->uuid, ledger->uuid, sizeof(ret->uuid));
	words_load(file->header.device_name, 8, ret->device_name);
	ret->device_bytes = get(&file->header.device_bytes);
	ret->context_bytes = get(&file->header.context_bytes);
	ret->reclaimed_slots = get(&file->header.reclaimed_slots);
	ret->turn_switches = get(&file->turn.switches);
	for (i = 0; i < LEDGER_SLOTS; i++) {
		g = slot_group(&file->slot[i]);
		if (g == LEDGER_GROUPS || !is_occupied(ledger, i))
			continue;
		if (index[g] == NO_INDEX) {
			index[g] = (uint16_t)ret->group_count++;
			view_group(file, g, &ret->groups[index[g]]);
		}
		slot = &ret->slots[ret->slot_count++];
		group = &ret->groups[index[g]];
		view_slot(ledger, i, g, slot);
		group->members++;
		for (kind = 0; kind < CHARGE_KINDS; kind++)
			group->kind_bytes[kind] += slot->kind_bytes[kind];
	}
}

void refusal_fill(const struct member *member, enum refusal_why why, uint64_t asked_bytes,
		  struct refusal *ret)
{
	const struct ledger *ledger = member->ledger;
	unsigned g = member->group, i;
	uint64_t bytes;

	memset(ret, 0, sizeof(*ret));
	ret->why = why;
	ret->asked_bytes = asked_bytes;
	ret->used_bytes =
		why == REFUSED_PROCESS ? ledger_process_used(member) : ledger_group_used(member);
	ret->cap_bytes =
		why == REFUSED_PROCESS ? ledger_process_cap(member) : ledger_group_cap(member);
	memcpy(ret->group, member->name, sizeof(ret->group));
	for (i = 0; i < LEDGER_SLOTS; i++) {
		if (!slot_alive(ledger, i) || slot_group(&ledger->file->slot[i]) != g)
			continue;
		ret->members++;
		bytes = slot_granules(ledger->file, i) * GRANULE_BYTES;
		if (bytes < ret->largest_bytes || bytes == 0)
			continue;
		ret->largest_bytes = bytes;
		ret->largest_pid = atomic_load(&ledger->file->slot[i].pid);
	}
}

unsigned ledger_peers(const struct member *member, struct peer *ret, unsigned most)
{
	const struct ledger *ledger = member->ledger;
	const struct slot *slots = ledger->file->slot;
	unsigned g = member->group, count = 0;
	uint64_t inode = get(&slots[member->slot].pid_ns_inode);

	if (!member_is_ours(member) || atomic_load(&member->lost))
		return 0;
	for (unsigned i = 0; i < LEDGER_SLOTS && count < most; i++) {
		if (slot_group(&slots[i]) != g || i == member->slot || !slot_alive(ledger, i) ||
		    get(&slots[i].pid_ns_inode) != inode)
			continue;
		ret[count].slot = i;
		ret[count].pid = atomic_load(&slots[i].pid);
		ret[count].op = atomic_load(&slots[i].op);
		ret[count].used_bytes = slot_granules(ledger->file, i) * GRANULE_BYTES;
		count++;
	}
	return count;
}

/* One operation since then moves it one way: between what it was and what it is. */
uint64_t ledger_peer_most(const struct member *member, const struct peer *peer)
{
	const struct ledger_file *file = member->ledger->file;
	uint64_t now = slot_granules(file, peer->slot) * GRANULE_BYTES;
	uint64_t op = atomic_load(&file->slot[peer->slot].op);

	if (OP_SEQ(op) - OP_SEQ(peer->op) > 1)
		return UINT64_MAX;
	return now > peer->used_bytes ? now : peer->used_bytes;
}
