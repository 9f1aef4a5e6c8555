/*
 * NVML's entry points, and which address is swapped for which wrapper.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "driver/lazy.h"
#include "driver/library.h"
#include "driver/lookup.h"
#include "hooks/hooks.h"
#include "hooks/nvml.h"

enum nvml_entry {
#define NVML_HOOK(symbol, family) ENTRY_##symbol,
#define NVML_CALL(symbol)
#include "hooks/nvml.def"
#undef NVML_HOOK
#undef NVML_CALL
	HOOK_ENTRIES
};

static const char *const names[] = {
#define NVML_HOOK(symbol, family) #symbol,
#define NVML_CALL(symbol)
#include "hooks/nvml.def"
#undef NVML_HOOK
#undef NVML_CALL
#define NVML_HOOK(symbol, family)
#define NVML_CALL(symbol) #symbol,
#include "hooks/nvml.def"
#undef NVML_HOOK
#undef NVML_CALL
};

#define ENTRIES (sizeof(names) / sizeof(names[0]))

_Static_assert(sizeof(struct real_nvml) == ENTRIES * sizeof(void *), "an array of pointers");

#define NVML_CALL(symbol)
#define NVML_HOOK(symbol, family) NVML_STUB(symbol, __COUNTER__)
#define NVML_STUB(symbol, n) \
	LAZY_STUB(nvml_lazy, symbol, n) \
	extern __typeof__(symbol) nvml_lazy_##symbol __attribute__((visibility("hidden"))); \
	_Static_assert(ENTRY_##symbol == n, \
		       "stubs are numbered as the table is: no __COUNTER__ before");
#include "hooks/nvml.def"
#undef NVML_HOOK

struct real_nvml real_nvml = {
#define NVML_HOOK(symbol, family) .symbol = nvml_lazy_##symbol,
#include "hooks/nvml.def"
#undef NVML_HOOK
};

static const void *const stubs[] = {
#define NVML_HOOK(symbol, family) (const void *)nvml_lazy_##symbol,
#include "hooks/nvml.def"
#undef NVML_HOOK
};

static void *const wrappers[] = {
#define NVML_HOOK(symbol, family) (void *)symbol,
#include "hooks/nvml.def"
#undef NVML_HOOK
};
#undef NVML_CALL

static const char *const marks[] = {"nvmlInit_v2", "nvmlSystemGetDriverVersion",
				    "nvmlDeviceGetUUID", NULL};

static struct library nvml = {
	.soname = "libnvidia-ml.so.1",
	.marks = marks,
	.names = names,
	.count = ENTRIES,
	.stubs = stubs,
	.stub_count = HOOK_ENTRIES,
	.entries = (_Atomic(void *) *)&real_nvml,
};

static _Atomic int mapped;

void *nvml_lazy_find(unsigned long n, unsigned long *ret_code)
	__attribute__((visibility("hidden"), used));

void *nvml_lazy_find(unsigned long n, unsigned long *ret_code)
{
	void *found;

	*ret_code = NVML_ERROR_LIBRARY_NOT_FOUND;
	if (library_find(&nvml))
		return NULL;
	found = atomic_load_explicit(&nvml.entries[n], memory_order_relaxed);
	*ret_code = NVML_ERROR_FUNCTION_NOT_FOUND;
	return library_has(&nvml, found) ? found : NULL;
}

static int map_wrappers(int found)
{
	if (found)
		return found;
	for (unsigned i = 0; i < HOOK_ENTRIES; i++) {
		void *entry = atomic_load_explicit(&nvml.entries[i], memory_order_relaxed);

		if (library_has(&nvml, entry))
			lookup_add(entry, wrappers[i]);
	}
	atomic_store_explicit(&mapped, 1, memory_order_release);
	return 0;
}

int hooks_load_nvml(void)
{
	if (atomic_load_explicit(&mapped, memory_order_acquire))
		return 0;
	return map_wrappers(library_find(&nvml));
}

int hooks_load_nvml_at(const void *address)
{
	if (atomic_load_explicit(&mapped, memory_order_acquire))
		return library_holds(&nvml, address) ? 0 : -ENOENT;
	return map_wrappers(library_find_at(&nvml, address));
}
