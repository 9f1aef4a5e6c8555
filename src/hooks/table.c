/*
 * Joins the real table with the wrappers: which address is swapped for which wrapper.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/log.h"
#include "driver/loader.h"
#include "driver/lookup.h"
#include "hooks/hooks.h"
#include "hooks/tenant.h"

struct row {
	const char *name;
	const void *const *entry; /* in the real table */
	void *wrapper;
};

static const struct row rows[] = {
#define HOOK(symbol, family) {#symbol, (const void *const *)&real.symbol, (void *)symbol},
#include "hooks/hooks.def"
#undef HOOK
};

static _Atomic int mapped;

/* The true driver behind a tool that stands in for it: the range that is mapped too. */
static _Atomic uintptr_t behind_start, behind_end;

static int behind_holds(const void *address)
{
	return (uintptr_t)address >= atomic_load(&behind_start) &&
	       (uintptr_t)address < atomic_load(&behind_end);
}

/* The stand-in's cuGetProcAddress answers the true driver's functions: those have the same wrappers. */
static int map_behind(const void *address)
{
	struct object object;

	if (atomic_load(&behind_end))
		return behind_holds(address) ? 0 : -ENOENT;
	if (real_behind(&object))
		return -ENOENT;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (real_has(*rows[i].entry)) /* filled just now: the stand-in lacks it */
			lookup_add(*rows[i].entry, rows[i].wrapper);
		lookup_add(object_symbol(&object, rows[i].name), rows[i].wrapper);
	}
	atomic_store(&behind_start, object.start);
	atomic_store(&behind_end, object.end);
	return behind_holds(address) ? 0 : -ENOENT;
}

static int map_wrappers(int found)
{
	if (found)
		return found;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (real_has(*rows[i].entry))
			lookup_add(*rows[i].entry, rows[i].wrapper);
	map_behind(NULL);
	atomic_store_explicit(&mapped, 1, memory_order_release);
	return 0;
}

void hooks_load_behind(void)
{
	map_behind(NULL);
}

int hooks_load(void)
{
	if (atomic_load_explicit(&mapped, memory_order_acquire))
		return 0;
	return map_wrappers(real_find());
}

/* Two drivers in one process: we follow the first. Said once, because nobody would notice otherwise. */
static void tell_of_second(const void *address)
{
	static _Atomic int told;

	if (atomic_load(&told) || real_find_at(address) != -EBUSY || tenant_state() != TENANT_ON)
		return;
	if (!atomic_exchange(&told, 1))
		log_must("a second copy of the driver is loaded: what uses it is not under the "
			 "quota");
}

int hooks_load_at(const void *address)
{
	if (!atomic_load_explicit(&mapped, memory_order_acquire)) {
		int rc = map_wrappers(real_find_at(address));

		if (rc != -EBUSY || map_wrappers(real_find()))
			return rc;
	}
	if (real_holds(address) || map_behind(address) == 0)
		return 0;
	tell_of_second(address);
	return -ENOENT;
}

void *hooks_swap(void *address)
{
	return hooks_load_at(address) ? address : lookup_swap(address);
}

void *(*hooks_real_dlsym(void))(void *handle, const char *name)
{
	return loader_dlsym();
}
