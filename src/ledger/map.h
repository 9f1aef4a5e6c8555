/*
 * Mapping a ledger file with its shadow (map.c), inside src/ledger only.
 */
#ifndef CUOTA_LEDGER_MAP_H
#define CUOTA_LEDGER_MAP_H

#include "ledger/ledger.h"

#define MAP_HERE 0x65726568ull

/* Maps fd, or memory of this process alone when fd is -1; sets file and here. 0 or -errno. */
int map_file(struct ledger *ledger, int fd);

/* Puts private zeroes in the place of a file that was cut short: reading there is no SIGBUS then.
 */
void map_cut_off(struct ledger *ledger);

/* Maps the file of `fresh` where `ledger` maps its own, in one step for the readers. */
int map_replace(struct ledger *ledger, struct ledger *fresh);

void map_remove(struct ledger *ledger);

/* 0 in a forked child. */
static inline int map_is_here(const struct ledger *ledger)
{
	return ledger->here && atomic_load_explicit(ledger->here, memory_order_relaxed) == MAP_HERE;
}

/* member_is_ours(), for the hot path. */
static inline int member_is_here(const struct member *member)
{
	return atomic_load_explicit(&member->joined, memory_order_acquire) &&
	       map_is_here(member->ledger);
}

#endif
