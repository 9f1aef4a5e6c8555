/*
 * Keeping the books: the ledger against the driver's own figure for this process.
 *
 * What the driver holds beyond what is charged is `overhead`: code that is loaded late, streams, what the driver
 * keeps for itself. The other way round is as it should be: managed memory, heaps and globals are charged
 * before they are taken, and so is every call under way. No CUDA call.
 *
 * The service thread does it once a second. That alone is too late near the cap, where a program takes the rest
 * in less; so the thread that charges looks there itself, before it charges and once more after the driver's call.
 * It sees the others of its group too, whose own look may be to come.
 */
#include "hooks/books.h"

#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "hooks/driver_bytes.h"
#include "hooks/ipc.h"
#include "hooks/mem_call.h"

enum { READINGS = 3, PEERS_MOST = 64, WAITS = 100, WAIT_NS = 20000 };

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What a look finds: of several readings, what all of them bear out. */
struct look {
	struct beyond beyond;
	uint64_t driver, peers;
};

static void note_figure(struct device_tenant *tenant, uint64_t driver)
{
	struct slot *slot = &tenant->ledger.file->slot[tenant->member.slot];

	atomic_store_explicit(&slot->driver_bytes, driver, memory_order_relaxed);
	atomic_store_explicit(&slot->driver_at_ns, clock_now_ns(), memory_order_relaxed);
}

/*
 * What the others hold and have not charged, by the same list of NVML's. Only where both are numbered alike: one PID
 * namespace, NVML's. More than BOOKS_NEAR is something else: memory that is imported and charged to its exporter.
 */
static uint64_t uncharged_of(const struct member *member, const struct peer *peers, unsigned count,
			     const struct figures *figures)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++) {
		uint64_t beyond = books_less(driver_bytes_in(figures, peers[i].pid),
					     ledger_peer_most(member, &peers[i]));

		sum += beyond < BOOKS_NEAR ? beyond : 0;
	}
	return sum;
}

/*
 * One reading. The figures are not of one instant: NVML's is of some moment between the looks at ours, when the process
 * may have used more or less than at either of them, if it takes and gives back quickly.
 */
static int read_once(const struct memory *memory, struct device_tenant *tenant, struct look *ret)
{
	struct member *member = &tenant->member;
	uint64_t overhead = member->kind_bytes[CHARGE_OVERHEAD], late;
	struct peer peers[PEERS_MOST];
	struct used_mark before;
	struct used_range used;
	struct figures figures;
	unsigned count;

	count = ledger_peers(member, peers, PEERS_MOST);
	ledger_used_mark(member, &before);
	if (driver_bytes_of_all(tenant, &figures) || driver_bytes_own(&figures, &ret->driver))
		return -1;
	ledger_used_since(member, &before, &used);
	ret->peers = figures.own == (unsigned)getpid()
			     ? uncharged_of(member, peers, count, &figures)
			     : 0;
	/*
	 * What others carry for us may be in the driver's figure of us. Managed memory and heaps may not be there
	 * yet, and what we carry for others not any more: that hides what the driver took.
	 */
	late = atomic_load(&memory->uncarried_bytes[tenant->ordinal]);
	ret->beyond.least = books_less(ret->driver, books_less(used.most, overhead) + late);
	late = member->kind_bytes[CHARGE_MANAGED] + member->kind_bytes[CHARGE_IMPORT] +
	       books_less(member->kind_bytes[CHARGE_CONTEXT], tenant->context_bytes);
	ret->beyond.most = books_less(ret->driver, books_less(used.least, overhead + late));
	return 0;
}

/* As many readings as are asked for, one when the first finds nothing to believe. 0, or -1 where NVML cannot be had. */
static int read_driver(const struct memory *memory, struct device_tenant *tenant, int readings,
		       struct look *ret)
{
	uint64_t overhead = tenant->member.kind_bytes[CHARGE_OVERHEAD];
	struct look again;

	if (read_once(memory, tenant, ret))
		return -1;
	for (int i = 1; i < readings && (ret->beyond.least > overhead || ret->peers); i++) {
		if (read_once(memory, tenant, &again))
			return -1;
		ret->beyond.least = least_of(ret->beyond.least, again.beyond.least);
		ret->beyond.most = most_of(ret->beyond.most, again.beyond.most);
		ret->peers = least_of(ret->peers, again.peers);
		ret->driver = again.driver;
	}
	return 0;
}

/* What a context of this device grows to, so that the next one is charged for it from its first instant on. */
static void learn_growth(struct device_tenant *tenant, uint64_t overhead)
{
	_Atomic uint64_t *known = &tenant->ledger.file->header.context_bytes;
	uint64_t bare = tenant->context_bytes, grown = bare + overhead;

	if (bare && overhead < BOOKS_CERTAIN && grown > atomic_load(known) &&
	    tenant->member.kind_bytes[CHARGE_CONTEXT] == bare)
		atomic_store(known, grown);
}

