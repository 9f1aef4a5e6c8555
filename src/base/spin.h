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

static inline void spin_lock(_Atomic uint32_t *lock)
{
	for (int i = 0; i < SPIN_TRIES; i++) {
		uint32_t expected = SPIN_FREE;

		if (atomic_compare_exchange_weak_explicit(
			    lock, &expected, SPIN_HELD, memory_order_acquire, memory_order_relaxed))
			return;
		cpu_relax();
	}
	while (atomic_exchange_explicit(lock, SPIN_WAITED_FOR, memory_order_acquire) != SPIN_FREE)
		futex_wait(lock, SPIN_WAITED_FOR, 0);
}

static inline void spin_unlock(_Atomic uint32_t *lock)
{
	if (atomic_exchange_explicit(lock, SPIN_FREE, memory_order_release) == SPIN_WAITED_FOR)
		futex_wake(lock, 1);
}

#endif
