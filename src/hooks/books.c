/*
 * Keeping the books: the ledger against the driver's own figure for this process.
 *
 * What the driver holds beyond what is charged is `overhead`: code that is loaded late, streams, what the driver
 * keeps for itself. The other way round is as it should be: managed memory, heaps and globals are charged
 * before they are taken, and so is every call under way. No CUDA call.
 */
#include "hooks/books.h"

#include "base/clock.h"
#include "hooks/driver_bytes.h"
#include "hooks/ipc.h"
#include "hooks/mem_call.h"
#include "base/spin.h"

static void note_figure(struct device_tenant *tenant, uint64_t driver)
{
	struct slot *slot = &tenant->ledger.file->slot[tenant->member.slot];

	atomic_store_explicit(&slot->driver_bytes, driver, memory_order_relaxed);
	atomic_store_explicit(&slot->driver_at_ns, clock_now_ns(), memory_order_relaxed);
}

static void reconcile(struct memory *memory, struct device_tenant *tenant, uint64_t used,
		      uint64_t driver)
{
	struct member *member = &tenant->member;
	uint64_t overhead = member->kind_bytes[CHARGE_OVERHEAD];
	uint64_t known = used > overhead ? used - overhead : 0;
	uint64_t now;

	/* What others carry for us may be in the driver's figure of us. */
	known += atomic_load(&memory->uncarried_bytes[tenant->ordinal]);
	now = books_overhead(&memory->books[tenant->ordinal], overhead, known, driver);
	if (now > overhead)
		ledger_charge_forced(member, CHARGE_OVERHEAD, now - overhead);
	else if (now < overhead)
		ledger_refund(member, CHARGE_OVERHEAD, overhead - now);
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