static void charge_overhead(struct device_tenant *tenant, struct books *books,
			    const struct look *look, int sure)
{
	struct member *member = &tenant->member;
	uint64_t overhead = member->kind_bytes[CHARGE_OVERHEAD];
	uint64_t now = books_overhead(books, overhead, &look->beyond, sure);

	if (books_is_starting(books, clock_now_ns())) {
		if (sure)
			learn_growth(tenant, now);
		now = most_of(now, atomic_load(&books->ahead_bytes));
	}
	if (now > overhead)
		ledger_charge_forced(member, CHARGE_OVERHEAD, now - overhead);
	else if (now < overhead)
		ledger_refund(member, CHARGE_OVERHEAD, overhead - now);
}

/* Under books_busy. */
static void look(struct memory *memory, struct device_tenant *tenant, uint64_t left, int sure)
{
	struct books *books = &memory->devices[tenant->ordinal].books;
	struct look found;
	int failed = read_driver(memory, tenant, sure ? READINGS : 1, &found);

	if (!failed) {
		note_figure(tenant, found.driver);
		charge_overhead(tenant, books, &found, sure);
	}
	if (!sure)
		return;
	/* Where there is no figure, there is no use in asking for one again and again. */
	books_looked(books, left, failed ? 0 : found.peers, clock_now_ns());
}

void books_keep(struct device_tenant *tenant)
{
	struct memory *memory = mem_of_process();
	int sure;

	if (!memory)
		return;
	ledger_reap(&tenant->ledger);
	share_keep(memory, tenant);
	sure = books_is_young(&memory->devices[tenant->ordinal].books);
	if ((!sure && !ledger_process_used(&tenant->member)) ||
	    atomic_exchange(&memory->books_busy[tenant->ordinal], 1))
		return;
	look(memory, tenant, ledger_room(&tenant->member), sure);
	atomic_store(&memory->books_busy[tenant->ordinal], 0);
}

/* Whoever looks already finds what we would. A look takes some 60 us; nobody waits long for a stopped thread. */
static int begin_look(struct memory *memory, unsigned device)
{
	const struct timespec nap = {0, WAIT_NS};

	if (!atomic_exchange(&memory->books_busy[device], 1))
		return 1;
	for (int i = 0; i < WAITS && atomic_load(&memory->books_busy[device]); i++)
		nanosleep(&nap, NULL);
	return 0;
}

uint64_t books_look_before(struct memory *memory, struct device_tenant *tenant, uint64_t left,
			   int *ret_looked)
{
	struct books *books = &memory->devices[tenant->ordinal].books;

	*ret_looked = 0;
	if (!driver_bytes_known())
		return 0;
	if (books_is_due(books, left, clock_now_ns())) {
		*ret_looked = begin_look(memory, (unsigned)tenant->ordinal);
		if (*ret_looked) {
			look(memory, tenant, left, 1);
			atomic_store(&memory->books_busy[tenant->ordinal], 0);
		}
	}
	return left < BOOKS_NEAR ? atomic_load(&books->peers_bytes) : 0;
}

int books_look_after(struct memory *memory, struct device_tenant *tenant, enum charge_kind kind,
		     struct refusal *ret)
{
	struct member *member = &tenant->member;
	struct books *books = &memory->devices[tenant->ordinal].books;
	uint64_t peers;

	if (begin_look(memory, (unsigned)tenant->ordinal)) {
		look(memory, tenant, atomic_load(&books->looked_room), 1);
		atomic_store(&memory->books_busy[tenant->ordinal], 0);
	}
	peers = atomic_load(&books->peers_bytes);
	if (ledger_process_used(member) <= ledger_process_cap(member) &&
	    ledger_group_used(member) <= ledger_group_cap(member) &&
	    peers <= ledger_group_cap(member) - ledger_group_used(member))
		return 0;
	/* Not even a granule fits: this only tells the numbers. */
	if (!ledger_charge_beside(member, kind, GRANULE_BYTES, peers, ret))
		ledger_refund(member, kind, GRANULE_BYTES);
	return 1;
}

void books_context_made(struct memory *memory, struct device_tenant *tenant, uint64_t ahead)
{
	struct books *books = &memory->devices[tenant->ordinal].books;

	atomic_store(&books->made_ns, clock_now_ns());
	atomic_store(&books->ahead_bytes, ahead);
	if (ahead > tenant->member.kind_bytes[CHARGE_OVERHEAD])
		ledger_charge_forced(&tenant->member, CHARGE_OVERHEAD,
				     ahead - tenant->member.kind_bytes[CHARGE_OVERHEAD]);
	atomic_store(&books->near_bytes, BOOKS_YOUNG);
}

void books_context_ended(struct memory *memory, unsigned device)
{
	atomic_store(&memory->devices[device].books.ahead_bytes, 0);
}
