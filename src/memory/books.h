/*
 * What the driver holds beyond what is charged, and when it is time to look: policy without a driver.
 *
 * One look may catch a call between the driver's part and ours. So a little is believed when several looks found it:
 * three of the once-a-second ones, or one that read three times in a row (`sure`).
 */
#ifndef CUOTA_MEMORY_BOOKS_H
#define CUOTA_MEMORY_BOOKS_H

#include <stdatomic.h>
#include <stdint.h>

/* From here on one look is enough: a call under way is off by a page of 2 MiB, or a few from several threads. */
#define BOOKS_CERTAIN (16ull << 20)

/* A charge that leaves the group less than this has the books kept first: more than a context grows by. Farther away
 * it is done each time that half of the room is gone. */
#define BOOKS_NEAR (64ull << 20)

/* Here every charge looks that leaves less than the last look saw: what a call brings with it may be too much. */
#define BOOKS_BRIM (16ull << 20)

/* So long a look there is good for; a look is some 60 us, so this is 0.3 % of the time. */
#define BOOKS_FRESH_NS 20000000ull

/* A new context grows in its first second: first stream, first allocation, first code. */
#define BOOKS_START_NS 1000000000ull

/* Bytes that the driver holds and nobody charged: what it is at least and may be at most. */
struct beyond {
	uint64_t least, most;
};

/* near_bytes of a context that nobody has looked at yet: whatever is left, look. */
#define BOOKS_YOUNG UINT64_MAX

struct books {
	_Atomic uint64_t
		near_bytes; /* a charge that leaves less comes near; 0 until there is a context */
	uint64_t before[2]; /* what the last two looks found */
	_Atomic uint64_t looked_ns; /* the last sure look, and what its charge left of the room */
	_Atomic uint64_t looked_room;
	_Atomic uint64_t peers_bytes; /* what the others of the group held uncharged then */
	_Atomic uint64_t made_ns;     /* when the last context was made */
	_Atomic uint64_t ahead_bytes; /* what it is expected to grow by in its start */
};

static inline uint64_t books_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* `left`: of the group's room after a charge. The way that matters: a load and a compare. */
static inline int books_is_near(const struct books *books, uint64_t left)
{
	uint64_t near_bytes = atomic_load_explicit(&books->near_bytes, memory_order_relaxed);

	return __builtin_expect(left < near_bytes, 0) ||
	       __builtin_expect(near_bytes == BOOKS_YOUNG, 0);
}

static inline int books_is_young(const struct books *books)
{
	return atomic_load(&books->near_bytes) == BOOKS_YOUNG;
}

/*
 * Where books_is_near(): is a look due? Far from the cap it is, for half of the room that the last one saw is gone.
 * Close to it when the last one is old, or when too much is gone since: a program may take all that is left much
 * faster than a look grows old. One that stays there, allocating and freeing, looks by time alone.
 */
static inline int books_is_due(const struct books *books, uint64_t left, uint64_t now)
{
	uint64_t seen = atomic_load(&books->looked_room);

	return left >= BOOKS_NEAR || books_is_young(books) ||
	       now - atomic_load(&books->looked_ns) >= BOOKS_FRESH_NS ||
	       left < (left < BOOKS_BRIM ? seen : seen / 2);
}

/* A sure look was taken. */
static inline void books_looked(struct books *books, uint64_t left, uint64_t peers, uint64_t now)
{
	atomic_store(&books->peers_bytes, peers);
	atomic_store(&books->looked_room, left);
	atomic_store(&books->looked_ns, now);
	atomic_store(&books->near_bytes, left / 2 > BOOKS_NEAR ? left / 2 : BOOKS_NEAR);
}

static inline int books_is_starting(const struct books *books, uint64_t now)
{
	uint64_t made = atomic_load(&books->made_ns);

	return made && now - made < BOOKS_START_NS;
}

/*
 * The overhead to charge from now on: less at once, more when it is believed. What may be taken late (managed memory)
 * hides overhead until it is: a little overhead is then kept while it may be there, for the cap must hold in the end.
 */
static inline uint64_t books_overhead(struct books *books, uint64_t overhead,
				      const struct beyond *beyond, int sure)
{
	uint64_t least = beyond->least;

	if (!sure) {
		for (int i = 0; i < 2; i++)
			least = books->before[i] < least ? books->before[i] : least;
		books->before[0] = books->before[1];
		books->before[1] = beyond->least;
	}
	if (beyond->least >= overhead + BOOKS_CERTAIN)
		return beyond->least;
	if (least >= overhead)
		return least;
	if (beyond->least >= overhead)
		return overhead;
	overhead = overhead < beyond->most ? overhead : beyond->most;
	if (overhead > BOOKS_CERTAIN)
		overhead = BOOKS_CERTAIN;
	return overhead > beyond->least ? overhead : beyond->least;
}

#endif
