/*
 * What this process holds on its devices: one struct memory per process, or one per test.
 *
 * Joins the parts: the table of charges, pools, shared pages. Knows no CUDA; whose account it is
 * (struct member) is handed in.
 */
#ifndef CUOTA_MEMORY_MEMORY_H
#define CUOTA_MEMORY_MEMORY_H

#include <stdatomic.h>
#include <stdint.h>

#include "memory/blocks.h"
#include "memory/books.h"
#include "memory/charges.h"
#include "memory/hold.h"
#include "memory/objects.h"
#include "memory/pools.h"
#include "memory/shares.h"

enum { MEMORY_DEVICES = 64 };

struct device_memory {
	struct books books;	     /* whoever has books_busy */
	_Atomic int64_t slack_bytes; /* unused in shared pages: blocks.h */
} __attribute__((aligned(64)));

/* What every call needs comes first. */
struct memory {
	_Atomic uint32_t ready, lock;
	struct charges *charges;
	_Atomic uint64_t freed_entries; /* blocks given back since the last sweep */
	struct pools pools;
	_Atomic uint32_t imports; /* AT_IMPORT entries ever made; 0: frees need not look for them */
	struct device_memory devices[MEMORY_DEVICES];
	_Atomic uint64_t next_object;
	struct shares shares[MEMORY_DEVICES];
	_Atomic uint64_t
		uncarried_bytes[MEMORY_DEVICES]; /* held here, charged to whoever exported it */
	_Atomic uint32_t descriptors_left[MEMORY_DEVICES]; /* 1: exports that one may still hold */
	_Atomic uint32_t shares_lock;
	_Atomic uint32_t books_busy[MEMORY_DEVICES];
};

/* NULL without memory. Wiped on fork: memory_ready() sets it up anew in the child. */
struct memory *memory_new(void);
void memory_destroy(struct memory *memory);

/* 0, or -ENOMEM. One load when it is ready. */
int memory_setup(struct memory *memory);

static inline int memory_ready(struct memory *memory)
{
	return atomic_load_explicit(&memory->ready, memory_order_acquire) || !memory_setup(memory);
}

/*
 * The driver gave [key, key + bytes) of linear memory: charges the pages it stands on and enters it.
 * -ENOMEM: nothing is entered; the caller frees it in the driver and drops the hold.
 */
int memory_enter_linear(struct memory *memory, struct hold *hold, const struct charge *entry,
			struct refusal *ret);

/* Enters what is charged as it is (arrays, modules): the hold is its charge. -ENOMEM as above. */
int memory_enter(struct memory *memory, struct hold *hold, const struct charge *entry);

/* The entry has been taken off and the driver has let go: gives back what it stood for. */
void memory_leave(struct memory *memory, struct member *member, const struct charge *entry);

/*
 * A block went back to its pool and its entry stays, marked, for when it comes again. Such entries are swept
 * away when there are very many of them.
 */
#define MEMORY_FREED_MOST (1u << 20) /* 48 MiB of entries */

void memory_sweep_freed(struct memory *memory);

static inline void memory_note_freed(struct memory *memory)
{
	/* Two threads at once may count one: it says how many, not which. */
	uint64_t many = atomic_load_explicit(&memory->freed_entries, memory_order_relaxed) + 1;

	atomic_store_explicit(&memory->freed_entries, many, memory_order_relaxed);
	if (__builtin_expect(many >= MEMORY_FREED_MOST, 0))
		memory_sweep_freed(memory);
}

/* The same for what memory_enter_linear() entered. */
void memory_leave_linear(struct memory *memory, struct member *member, const struct charge *entry);

/* The driver would not let go: the entry stands as before. */
void memory_put_back(struct memory *memory, const struct charge *entry);

/* A context is gone, and with it all that lived in it: leave() is called for each entry taken off. */
void memory_end_context(struct memory *memory, uint64_t context,
			void (*leave)(struct memory *memory, const struct charge *entry));

#endif
