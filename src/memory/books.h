/*
 * What the driver holds beyond what is charged, over several looks: one look may catch a call between the
 * driver's part and ours.
 */
#ifndef CUOTA_MEMORY_BOOKS_H
#define CUOTA_MEMORY_BOOKS_H

#include <stdint.h>

/* From here on one look is enough: a call under way is off by a page of 2 MiB, or a few from several threads. */
#define BOOKS_CERTAIN (16ull << 20)

struct books {
	uint64_t before[2]; /* what the last two looks found */
};

/*
 * The overhead to charge from now on: less at once; more when three looks in a row found it, or by a lot.
 * `known` is charged for everything else, `driver` the driver's figure of the process.
 */
static inline uint64_t books_overhead(struct books *books, uint64_t overhead, uint64_t known,
				      uint64_t driver)
{
	uint64_t beyond = driver > known ? driver - known : 0;
	uint64_t least = beyond;

	for (int i = 0; i < 2; i++)
		least = books->before[i] < least ? books->before[i] : least;
	books->before[0] = books->before[1];
	books->before[1] = beyond;
	if (beyond <= overhead || beyond - overhead >= BOOKS_CERTAIN)
		return beyond;
	return least > overhead ? least : overhead;
}

#endif
