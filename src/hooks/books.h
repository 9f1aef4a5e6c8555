/* Keeping the ledger equal to the driver (books.c). No CUDA call. */
#ifndef CUOTA_HOOKS_BOOKS_H
#define CUOTA_HOOKS_BOOKS_H

#include "memory/memory.h"

struct device_tenant;

/* Compares the ledger with the driver's own figure for this process and charges the difference. The service thread,
 * now and then, and whoever is about to be refused. */
void books_keep(struct device_tenant *device);

/*
 * Before a charge that leaves `left` of the room, where books_is_near(): charges what the driver took
 * meanwhile, unless a look is recent. The bytes that others of the group hold and have not charged yet: they must fit
 * too. *ret_looked: books_look_after() is worth its while.
 */
uint64_t books_look_before(struct memory *memory, struct device_tenant *device, uint64_t left,
			   int *ret_looked);

/* After the driver's call: 1, with the numbers, when it took so much beside that the cap is passed: undo it. */
int books_look_after(struct memory *memory, struct device_tenant *device, enum charge_kind kind,
		     struct refusal *ret);

/* A context is charged: it will grow, by `ahead` as far as is known, which is charged until it is seen. */
void books_context_made(struct memory *memory, struct device_tenant *device, uint64_t ahead);
void books_context_ended(struct memory *memory, unsigned device);

#endif
