#include "memory/charges.h"

#include <errno.h>
#include <string.h>

#include "base/spin.h"
#include "ledger/layout.h"
#include "memory/arena.h"

enum { SHARDS = 64, FIRST_PLACES = 128 };

#define PAGE_MASK ((1ull << CHARGES_PAGE_BITS) - 1)

struct shard {
	_Atomic uint32_t lock;
	uint32_t pad;
	size_t places; /* a power of two, or 0 before the first entry */
	size_t used;
	struct charge *entries;
} __attribute__((aligned(64)));

struct charges {
	struct shard shard[SHARDS];
};

struct charges *charges_new(void)
{
	return arena_map(sizeof(struct charges));
}

void charges_destroy(struct charges *charges)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *shard = &charges->shard[i];

		if (shard->entries)
			arena_unmap(shard->entries, shard->places * sizeof(struct charge));
	}
	arena_unmap(charges, sizeof(*charges));
}

/* Finalizer of splitmix64: addresses differ in their middle bits, handles in the low ones. */
static inline uint64_t hash(unsigned space, uint64_t key)
{
	key += space * 0x9e3779b97f4a7c15ull;
	key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9ull;
	key = (key ^ (key >> 27)) * 0x94d049bb133111ebull;
	return key ^ (key >> 31);
}

/*
 * An allocation lies in the shard of the page that it begins in, and so does that page: they are entered together, and
 * the second of two look-ups finds its table at hand. A page's key has the device above its number (charges_page_key).
 */
static inline struct shard *shard_of(struct charges *charges, unsigned space, uint64_t key,
				     uint64_t code)
{
	if (space == AT_ADDRESS || space == AT_PAGE) {
		uint64_t page = space == AT_PAGE ? key & PAGE_MASK : key >> CHARGES_PAGE_SHIFT;

		return &charges->shard[page * 0x9e3779b97f4a7c15ull >> 58]; /* SHARDS */
	}
	return &charges->shard[code % SHARDS];
}

static inline struct shard *shard_lock(struct charges *charges, unsigned space, uint64_t key,
				       uint64_t code)
{
	struct shard *shard = shard_of(charges, space, key, code);

	nap_lock(&shard->lock);
	return shard;
}

/* The entry's place, or the empty place where it belongs. Needs a table with an empty place. */
static inline struct charge *probe(struct charge *entries, size_t places, unsigned space,
				   uint64_t key, uint64_t code)
{
	size_t i = (size_t)(code / SHARDS) & (places - 1);

	while (entries[i].space != AT_NOTHING &&
	       (entries[i].key != key || entries[i].space != space))
		i = (i + 1) & (places - 1);
	return &entries[i];
}

static inline struct charge *find(struct shard *shard, unsigned space, uint64_t key, uint64_t code)
{
	struct charge *entry;

	if (!shard->places)
		return NULL;
	entry = probe(shard->entries, shard->places, space, key, code);
	return entry->space == AT_NOTHING ? NULL : entry;
}

static __attribute__((noinline)) int grow(struct shard *shard)
{
	size_t places = shard->places ? shard->places * 2 : FIRST_PLACES;
	struct charge *entries = arena_map(places * sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < shard->places; i++) {
		const struct charge *old = &shard->entries[i];

		if (old->space != AT_NOTHING)
			*probe(entries, places, old->space, old->key, hash(old->space, old->key)) =
				*old;
	}
	if (shard->entries)
		arena_unmap(shard->entries, shard->places * sizeof(*entries));
	shard->entries = entries;
	shard->places = places;
	return 0;
}

/* Keeps a quarter of the places empty for `more` to come. 0, or -ENOMEM: nothing may be entered. */
static inline int make_room(struct shard *shard, size_t more)
{
	if (__builtin_expect(shard->used + more > shard->places / 4 * 3, 0))
		return grow(shard);
	return 0;
}

/* Closes the gap, so that no marks of the removed slow down later look-ups. */
static void drop(struct shard *shard, struct charge *entry)
{
	size_t mask = shard->places - 1;
	size_t gap = (size_t)(entry - shard->entries);
	size_t i = gap;

	for (;;) {
		size_t home;

		i = (i + 1) & mask;
		entry = &shard->entries[i];
		if (entry->space == AT_NOTHING)
			break;
		home = (size_t)(hash(entry->space, entry->key) / SHARDS) & mask;
		/* It may move only if its home is not between the gap and where it is. */
		if (((i - home) & mask) < ((i - gap) & mask))
			continue;
		shard->entries[gap] = *entry;
		gap = i;
	}
	shard->entries[gap].space = AT_NOTHING;
	shard->used--;
}

