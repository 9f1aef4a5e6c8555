/*
 * What a member may take now: its own quotas, which lie in private memory, and the group's in the
 * ledger, which can only make that smaller. A limits file of `cuota set`, if it is to be trusted,
 * stands in for the environment and the ledger's figure; the admin's ceiling stays.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "ledger/map.h"
#include "ledger/protocol.h"

static uint64_t capped(uint64_t bytes)
{
	return bytes == QUOTA_UNSET ? QUOTA_NONE : bytes;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint32_t capped_bp(uint32_t bp)
{
	return bp == 0 || bp > QUOTA_SM_NONE ? QUOTA_SM_NONE : bp;
}

static uint32_t smaller_bp(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void member_recompute(struct member *member)
{
	const struct group *group = &member->ledger->file->group[member->group];
	const struct quota *ceiling = &member->ceiling, *limits = &member->limits;
	const struct quota *asked = &member->asked;
	int by_file = limits->mem_bytes != QUOTA_UNSET;
	uint32_t sm, weight, priority;

	atomic_store(&member->cap_bytes,
		     smaller(capped(ceiling->mem_bytes),
			     capped(by_file ? limits->mem_bytes : asked->mem_bytes)));
	atomic_store(&member->follow_ledger, !by_file);
	atomic_store(&member->process_cap_bytes,
		     smaller(capped(ceiling->mem_process_bytes),
			     capped(limits->mem_process_bytes ? limits->mem_process_bytes
							      : asked->mem_process_bytes)));
	sm = limits->sm_bp ? capped_bp(limits->sm_bp)
			   : smaller_bp(capped_bp(asked->sm_bp), group_sm_cap(group));
	atomic_store(&member->sm_cap_bp, smaller_bp(capped_bp(ceiling->sm_bp), sm));
	weight = limits->weight ? limits->weight : group_weight(group);
	priority = limits->priority ? limits->priority : group_priority(group);
	if (ceiling->weight && ceiling->weight < weight)
		weight = ceiling->weight;
	if (ceiling->priority && ceiling->priority < priority)
		priority = ceiling->priority;
	atomic_store(&member->weight, weight);
	atomic_store(&member->priority, priority);
	if (!atomic_load(&member->lost))
		atomic_store(&member->ledger->file->slot[member->slot].cap_bytes,
			     atomic_load(&member->process_cap_bytes));
}

void member_refresh(struct member *member)
{
	const struct group *group;
	struct quota limits;
	struct error err;
	uint32_t gen;
	int code;

	if (!member_is_here(member) || !member_limits_moved(member))
		return;
	group = &member->ledger->file->group[member->group];
	gen = atomic_load_explicit(&group->limits_gen, memory_order_acquire);
	code = limits_read(member->ledger->place.dir, member->name, geteuid(), &limits, &err);
	member_lock(member);
	if (code == 0)
		member->limits = limits;
	else if (code == -ENOENT)
		memset(&member->limits, 0, sizeof(member->limits));
	else /* what is in force stays: a file that cannot be read lifts no limit */
		log_line(LOG_WARN, "limits of group %s: %s", member->name, err.text);
	atomic_store(&member->limits_gen, gen);
	member_recompute(member);
	member_unlock(member);
}

uint64_t ledger_group_cap(const struct member *member)
{
	return member_is_here(member) ? member_group_cap(member) : UINT64_MAX;
}

uint64_t ledger_process_cap(const struct member *member)
{
	return atomic_load(&member->process_cap_bytes);
}

uint64_t ledger_process_used(const struct member *member)
{
	return atomic_load_explicit(&member->private_bytes, memory_order_relaxed);
}

void ledger_used_mark(struct member *member, struct used_mark *ret)
{
	member_lock(member);
	*ret = (struct used_mark){ledger_process_used(member), member->charged_ever};
	member_unlock(member);
}

void ledger_used_since(struct member *member, const struct used_mark *mark, struct used_range *ret)
{
	struct used_mark now;
	uint64_t charged, refunded;

	ledger_used_mark(member, &now);
	charged = now.charged_ever - mark->charged_ever;
	refunded = charged + mark->used_bytes - now.used_bytes;
	ret->most = mark->used_bytes + charged;
	ret->least = mark->used_bytes > refunded ? mark->used_bytes - refunded : 0;
}

uint64_t ledger_group_used(const struct member *member)
{
	uint64_t own = ledger_process_used(member), group;

	if (!member_is_here(member) || atomic_load(&member->lost))
		return own;
	group = GRANULE_BYTES *
		total_granules(atomic_load(&member->ledger->file->group[member->group].total));
	return group > own ? group : own;
}

int ledger_others_hold(const struct member *member)
{
	/* A process's bytes are rounded up to granules. Where other threads charge between the two reads, it may say 1. */
	uint64_t own = ledger_process_used(member);

	return ledger_group_used(member) - own >= GRANULE_BYTES;
}

uint64_t ledger_room(const struct member *member)
{
	uint64_t used = ledger_group_used(member), cap = ledger_group_cap(member), room;
	uint64_t own = ledger_process_used(member), own_cap = ledger_process_cap(member);

	room = cap == UINT64_MAX ? UINT64_MAX : cap > used ? cap - used : 0;
	if (own_cap == UINT64_MAX)
		return room;
	return smaller(room, own_cap > own ? own_cap - own : 0);
}
