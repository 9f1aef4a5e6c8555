/*
 * Open addressing over a fixed array, lock-free: threads that load the driver at once insert the same pairs.
 */
#include "driver/lookup.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define LOOKUP_SLOTS 2048u /* a power of two, several times the rows of hooks.def and nvml.def */

static struct pair {
	_Atomic uintptr_t address;
	_Atomic(void *) wrapper;
} table[LOOKUP_SLOTS];

static unsigned slot_of(uintptr_t address)
{
	return (unsigned)((address >> 4) * 0x9e3779b97f4a7c15ull >> 32) & (LOOKUP_SLOTS - 1);
}

/* The pair that holds the address or the free one where it would go; NULL when the table is full. */
static struct pair *find(uintptr_t address)
{
	unsigned start = slot_of(address);

	for (unsigned i = 0; i < LOOKUP_SLOTS; i++) {
		struct pair *pair = &table[(start + i) & (LOOKUP_SLOTS - 1)];
		uintptr_t held = atomic_load_explicit(&pair->address, memory_order_acquire);

		if (held == address || !held)
			return pair;
	}
	return NULL;
}

void lookup_add(const void *address, void *wrapper)
{
	struct pair *pair;

	while (address && (pair = find((uintptr_t)address))) {
		uintptr_t held = 0;
		void *none = NULL;

		if (!atomic_compare_exchange_strong(&pair->address, &held, (uintptr_t)address) &&
		    held != (uintptr_t)address)
			continue; /* another thread took the free slot: look again */
		/* Two names of one function: the first row's wrapper stays. */
		atomic_compare_exchange_strong(&pair->wrapper, &none, wrapper);
		return;
	}
}

void *lookup_swap(void *address)
{
	struct pair *pair = address ? find((uintptr_t)address) : NULL;
	void *wrapper = pair && atomic_load_explicit(&pair->address, memory_order_relaxed) ==
						(uintptr_t)address
				? atomic_load_explicit(&pair->wrapper, memory_order_acquire)
				: NULL;

	return wrapper ? wrapper : address;
}