/* As the functions below that are named alike, in a shard with room. */
static inline int put_here(struct shard *shard, const struct charge *entry, uint64_t code,
			   struct charge *ret_old)
{
	struct charge *place = probe(shard->entries, shard->places, entry->space, entry->key, code);
	int was = place->space != AT_NOTHING;

	if (was)
		*ret_old = *place;
	else
		shard->used++;
	*place = *entry;
	return was;
}

static inline int ref_here(struct shard *shard, const struct charge *entry, uint64_t code)
{
	struct charge *place = probe(shard->entries, shard->places, entry->space, entry->key, code);

	if (place->space != AT_NOTHING) {
		place->refs++;
		return 0;
	}
	shard->used++;
	*place = *entry;
	return 1;
}

int charges_put(struct charges *charges, const struct charge *entry, struct charge *ret_old)
{
	uint64_t code = hash(entry->space, entry->key);
	struct shard *shard = shard_lock(charges, entry->space, entry->key, code);
	struct charge *old;
	int result = make_room(shard, 1);

	if (!result) {
		result = put_here(shard, entry, code, ret_old);
	} else {
		old = find(shard, entry->space, entry->key, code);
		if (old) {
			*ret_old = *old;
			*old = *entry;
			result = 1;
		}
	}
	nap_unlock(&shard->lock);
	return result;
}

int charges_put_in_page(struct charges *charges, const struct charge *entry,
			const struct charge *page, struct charge *ret_old, int *ret_new_page)
{
	uint64_t code = hash(AT_ADDRESS, entry->key);
	struct shard *shard = shard_lock(charges, AT_ADDRESS, entry->key, code);
	int result = make_room(shard, 2);

	if (!result) {
		*ret_new_page = ref_here(shard, page, hash(AT_PAGE, page->key));
		result = put_here(shard, entry, code, ret_old);
	}
	nap_unlock(&shard->lock);
	return result;
}

int charges_take(struct charges *charges, enum charge_space space, uint64_t key, struct charge *ret)
{
	uint64_t code = hash(space, key);
	struct shard *shard = shard_lock(charges, space, key, code);
	struct charge *entry = find(shard, space, key, code);

	if (entry) {
		*ret = *entry;
		drop(shard, entry);
	}
	nap_unlock(&shard->lock);
	return entry ? 0 : -ENOENT;
}

int charges_get(struct charges *charges, enum charge_space space, uint64_t key, struct charge *ret)
{
	uint64_t code = hash(space, key);
	struct shard *shard = shard_lock(charges, space, key, code);
	struct charge *entry = find(shard, space, key, code);

	if (entry)
		*ret = *entry;
	nap_unlock(&shard->lock);
	return entry ? 0 : -ENOENT;
}

int charges_add(struct charges *charges, enum charge_space space, uint64_t key, int32_t refs,
		int64_t bytes, struct charge *ret)
{
	uint64_t code = hash(space, key);
	struct shard *shard = shard_lock(charges, space, key, code);
	struct charge *entry = find(shard, space, key, code);

	if (entry) {
		entry->refs += (uint32_t)refs;
		entry->bytes += (uint64_t)bytes;
		*ret = *entry;
		if (!entry->refs)
			drop(shard, entry);
	}
	nap_unlock(&shard->lock);
	return entry ? 0 : -ENOENT;
}

int charges_ref(struct charges *charges, const struct charge *entry)
{
	uint64_t code = hash(entry->space, entry->key);
	struct shard *shard = shard_lock(charges, entry->space, entry->key, code);
	struct charge *old;
	int result = make_room(shard, 1);

	if (!result) {
		result = ref_here(shard, entry, code);
	} else {
		old = find(shard, entry->space, entry->key, code);
		if (old) {
			old->refs++;
			result = 0;
		}
	}
	nap_unlock(&shard->lock);
	return result;
}

