/*
 * What line.c and turns.c share: the line of those who want the device. Every index read from the file is range-checked.
 */
#ifndef CUOTA_SCHED_LINE_H
#define CUOTA_SCHED_LINE_H

#include <stddef.h>

#include "ledger/protocol.h"
#include "sched/turns.h"

#define SLOT_MASK 0xffffu
#define NOBODY	  LEDGER_SLOTS

#define LOAD(p)	    atomic_load_explicit(p, memory_order_acquire)
#define STORE(p, v) atomic_store_explicit(p, v, memory_order_release)

static inline unsigned owner_slot(uint64_t word)
{
	uint64_t slot = word & SLOT_MASK;

	return slot >= 1 && slot <= LEDGER_SLOTS ? (unsigned)slot - 1 : NOBODY;
}

static inline struct group *group_of(const struct turns *turns, unsigned slot)
{
	unsigned index = slot_group(&turns->file->slot[slot]);

	return index < LEDGER_GROUPS ? &turns->file->group[index] : NULL;
}

/* 1 when slot a comes before slot b. */
int comes_before(const struct turns *turns, unsigned a, unsigned b);

/* The first in line among those that want the device, `self` included if it is a slot. */
unsigned first_in_line(const struct turns *turns, unsigned self);

/* We want the device from now on. A newcomer or sleeper starts at the present of virtual time. */
void join_line(const struct turns *turns, uint64_t now_ns);

/* The present of virtual time is what the holder has now. */
void set_present(const struct turns *turns, unsigned holder);

#endif
