#include "memory/blocks.h"

struct span {
	uint64_t first, last;		 /* pages */
	uint64_t whole;			 /* pages that it covers from end to end */
	uint64_t head_bytes, tail_bytes; /* in the shared pages at its ends; 0 = not shared */
};

static struct span span_of(uint64_t address, uint64_t bytes)
{
	uint64_t end = address + (bytes ? bytes : 1);
	struct span span = {.first = address >> CHARGES_PAGE_SHIFT,
			    .last = (end - 1) >> CHARGES_PAGE_SHIFT};
	uint64_t head = BLOCK_BYTES - (address & (BLOCK_BYTES - 1));
	uint64_t tail = end & (BLOCK_BYTES - 1);

	span.whole = span.last - span.first + 1;
	if (span.first == span.last) {
		if (end - address < BLOCK_BYTES)
			span.head_bytes = end - address;
	} else {
		span.head_bytes = head < BLOCK_BYTES ? head : 0;
		span.tail_bytes = tail;
	}
	span.whole -= (uint64_t)((span.head_bytes != 0) + (span.tail_bytes != 0));
	return span;
}

/*
 * The instant one device has let go of a page, another may be given its address, before our books know of the
 * first: so each device counts its own.
 */
static inline struct charge page_entry(unsigned device, uint8_t kind, uint64_t page)
{
	return (struct charge){.key = charges_page_key(device, page),
			       .bytes = BLOCK_BYTES,
			       .refs = 1,
			       .space = AT_PAGE,
			       .kind = kind,
			       .device = (uint8_t)device};
}

/* 1 when the page is new, 0 when somebody stands on it already, -1 without memory. */
static int page_enter(struct charges *charges, unsigned device, uint8_t kind, uint64_t page,
		      uint64_t bytes, _Atomic int64_t *slack)
{
	struct charge entry = page_entry(device, kind, page);
	int result = charges_ref(charges, &entry);

	if (result < 0)
		return -1;
	atomic_fetch_add_explicit(slack, (result ? (int64_t)BLOCK_BYTES : 0) - (int64_t)bytes,
				  memory_order_relaxed);
	return result;
}

/* Its bytes when it is empty now, else 0. */
static inline uint64_t page_leave(struct charges *charges, unsigned device, uint64_t page,
				  uint64_t bytes, _Atomic int64_t *slack, uint8_t *ret_kind)
{
	int64_t left = charges_unref(charges, AT_PAGE, charges_page_key(device, page), ret_kind);
	uint64_t empty = left ? 0 : BLOCK_BYTES;

	if (left >= 0)
		atomic_fetch_add_explicit(slack, (int64_t)bytes - (int64_t)empty,
					  memory_order_relaxed);
	return empty;
}

uint64_t blocks_enter(struct charges *charges, unsigned device, uint8_t kind, uint64_t address,
		      uint64_t bytes, _Atomic int64_t *slack)
{
	struct span span = span_of(address, bytes);
	int head = 0, tail = 0;
	uint8_t any;

	if (span.head_bytes)
		head = page_enter(charges, device, kind, span.first, span.head_bytes, slack);
	if (head >= 0 && span.tail_bytes)
		tail = page_enter(charges, device, kind, span.last, span.tail_bytes, slack);
	if (head < 0 || tail < 0) {
		if (head >= 0 && span.head_bytes)
			page_leave(charges, device, span.first, span.head_bytes, slack, &any);
		return UINT64_MAX;
	}
	return (span.whole + (uint64_t)head + (uint64_t)tail) * BLOCK_BYTES;
}

void blocks_leave(struct charges *charges, unsigned device, uint64_t address, uint64_t bytes,
		  _Atomic int64_t *slack, struct blocks_refund *ret)
{
	struct span span = span_of(address, bytes);

	*ret = (struct blocks_refund){.own_bytes = span.whole * BLOCK_BYTES};
	if (span.head_bytes)
		ret->head_bytes = page_leave(charges, device, span.first, span.head_bytes, slack,
					     &ret->head_kind);
	if (span.tail_bytes)
		ret->tail_bytes = page_leave(charges, device, span.last, span.tail_bytes, slack,
					     &ret->tail_kind);
}

int blocks_enter_inside(struct charges *charges, const struct charge *entry, _Atomic int64_t *slack,
			uint64_t *ret_taken, struct charge *ret_old)
{
	struct charge page =
		page_entry(entry->device, entry->kind, entry->key >> CHARGES_PAGE_SHIFT);
	int is_new = 0, result = charges_put_in_page(charges, entry, &page, ret_old, &is_new);

	if (result < 0)
		return result;
	*ret_taken = is_new ? BLOCK_BYTES : 0;
	atomic_fetch_add_explicit(slack, (int64_t)*ret_taken - (int64_t)entry->bytes,
				  memory_order_relaxed);
	return result;
}

uint64_t blocks_leave_inside(struct charges *charges, unsigned device, uint64_t address,
			     uint64_t bytes, _Atomic int64_t *slack, uint8_t *ret_kind)
{
	return page_leave(charges, device, address >> CHARGES_PAGE_SHIFT, bytes, slack, ret_kind);
}
