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

#endif
