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
	const void *const *entry; /* in the real table */
	void *wrapper;
};

static const struct row rows[] = {
#define HOOK(symbol, family) {(const void *const *)&real.symbol, (void *)symbol},
#include "hooks/hooks.def"
#undef HOOK
};

static _Atomic int mapped;

static int map_wrappers(int found)
{
	if (found)
		return found;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (real_has(*rows[i].entry))
			lookup_add(*rows[i].entry, rows[i].wrapper);
	atomic_store_explicit(&mapped, 1, memory_order_release);
	return 0;
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
	if (!atomic_load_explicit(&mapped, memory_order_acquire))
		return map_wrappers(real_find_at(address));
	if (real_holds(address))
		return 0;
	tell_of_second(address);
	return -ENOENT;
}

void *(*hooks_real_dlsym(void))(void *handle, const char *name)
{
	return loader_dlsym();
}
