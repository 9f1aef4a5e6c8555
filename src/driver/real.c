/*
 * Finds the driver that the program loaded and fills the table of its entry points.
 *
 * Promises: no driver is ever loaded by us, no driver function is called, no lock is held across the
 * loader (another thread may be inside dlopen, running a constructor that calls CUDA). Threads that come
 * at once all write the same values; the first to name its object wins.
 */
#include "driver/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "driver/lazy.h"
#include "driver/object.h"
#include "driver/loader.h"

#define SONAME "libcuda.so.1"

enum real_entry {
#define HOOK(symbol, family) ENTRY_##symbol,
#include "hooks/hooks.def"
#undef HOOK
	HOOK_ENTRIES,
#define CALL(symbol) ENTRY_##symbol,
	CALLS_START = HOOK_ENTRIES - 1,
#include "driver/calls.def"
#undef CALL
	REAL_ENTRIES
};

_Static_assert(sizeof(struct real_driver) == REAL_ENTRIES * sizeof(void *), "an array of pointers");

static const char *const entry_names[] = {
#define HOOK(symbol, family) #symbol,
#define CALL(symbol)	     #symbol,
#include "hooks/hooks.def"
#include "driver/calls.def"
#undef HOOK
#undef CALL
};

/* ---- the stubs ------------------------------------------------------------------------------------ */

#define HOOK(symbol, family) HOOK_STUB(symbol, __COUNTER__)
#define HOOK_STUB(symbol, n)                                                                                 \
	LAZY_STUB(real_lazy, symbol, n)                                                                      \
	extern __typeof__(symbol) real_lazy_##symbol __attribute__((visibility("hidden")));                  \
	_Static_assert(ENTRY_##symbol == n, "stubs are numbered as the table is: no __COUNTER__ before");
#include "hooks/hooks.def"
#undef HOOK

struct real_driver real = {
#define HOOK(symbol, family) .symbol = real_lazy_##symbol,
#include "hooks/hooks.def"
#undef HOOK
};

static const void *const stubs[HOOK_ENTRIES] = {
#define HOOK(symbol, family) (const void *)real_lazy_##symbol,
#include "hooks/hooks.def"
#undef HOOK
};

void *real_lazy_find(unsigned long n, unsigned long *ret_code) __attribute__((visibility("hidden"), used));

LAZY_BIND(real_lazy, real_lazy_find)

static _Atomic(void *) *entry(unsigned long n)
{
	return &((_Atomic(void *) *)&real)[n];
}

void *real_lazy_find(unsigned long n, unsigned long *ret_code)
{
	if (real_find()) {
		*ret_code = CUDA_ERROR_NOT_INITIALIZED;
		return NULL;
	}
	void *found = atomic_load_explicit(entry(n), memory_order_relaxed);

	*ret_code = CUDA_ERROR_NOT_SUPPORTED;
	return real_has(found) ? found : NULL;
}

int real_has(const void *address)
{
	if (!address)
		return 0;
	for (unsigned i = 0; i < HOOK_ENTRIES; i++)
		if (stubs[i] == address)
			return 0;
	return 1;
}

/* ---- filling -------------------------------------------------------------------------------------- */

static _Atomic uintptr_t driver_start, driver_end; /* which object; claimed once, end follows start */
static _Atomic int loaded;

unsigned real_load(void *handle, void *(*resolve)(void *handle, const char *name))
{
	unsigned found = 0;

	for (unsigned i = 0; i < REAL_ENTRIES; i++) {
		void *address = resolve(handle, entry_names[i]);

		if (!address)
			continue;
		atomic_store_explicit(entry(i), address, memory_order_relaxed);
		found++;
	}
	return found;
}

static void *resolve_object(void *handle, const char *name)
{
	return object_symbol(handle, name);
}

static int load_object(struct object *object)
{
	uintptr_t none = 0;

	if (!atomic_compare_exchange_strong(&driver_start, &none, object->start) && none != object->start)
		return -EBUSY;
	atomic_store(&driver_end, object->end);
	if (atomic_load_explicit(&loaded, memory_order_acquire))
		return 0;
	loader_pin(object->path);
	real_load(object, resolve_object);
	atomic_store_explicit(&loaded, 1, memory_order_release);
	return 0;
}

int real_find(void)
{
	struct object object;

	if (atomic_load_explicit(&loaded, memory_order_acquire))
		return 0;
	if (object_by_soname(SONAME, &object))
		return -ENOENT;
	return load_object(&object);
}

static int is_driver(const struct object *object)
{
	if (strcmp(object->soname, SONAME) == 0)
		return 1;
	/* A copy under another name. A library that merely wraps some functions has no export tables. */
	return object_symbol(object, "cuGetExportTable") && object_symbol(object, "cuDriverGetVersion") &&
	       object_symbol(object, "cuInit");
}

int real_find_at(const void *address)
{
	struct object object;

	if (real_holds(address) && atomic_load_explicit(&loaded, memory_order_acquire))
		return 0;
	if (object_of_address(address, &object) || !is_driver(&object))
		return -ENOENT;
	return load_object(&object);
}

int real_holds(const void *address)
{
	uintptr_t at = (uintptr_t)address;

	return at >= atomic_load(&driver_start) && at < atomic_load(&driver_end);
}
