/*
 * How busy the own group kept a device lately, see nvml_meter.h.
 *
 * One history per device and process, in a mapping made at first use. Its lock is only ever tried: who does
 * not get it (another thread reads, or a fork left it taken) measures for himself.
 */
#include "hooks/nvml_meter.h"

#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

#define WINDOW_NS (100 * NS_PER_MS)
#define FIRST_NS  (50 * NS_PER_MS)
#define DEVICES	  64

struct busy {
	uint64_t start_ns; /* tells a slot's owner from the one before */
	uint64_t busy_ns;
	unsigned pct;
};

struct history {
	char uuid[UUID_TEXT_BYTES];
	uint64_t at_ns; /* 0 = never */
	struct busy group;
	struct busy slot[LEDGER_SLOTS];
};

static struct {
	_Atomic uint32_t lock;
	_Atomic(struct history *) history;
} devices[DEVICES];

static struct history *map_history(void)
{
	void *made = mmap(NULL, sizeof(struct history), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return made == MAP_FAILED ? NULL : made;
}

/* The device's history, locked; NULL when somebody else has it or there is no room. */
static struct history *take(const char *uuid, unsigned *ret_index)
{
	for (unsigned i = 0; i < DEVICES; i++) {
		uint32_t unlocked = 0;
		struct history *history = atomic_load(&devices[i].history);

		if (history && strcmp(history->uuid, uuid) != 0)
			continue;
		if (!atomic_compare_exchange_strong(&devices[i].lock, &unlocked, 1))
			return NULL;
		history = atomic_load(&devices[i].history);
		if (!history && (history = map_history())) {
			memcpy(history->uuid, uuid, UUID_TEXT_BYTES);
			atomic_store(&devices[i].history, history);
		}
		if (history && strcmp(history->uuid, uuid) == 0) {
			*ret_index = i;
			return history;
		}
		atomic_store(&devices[i].lock, 0);
	}
	return NULL;
}

static void advance(struct busy *busy, uint64_t start_ns, uint64_t busy_ns, uint64_t elapsed_ns)
{
	int same = busy->start_ns == start_ns && busy_ns >= busy->busy_ns;
	uint64_t spent = same ? busy_ns - busy->busy_ns : 0;
	uint64_t pct = elapsed_ns ? (spent * 100 + elapsed_ns / 2) / elapsed_ns : 0;

	*busy = (struct busy){start_ns, busy_ns, (unsigned)(pct > 100 ? 100 : pct)};
}

static void look(struct history *history, const struct nvml_view *view, uint64_t now_ns)
{
	uint64_t elapsed_ns = history->at_ns ? now_ns - history->at_ns : 0;
	const struct slot_view *slot;
	unsigned at = 0;

	history->at_ns = now_ns;
	if (view->own)
		advance(&history->group, view->own->created_ns, view->own->busy_ns, elapsed_ns);
	else
		history->group.pct = 0;
	while ((slot = nvml_view_next(view, &at)))
		advance(&history->slot[slot->slot % LEDGER_SLOTS], slot->start_ns, slot->busy_ns,
			elapsed_ns);
}

static void look_twice(struct history *history, struct nvml_view *view)
{
	const struct timespec pause = {0, FIRST_NS};

	look(history, view, clock_now_ns());
	nanosleep(&pause, NULL);
	nvml_view_again(view);
	look(history, view, clock_now_ns());
}

static void report(const struct history *history, const struct nvml_view *view,
		   struct nvml_meter *ret)
{
	const struct slot_view *slot;
	unsigned at = 0;

	ret->group_pct = view->own ? history->group.pct : 0;
	ret->count = 0;
	while ((slot = nvml_view_next(view, &at)))
		ret->process_pct[ret->count++] = history->slot[slot->slot % LEDGER_SLOTS].pct;
}

void nvml_meter_read(struct nvml_view *view, struct nvml_meter *ret)
{
	struct history *history, *own = NULL;
	unsigned index = 0;

	*ret = (struct nvml_meter){0};
	history = take(view->uuid, &index);
	if (!history)
		own = map_history();
	if (own)
		look_twice(own, view);
	else if (history && !history->at_ns)
		look_twice(history, view);
	else if (history && clock_now_ns() - history->at_ns >= WINDOW_NS)
		look(history, view, clock_now_ns());
	if (history || own)
		report(history ? history : own, view, ret);
	if (history)
		atomic_store(&devices[index].lock, 0);
	if (own)
		munmap(own, sizeof(*own));
}
