/*
 * The table of the driver's entry points, and what its entries hold until the driver is found.
 */
#include "driver/real.h"

#include <stddef.h>

#include "driver/lazy.h"
#include "driver/library.h"

enum real_entry {
#define HOOK(symbol, family) ENTRY_##symbol,
#include "hooks/hooks.def"
#undef HOOK
	HOOK_ENTRIES
};

static const char *const names[] = {
#define HOOK(symbol, family) #symbol,
#define CALL(symbol)	     #symbol,
#include "hooks/hooks.def"
#include "driver/calls.def"
#undef HOOK
#undef CALL
};

#define ENTRIES (sizeof(names) / sizeof(names[0]))

_Static_assert(sizeof(struct real_driver) == ENTRIES * sizeof(void *), "an array of pointers");

#define HOOK(symbol, family) HOOK_STUB(symbol, __COUNTER__)
#define HOOK_STUB(symbol, n) \
	LAZY_STUB(real_lazy, symbol, n) \
	extern __typeof__(symbol) real_lazy_##symbol __attribute__((visibility("hidden"))); \
	_Static_assert(ENTRY_##symbol == n, \
		       "stubs are numbered as the table is: no __COUNTER__ before");
#include "hooks/hooks.def"
#undef HOOK

struct real_driver real = {
#define HOOK(symbol, family) .symbol = real_lazy_##symbol,
#include "hooks/hooks.def"
#undef HOOK
};

static const void *const stubs[] = {
#define HOOK(symbol, family) (const void *)real_lazy_##symbol,
#include "hooks/hooks.def"
#undef HOOK
};

static const char *const marks[] = {"cuGetExportTable", "cuDriverGetVersion", "cuInit", NULL};

static struct library driver = {
	.soname = "libcuda.so.1",
	.marks = marks,
	.names = names,
	.count = ENTRIES,
	.stubs = stubs,
	.stub_count = HOOK_ENTRIES,
	.entries = (_Atomic(void *) *)&real,
};

void *real_lazy_find(unsigned long n, unsigned long *ret_code)
	__attribute__((visibility("hidden"), used));

void *real_lazy_find(unsigned long n, unsigned long *ret_code)
{
	void *found;

	*ret_code = CUDA_ERROR_NOT_INITIALIZED;
	if (real_find())
		return NULL;
	found = atomic_load_explicit(&driver.entries[n], memory_order_relaxed);
	*ret_code = CUDA_ERROR_NOT_SUPPORTED;
	return real_has(found) ? found : NULL;
}

int real_has(const void *entry)
{
	return library_has(&driver, entry);
}

int real_find(void)
{
	return library_find(&driver);
}

int real_find_at(const void *address)
{
	return library_find_at(&driver, address);
}

int real_object(struct object *ret)
{
	return library_object(&driver, ret);
}

int real_behind(struct object *ret)
{
	return library_behind(&driver, ret);
}

int real_holds(const void *address)
{
	return library_holds(&driver, address);
}

unsigned real_load(void *handle, void *(*resolve)(void *handle, const char *name))
{
	return library_fill(&driver, handle, resolve);
}
