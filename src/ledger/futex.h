/*
 * Waiting on a word, by the raw system call: the C library has no wrapper. errno is kept.
 */
#ifndef CUOTA_LEDGER_FUTEX_H
#define CUOTA_LEDGER_FUTEX_H

#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* shared: the word is in memory that other processes map. Wakes early for any reason. */
static inline void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns, int shared)
{
	int saved_errno = errno;
	struct timespec timeout = {.tv_sec = (time_t)(ns / 1000000000ull),
				   .tv_nsec = (long)(ns % 1000000000ull)};

	syscall(SYS_futex, word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, value, &timeout, NULL,
		0);
	errno = saved_errno;
}

/* On a word that other processes map: until an instant of CLOCK_MONOTONIC, or woken for one of `bits`. */
static inline void futex_wait_for(_Atomic uint32_t *word, uint32_t value, uint64_t until_ns,
				  uint32_t bits)
{
	int saved_errno = errno;
	struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000ull),
				 .tv_nsec = (long)(until_ns % 1000000000ull)};

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, &until, NULL, bits);
	errno = saved_errno;
}

static inline void futex_wake_for(_Atomic uint32_t *word, int count, uint32_t bits)
{
	int saved_errno = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_BITSET, count, NULL, NULL, bits);
	errno = saved_errno;
}

static inline void futex_wake(_Atomic uint32_t *word, int count, int shared)
{
	int saved_errno = errno;

	syscall(SYS_futex, word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
	errno = saved_errno;
}

#endif
