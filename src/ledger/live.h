/*
 * Liveness that the kernel keeps: a 32-bit word holds the TID of a thread, and the kernel puts
 * FUTEX_OWNER_DIED there when that thread ends, whatever way (exit, SIGKILL, exec, OOM), never
 * while it is stopped. This is the robust-futex list of set_robust_list(2), used by raw system
 * calls. No PID is ever compared: the word speaks for itself in every PID namespace.
 *
 * The thread's list is its own: calling these replaces the C library's robust list for the calling
 * thread, which therefore must not hold robust pthread mutexes (the service thread holds none, nor do libcuda and
 * libnvidia-ml, which it asks for figures: they do not import pthread_mutexattr_setrobust).
 * Entries lie in the shadow of the ledger's mapping, LEDGER_SPAN above the word (map.c).
 */
#ifndef CUOTA_LEDGER_LIVE_H
#define CUOTA_LEDGER_LIVE_H

#include <stdint.h>

#include "ledger/ledger.h"

/* In a word of an owner without a robust list; TIDs are below 2^22. byte_lock.h */
#define LIVE_BY_LOCK (1u << 29)

/* No thread's mark: live_drop() with it only takes the word off the thread's list. */
#define LIVE_NOBODY 0x3fffffffu

/* The calling thread, ready to hold words: 0 with its mark, that is its TID and perhaps LIVE_BY_LOCK, or
 * -errno. */
int live_begin(uint32_t *ret_mark);

/* Gives the thread's list back to the C library, if the thread holds no word any more. */
void live_end(void);

/* Takes a slot's word if it still holds `expected`: 1 when taken. Only after live_begin(). */
int live_take(struct ledger *ledger, unsigned slot, uint32_t expected, uint32_t mark);

/* Gives it back, unless somebody else's mark is in it. */
void live_drop(struct ledger *ledger, unsigned slot, uint32_t mark);

/* A slot's word as it is now, its owner's death found out where the kernel does not tell it. */
uint32_t live_word(const struct ledger *ledger, unsigned slot);

/* 1 when an owner holds the slot's word and lives; 1 when one held it and died. Both 0 when free. */
int live_is_held(const struct ledger *ledger, unsigned slot);
int live_is_dead(const struct ledger *ledger, unsigned slot);

/*
 * The join lock: only who makes or recycles a named group takes it. Waiting is for a slice of time, or until it
 * is given back or its holder dies. Giving it back wakes all who wait for the group of this key, since they
 * do not need the lock any more, and one of the others.
 */
int ledger_lock_try(struct ledger *ledger, uint32_t mark, int waited);
void ledger_lock_wait(struct ledger *ledger, uint64_t key);
void ledger_unlock(struct ledger *ledger, uint32_t mark, uint64_t key);

#endif
