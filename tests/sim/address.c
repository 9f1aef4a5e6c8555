/*
 * The address map: which ranges the driver knows, sorted by base, and the address space they use.
 */
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MAP_32BIT
#define MAP_32BIT 0 /* x86-64 only: elsewhere the oldest entry points have no memory to give */
#endif

static struct range **map;
static size_t count, room;
static uint64_t last_id;

/* Index of the first range whose base is above `address`. */
static size_t upper(uint64_t address)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (map[middle]->base > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

struct range *range_new(enum range_kind kind, uint64_t base, uint64_t size)
{
	if (count == room) {
		size_t more = room ? room * 2 : 256;
		struct range **bigger = realloc(map, more * sizeof(struct range *));
		if (!bigger)
			return NULL;
		map = bigger;
		room = more;
	}
	struct range *range = calloc(1, sizeof(*range));
	if (!range)
		return NULL;
	range->kind = kind;
	range->base = base;
	range->size = size;
	range->id = ++last_id;
	size_t at = upper(base);
	memmove(&map[at + 1], &map[at], (count - at) * sizeof(struct range *));
	map[at] = range;
	count++;
	return range;
}

void range_delete(struct range *range)
{
	size_t at = upper(range->base);
	while (at && map[at - 1] != range)
		at--;
	if (!at)
		return;
	memmove(&map[at - 1], &map[at], (count - at) * sizeof(struct range *));
	count--;
	free(range);
}

/* Mapped ranges lie inside reserved ones and start at or after them, so they are met first. */
struct range *range_at(uint64_t address)
{
	for (size_t at = upper(address); at; at--) {
		struct range *range = map[at - 1];
		if (address - range->base < range->size)
			return range;
		if (range->kind != RANGE_MAPPED)
			break;
	}
	return NULL;
}

struct range *range_exact(uint64_t base, enum range_kind kind)
{
	for (size_t at = upper(base); at && map[at - 1]->base == base; at--)
		if (map[at - 1]->kind == kind)
			return map[at - 1];
	return NULL;
}

size_t range_count(void)
{
	return count;
}

struct range *range_number(size_t index)
{
	return index < count ? map[index] : NULL;
}

uint64_t range_first(uint64_t address)
{
	return address ? upper(address - 1) : 0;
}

uint64_t space_map(uint64_t bytes, bool low)
{
	uint64_t span = round_up(bytes, 4096);
	uint64_t slack = low ? 0 : LARGE_PAGE;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (low ? MAP_32BIT : 0);
	char *at = mmap(NULL, span + slack, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (at == MAP_FAILED)
		return 0;
	uint64_t base = slack ? round_up((uint64_t)at, LARGE_PAGE) : (uint64_t)at;
	uint64_t before = base - (uint64_t)at;
	if (before)
		munmap(at, before);
	if (slack - before)
		munmap((void *)(base + span), slack - before);
	return base;
}

void space_unmap(uint64_t base, uint64_t bytes)
{
	munmap((void *)base, round_up(bytes, 4096));
}

void *memory_view(CUdeviceptr address)
{
	pthread_mutex_lock(&core_lock);
	struct range *range = range_at(address);
	bool usable = range && range->kind != RANGE_RESERVED;
	pthread_mutex_unlock(&core_lock);
	return usable ? (void *)address : NULL;
}
