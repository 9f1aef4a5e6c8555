/*
 * The set of hooked names, hashed at first use into a fixed array. Threads that come at once insert the
 * same pointers.
 */
#include "driver/names.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "driver/cuda_abi.h" /* rows depend on CUDA_VERSION */

#define NAME_SLOTS 2048u /* a power of two */

struct known {
	const char *text;
	enum name_kind kind;
};

static const struct known known[] = {
#define HOOK(symbol, family)	  {#symbol, NAME_CUDA},
#define NVML_HOOK(symbol, family) {#symbol, NAME_NVML},
#define NVML_CALL(symbol)
#include "hooks/hooks.def"
#include "hooks/nvml.def"
#undef HOOK
#undef NVML_HOOK
#undef NVML_CALL
	{"dlsym", NAME_LOADER},
	{"dlvsym", NAME_LOADER},
	{"dlopen", NAME_LOADER},
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

_Static_assert(KNOWN < NAME_SLOTS / 2, "room for short probes");

static _Atomic(const struct known *) table[NAME_SLOTS];
static _Atomic int ready;

static unsigned hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return h & (NAME_SLOTS - 1);
}

static void insert(const struct known *row)
{
	for (unsigned i = hash(row->text);; i++) {
		_Atomic(const struct known *) *slot = &table[i & (NAME_SLOTS - 1)];
		const struct known *held = NULL;

		if (atomic_compare_exchange_strong(slot, &held, row) ||
		    text_same(held->text, row->text))
			return;
	}
}

enum name_kind name_kind(const char *name)
{
	/* A filter for speed, not the test: it lets through more than the rows and loses none. */
	if (!name || !((name[0] == 'c' && name[1] == 'u') || (name[0] == 'n' && name[1] == 'v') ||
		       (name[0] == 'd' && name[1] == 'l')))
		return NAME_OTHER;
	if (!atomic_load_explicit(&ready, memory_order_acquire)) {
		for (size_t i = 0; i < KNOWN; i++)
			insert(&known[i]);
		atomic_store_explicit(&ready, 1, memory_order_release);
	}
	for (unsigned i = hash(name);; i++) {
		const struct known *held =
			atomic_load_explicit(&table[i & (NAME_SLOTS - 1)], memory_order_acquire);

		if (!held)
			return NAME_OTHER;
		if (text_same(held->text, name))
			return held->kind;
	}
}
