/*
 * What the groups did since `cuota top` began: a fixed table, the longest gone makes room.
 */
#include "top.h"

#include <math.h>
#include <string.h>

static struct history table[HISTORY_GROUPS];
static unsigned table_count;

static struct history *find(const char *gpu, const char *group)
{
	for (unsigned i = 0; i < table_count; i++)
		if (!strcmp(table[i].gpu, gpu) && !strcmp(table[i].group, group))
			return &table[i];
	return NULL;
}

const struct history *history_of(const char *gpu, const char *group)
{
	return find(gpu, group);
}

static struct history *make(const char *gpu, const char *group)
{
	struct history *entry = NULL;

	if (table_count < HISTORY_GROUPS)
		entry = &table[table_count++];
	for (unsigned i = 0; !entry && i < table_count; i++)
		if (!table[i].fresh)
			entry = &table[i];
	if (!entry)
		return NULL;
	memset(entry, 0, sizeof(*entry));
	snprintf(entry->gpu, sizeof(entry->gpu), "%s", gpu);
	snprintf(entry->group, sizeof(entry->group), "%s", group);
	return entry;
}

static void append(struct history *entry, double share, double used)
{
	if (entry->count == HISTORY_LENGTH) {
		memmove(entry->share, entry->share + 1, sizeof(entry->share) - sizeof(float));
		memmove(entry->used, entry->used + 1, sizeof(entry->used) - sizeof(float));
		entry->count--;
	}
	entry->share[entry->count] = isnan(share) ? -1 : (float)share;
	entry->used[entry->count++] = (float)used;
	entry->fresh = 1;
}

void history_add(const struct snapshot *snapshot)
{
	for (unsigned i = 0; i < table_count; i++)
		table[i].fresh = 0;
	for (unsigned g = 0; g < snapshot->gpu_count; g++) {
		const struct gpu_state *gpu = &snapshot->gpus[g];

		for (unsigned n = 0; n < gpu->group_count; n++) {
			const struct group_state *state = &gpu->groups[n];
			uint64_t whole = state->caps.mem_bytes == QUOTA_NONE
						 ? gpu->total_bytes
						 : state->caps.mem_bytes;
			struct history *entry = find(gpu->uuid, state->view->name);

			if (!entry)
				entry = make(gpu->uuid, state->view->name);
			if (entry)
				append(entry, state->share,
				       whole ? (double)state->view->used_bytes / (double)whole : 0);
		}
	}
}
