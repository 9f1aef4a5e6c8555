/*
 * A four-byte lock: spins a little, then sleeps in the kernel. Zero is unlocked, so memory that the
 * kernel wipes on fork comes up unlocked. No pthread: the host program need not have it.
 *
 * Ranks: the memory layer's are above LEDGER (the ledger may be called while one is held), one at a time; SCHED and a
 * gate's are told where they are declared. None is held across a call of the driver.
 */
#ifndef CUOTA_BASE_SPIN_H
#define CUOTA_BASE_SPIN_H

#include "base/cpu.h"

enum { SPIN_FREE, SPIN_HELD, SPIN_WAITED_FOR, SPIN_TRIES = 100 };

static inline int spin_try(_Atomic uint32_t *lock)
{
	uint32_t expected = SPIN_FREE;

	return atomic_compare_exchange_strong_explicit(lock, &expected, SPIN_HELD,
						       memory_order_acquire, memory_order_relaxed);
}

static __attribute__((noinline, cold, unused)) void spin_wait(_Atomic uint32_t *lock)
{
	for (int i = 1; i < SPIN_TRIES; i++) {
		cpu_relax();
		if (spin_try(lock))
			return;
	}
	while (atomic_exchange_explicit(lock, SPIN_WAITED_FOR, memory_order_acquire) != SPIN_FREE)
		futex_wait(lock, SPIN_WAITED_FOR, 0);
}

static inline void spin_lock(_Atomic uint32_t *lock)
{
	if (__builtin_expect(!spin_try(lock), 0))
		spin_wait(lock);
}

static inline void spin_unlock(_Atomic uint32_t *lock)
{
	if (__builtin_expect(atomic_exchange_explicit(lock, SPIN_FREE, memory_order_release) ==
				     SPIN_WAITED_FOR,
			     0))
		futex_wake(lock, 1);
}

/*
 * The same for what is held for some tens of nanoseconds and taken very often: its waiters nap instead of waiting to be
 * woken, so that giving it back is a plain store. Only who finds its holder preempted naps.
 */
enum { SPIN_NAP_NS = 50000 };

static __attribute__((noinline, cold, unused)) void nap_wait(_Atomic uint32_t *lock)
{
	const struct timespec nap = {0, SPIN_NAP_NS};
	int saved = errno;

	for (unsigned i = 1;; i++) {
		if (i % SPIN_TRIES)
			cpu_relax();
		else
			nanosleep(&nap, NULL);
		if (atomic_load_explicit(lock, memory_order_relaxed) == SPIN_FREE && spin_try(lock))
			break;
	}
	errno = saved;
}

static inline void nap_lock(_Atomic uint32_t *lock)
{
	if (__builtin_expect(!spin_try(lock), 0))
		nap_wait(lock);
}

static inline void nap_unlock(_Atomic uint32_t *lock)
{
	atomic_store_explicit(lock, SPIN_FREE, memory_order_release);
}

#endif
