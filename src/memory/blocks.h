/*
 * Linear memory by the physical pages that it stands on.
 *
 * The driver takes device memory in 2 MiB pages and lets small allocations share one (facts: one process's
 * figure moves in steps of 2 MiB). So an allocation is charged for the pages that nobody of this
 * process stood on before, and refunded for those that it leaves empty.
 */
#ifndef CUOTA_MEMORY_BLOCKS_H
#define CUOTA_MEMORY_BLOCKS_H

#include <stdatomic.h>
#include <stdint.h>

#include "memory/charges.h"

#define BLOCK_BYTES (2ull << 20)

static inline uint64_t blocks_round(uint64_t bytes)
{
	/* A size near 2^64 stays huge instead of wrapping to nothing. */
	return bytes > UINT64_MAX - BLOCK_BYTES ? bytes & ~(BLOCK_BYTES - 1)
						: (bytes + BLOCK_BYTES - 1) & ~(BLOCK_BYTES - 1);
}

/* At most this much is looked for in pages that are already ours. */
#define BLOCKS_SMALL_BYTES (1ull << 20)

/* What to reserve for an allocation whose address is not known yet; slack: see below. */
static inline uint64_t blocks_foresee(uint64_t bytes, int64_t slack)
{
	if (bytes <= BLOCKS_SMALL_BYTES && slack >= (int64_t)bytes)
		return 0;
	return blocks_round(bytes);
}

/*
 * Bytes newly charged for [address, address + bytes), counting pages in `charges`. UINT64_MAX without
 * memory of our own. *slack (unused bytes of shared pages, a hint) is kept up. A page is charged to the kind
 * of who came first, and so it is refunded, whoever leaves last.
 */
uint64_t blocks_enter(struct charges *charges, unsigned device, uint8_t kind, uint64_t address,
		      uint64_t bytes, _Atomic int64_t *slack);

/* What to refund: of the range's own pages, and of the shared ones at its ends that are empty now. */
struct blocks_refund {
	uint64_t own_bytes, head_bytes, tail_bytes;
	uint8_t head_kind, tail_kind;
};

void blocks_leave(struct charges *charges, unsigned device, uint64_t address, uint64_t bytes,
		  _Atomic int64_t *slack, struct blocks_refund *ret);

/*
 * The same for an allocation that lies inside of one page, entered into `charges` with it: most do. 0, 1 when an entry
 * of that address was there, which goes to *ret_old, or -ENOMEM with nothing entered. The second answers what is to
 * be refunded, 0 or a page, and its kind; the entry has been taken off.
 */
static inline int blocks_is_inside(uint64_t address, uint64_t bytes)
{
	return bytes - 1 < BLOCK_BYTES - 1 && (address & (BLOCK_BYTES - 1)) + bytes <= BLOCK_BYTES;
}

int blocks_enter_inside(struct charges *charges, const struct charge *entry, _Atomic int64_t *slack,
			uint64_t *ret_taken, struct charge *ret_old);
uint64_t blocks_leave_inside(struct charges *charges, unsigned device, uint64_t address,
			     uint64_t bytes, _Atomic int64_t *slack, uint8_t *ret_kind);

#endif
