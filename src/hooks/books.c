/*
 * Keeping the books: the ledger against the driver's own figure for this process.
 *
 * What the driver holds beyond what is charged is `overhead` (code that is loaded late, what the driver keeps for
 * itself). What is charged beyond it is idle in pools that gave memory back by themselves; that is
 * refunded, unless other charges stand for what is not taken yet (managed memory, heaps). No CUDA call.
 */
#include "hooks/books.h"

#include "base/clock.h"
#include "hooks/driver_bytes.h"
#include "hooks/ipc.h"
#include "hooks/mem_call.h"
#include "memory/spin.h"

/* Below this, and below a tenth of a percent, figures that move every second are not worth a charge. */
#define WORTH_BYTES (1ull << 20)

static void note_figure(struct device_tenant *tenant, uint64_t driver)
{
	struct slot *slot = &tenant->ledger.file->slot[tenant->member.slot];

	atomic_store_explicit(&slot->driver_bytes, driver, memory_order_relaxed);
	atomic_store_explicit(&slot->driver_at_ns, clock_now_ns(), memory_order_relaxed);
}

static void lower_pools(struct memory *memory, const struct device_tenant *tenant, uint64_t excess)
{
	uint32_t count = atomic_load_explicit(&memory->pools.count, memory_order_acquire);

	for (uint32_t i = 0; i < count && excess; i++) {
		struct pool *pool = pools_nth(&memory->pools, i);

		if (pool->member == &tenant->member && pool->device == tenant->ordinal)
			excess -= pool_lower(pool, excess);
	}
}

static void reconcile(struct memory *memory, struct device_tenant *tenant, uint64_t used,
		      uint64_t driver)
{
	struct member *member = &tenant->member;
	uint64_t overhead = member->kind_bytes[CHARGE_OVERHEAD];
	uint64_t known = used > overhead ? used - overhead : 0;
	/* What others carry for us may be in the driver's figure of us. */
	uint64_t all = known + atomic_load(&memory->uncarried_bytes[tenant->ordinal]);
	uint64_t beyond = driver > all ? driver - all : 0;

	if (beyond > overhead + WORTH_BYTES)
		ledger_charge_forced(member, CHARGE_OVERHEAD, beyond - overhead);
	else if (beyond < overhead)
		ledger_refund(member, CHARGE_OVERHEAD, overhead - beyond);
	if (known > driver + WORTH_BYTES && !member->kind_bytes[CHARGE_MANAGED] &&
	    !atomic_load(&memory->committed_bytes[tenant->ordinal]))
		lower_pools(memory, tenant, known - driver);
}

void books_keep(struct device_tenant *tenant)
{
	struct memory *memory = mem_of_process();
	uint64_t used = ledger_process_used(&tenant->member), driver;

	if (!memory)
		return;
	ledger_reap(&tenant->ledger);
	share_keep(memory, tenant);
	if (!used || atomic_exchange(&memory->books_busy[tenant->ordinal], 1))
		return;
	if (!driver_bytes_of_process(tenant, &driver)) {
		note_figure(tenant, driver);
		/* Somebody charged or refunded meanwhile: the two figures are not of one instant. */
		if (ledger_process_used(&tenant->member) == used)
			reconcile(memory, tenant, used, driver);
	}
	atomic_store(&memory->books_busy[tenant->ordinal], 0);
}