int charges_renew(struct charges *charges, uint64_t address, uint64_t owner, uint64_t bytes)
{
	uint64_t code = hash(AT_ADDRESS, address);
	struct shard *shard = shard_lock(charges, AT_ADDRESS, address, code);
	struct charge *entry = find(shard, AT_ADDRESS, address, code);
	int backed = entry && entry->flags == CHARGE_FREED && entry->kind == CHARGE_POOL &&
		     entry->owner == owner && entry->bytes >= bytes;

	if (backed) {
		entry->bytes = bytes;
		entry->flags = 0;
	}
	nap_unlock(&shard->lock);
	return backed;
}

int64_t charges_unref(struct charges *charges, enum charge_space space, uint64_t key,
		      uint8_t *ret_kind)
{
	uint64_t code = hash(space, key);
	struct shard *shard = shard_lock(charges, space, key, code);
	struct charge *entry = find(shard, space, key, code);
	int64_t left = -ENOENT;

	if (entry) {
		*ret_kind = entry->kind;
		left = --entry->refs;
		if (!left)
			drop(shard, entry);
	}
	nap_unlock(&shard->lock);
	return left;
}

int charges_let_go(struct charges *charges, uint64_t address, struct charge *ret)
{
	uint64_t code = hash(AT_ADDRESS, address);
	struct shard *shard = shard_lock(charges, AT_ADDRESS, address, code);
	struct charge *entry = find(shard, AT_ADDRESS, address, code);
	int result = -ENOENT;

	if (entry) {
		*ret = *entry;
		result = entry->flags & CHARGE_FREED ? -EALREADY : 0;
		if (entry->kind == CHARGE_POOL)
			entry->flags |= CHARGE_FREED;
		else
			drop(shard, entry);
	}
	nap_unlock(&shard->lock);
	return result;
}

int charges_flag(struct charges *charges, enum charge_space space, uint64_t key, uint8_t set,
		 uint8_t clear, struct charge *ret)
{
	uint64_t code = hash(space, key);
	struct shard *shard = shard_lock(charges, space, key, code);
	struct charge *entry = find(shard, space, key, code);

	if (entry) {
		*ret = *entry;
		entry->flags = (uint8_t)((entry->flags | set) & ~clear);
	}
	nap_unlock(&shard->lock);
	return entry ? 0 : -ENOENT;
}

int charges_clamp(struct charges *charges, enum charge_space space, uint64_t key, uint64_t least,
		  uint64_t most, struct charge *ret)
{
	uint64_t code = hash(space, key);
	struct shard *shard = shard_lock(charges, space, key, code);
	struct charge *entry = find(shard, space, key, code);

	if (entry) {
		*ret = *entry;
		if (entry->bytes > most)
			entry->bytes = most;
		if (entry->bytes < least)
			entry->bytes = least;
	}
	nap_unlock(&shard->lock);
	return entry ? 0 : -ENOENT;
}

int charges_put_within(struct charges *charges, enum charge_space space, uint64_t key,
		       uint64_t within)
{
	uint64_t code = hash(space, key);
	struct shard *shard = shard_lock(charges, space, key, code);
	struct charge *entry = find(shard, space, key, code);

	if (entry)
		entry->within = within;
	nap_unlock(&shard->lock);
	return entry ? 0 : -ENOENT;
}

size_t charges_collect(struct charges *charges, struct charges_walk *walk, int take,
		       charges_match *match, void *arg, struct charge *ret, size_t room)
{
	size_t found = 0;

	for (; walk->shard < SHARDS && found < room; walk->shard++, walk->place = 0) {
		struct shard *shard = &charges->shard[walk->shard];

		nap_lock(&shard->lock);
		while (walk->place < shard->places && found < room) {
			struct charge *entry = &shard->entries[walk->place];

			if (entry->space != AT_NOTHING && match(entry, arg)) {
				ret[found++] = *entry;
				if (take) {
					drop(shard, entry);
					continue; /* another one may have moved here */
				}
			}
			walk->place++;
		}
		nap_unlock(&shard->lock);
		if (found == room) {
			/* Before the next call something else may be removed, and what stood behind it moves
			 * forward: what is taken is not met again, so begin anew and miss nothing. */
			if (take)
				walk->place = 0;
			break;
		}
	}
	return found;
}

size_t charges_count(struct charges *charges)
{
	size_t count = 0;

	for (unsigned i = 0; i < SHARDS; i++) {
		nap_lock(&charges->shard[i].lock);
		count += charges->shard[i].used;
		nap_unlock(&charges->shard[i].lock);
	}
	return count;
}
