/*
 * Time as a value that is handed in, so that policy runs on virtual time in tests.
 */
#ifndef CUOTA_BASE_CLOCK_H
#define CUOTA_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

/* CLOCK_MONOTONIC in ns: the same for every process of the host (a time namespace may shift it). */
static inline uint64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

#endif
