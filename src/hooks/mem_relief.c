/*
 * Before a refusal: what this process holds and does not need. Its pools and graph memory are trimmed; blocks
 * that were freed a moment ago come back when their streams get there, so for those it waits a little; and the
 * books are kept, since the driver may hold less than they say.
 */
#include <time.h>

#include "hooks/books.h"
#include "hooks/capture.h"
#include "hooks/graph_mem.h"
#include "hooks/mem_pool.h"

enum { WAITS = 50, WAIT_NS = 1000000 };

static int trim(struct memory *memory, struct device_tenant *tenant)
{
	uint64_t before = ledger_process_used(&tenant->member);

	mem_pools_trim(memory, (unsigned)tenant->ordinal);
	graph_mem_refresh(memory, tenant, 1);
	return ledger_process_used(&tenant->member) < before;
}

/* Frees that streams have not come to yet, if they would help. A capture would be ended by waiting: then none. */
static int wait_for_frees(struct memory *memory, const struct mem_want *want)
{
	struct device_tenant *tenant = want->tenant;
	const struct timespec nap = {0, WAIT_NS};

	for (int i = 0; i < WAITS && !captures_active; i++) {
		uint64_t idle = mem_pools_fresh_idle(memory, (unsigned)tenant->ordinal);

		if (!idle || ledger_room(&tenant->member) + idle < want->bytes)
			return 0;
		nanosleep(&nap, NULL);
		if (trim(memory, tenant))
			return 1;
	}
	mem_pools_forget_frees(memory, (unsigned)tenant->ordinal);
	return 0;
}

int mem_give_up(void *arg, unsigned attempt)
{
	const struct mem_want *want = arg;
	struct memory *memory = mem_of_process();

	if (!memory)
		return 0;
	if (attempt > 0)
		return attempt < WAITS && wait_for_frees(memory, want);
	member_refresh(&want->tenant->member);
	trim(memory, want->tenant);
	books_keep(want->tenant);
	return 1;
}
