/*
 * Merging what several sources allow. UNSET is the neutral element, NONE loses against any number:
 * whoever says less never lifts what another source set.
 */
#include "base/quota.h"

static uint64_t stricter_u64(uint64_t a, uint64_t b)
{
	if (a == QUOTA_UNSET)
		return b;
	if (b == QUOTA_UNSET)
		return a;
	return a < b ? a : b;
}

static uint32_t stricter_u32(uint32_t a, uint32_t b)
{
	return (uint32_t)stricter_u64(a, b);
}

struct quota quota_min(struct quota strong, struct quota weak)
{
	struct quota min = {
		.mem_bytes = stricter_u64(strong.mem_bytes, weak.mem_bytes),
		.mem_process_bytes = stricter_u64(strong.mem_process_bytes, weak.mem_process_bytes),
		.sm_bp = stricter_u32(strong.sm_bp, weak.sm_bp),
		.weight = strong.weight ? strong.weight : weak.weight,
		.priority = strong.priority ? strong.priority : weak.priority,
	};

	return min;
}

struct quota quota_strictest(struct quota a, struct quota b)
{
	struct quota min = quota_min(a, b);

	min.weight = stricter_u32(a.weight, b.weight);
	min.priority = stricter_u32(a.priority, b.priority);
	return min;
}

struct quota quota_fill(struct quota quota, struct quota fallback)
{
	struct quota filled = {
		.mem_bytes = quota.mem_bytes ? quota.mem_bytes : fallback.mem_bytes,
		.mem_process_bytes = quota.mem_process_bytes ? quota.mem_process_bytes
							     : fallback.mem_process_bytes,
		.sm_bp = quota.sm_bp ? quota.sm_bp : fallback.sm_bp,
		.weight = quota.weight ? quota.weight : fallback.weight,
		.priority = quota.priority ? quota.priority : fallback.priority,
	};

	return filled;
}

int quota_any(const struct quota *quota)
{
	return quota->mem_bytes || quota->mem_process_bytes || quota->sm_bp || quota->weight ||
	       quota->priority;
}
