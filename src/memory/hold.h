/*
 * Reserve, then commit or roll back: bytes that are charged before the driver is asked, and made true once
 * it has answered. Knows no CUDA: the ledger member is handed in, and so is what can be given up first.
 */
#ifndef CUOTA_MEMORY_HOLD_H
#define CUOTA_MEMORY_HOLD_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "memory/books.h"

struct relief {
	/* Gives up what the process can do without (trims its pools); 1 when it is worth trying again. */
	int (*give_up)(void *arg, unsigned attempt);
	/* Where a charge leaves little of the room: charges what the driver took meanwhile, and answers what others
	 * of the group hold uncharged. Not without `books`. */
	uint64_t (*look)(void *arg, uint64_t left);
	void *arg;
	const struct books *books;
};

struct hold {
	struct member *member;
	enum charge_kind kind;
	uint64_t bytes;
};

/* 0, or -ENOMEM with the numbers and nothing held. relief may be NULL. */
int hold_take(struct hold *hold, struct member *member, enum charge_kind kind, uint64_t bytes,
	      const struct relief *relief, struct refusal *ret);

/* The same in two parts, for `hold` with nothing held yet: 1 when it could be done at once, far from every cap; else
 * the rest of it, which looks, gives up and asks again. */
static inline int hold_take_far(struct hold *hold, const struct books *books, uint64_t bytes)
{
	uint64_t near_bytes = atomic_load_explicit(&books->near_bytes, memory_order_relaxed);

	if (__builtin_expect(ledger_charge_far(hold->member, hold->kind, bytes, near_bytes), 0))
		return 0;
	hold->bytes = bytes;
	return 1;
}

int hold_take_near(struct hold *hold, const struct relief *relief, uint64_t bytes,
		   struct refusal *ret);

/* 1 when there is no room for `bytes`, what nobody charged yet included: *ret_others is that of others. */
int hold_is_short(struct member *member, uint64_t bytes, const struct relief *relief,
		  uint64_t *ret_others);

/* All of it back: the driver said no. */
void hold_drop(struct hold *hold);

/*
 * The driver took `actual` bytes: gives back the rest or charges more. -ENOMEM when more does not
 * fit; then the hold is as it was, and the caller undoes what the driver did and drops it.
 */
int hold_settle(struct hold *hold, uint64_t actual, struct refusal *ret);

/* The same for bytes that cannot be undone: charged past the cap if need be. */
void hold_settle_forced(struct hold *hold, uint64_t actual);

enum { REFUSAL_TEXT_BYTES = 224 };

/* "out of memory on GPU-8f3a…: asked 2.0GiB, used 7.1GiB of 8.0GiB (group train, 3 processes; …)". */
const char *refusal_text(const struct refusal *refusal, const char *uuid,
			 char buf[REFUSAL_TEXT_BYTES]);

#endif
