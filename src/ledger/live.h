/*
 * Liveness that the kernel keeps: a 32-bit word holds the TID of a thread, and the kernel puts
 * FUTEX_OWNER_DIED there when that thread ends, whatever way (exit, SIGKILL, exec, OOM), never
 * while it is stopped. This is the robust-futex list of set_robust_list(2), used by raw system
 * calls. No PID is ever compared: the word speaks for itself in every PID namespace.
 *
 * The thread's list is its own: calling these replaces the C library's robust list for the calling
 * thread, which therefore must not hold robust pthread mutexes (the service thread holds none).
 * Entries lie in the shadow of the ledger's mapping, LEDGER_SPAN above the word (map.c).
 */
#ifndef CUOTA_LEDGER_LIVE_H
#define CUOTA_LEDGER_LIVE_H

#include <stdint.h>

#include "ledger/ledger.h"

/* The calling thread, ready to hold words: 0 with its TID, or -errno. */
int live_begin(uint32_t *ret_tid);

/* Gives the thread's list back to the C library, if the thread holds no word any more. */
void live_end(void);

/* Takes the word if it still holds `expected`: 1 when taken. Only after live_begin(). */
int live_take(_Atomic uint32_t *word, uint32_t expected, uint32_t value);

/* Gives a word of this thread back, to 0, unless somebody else's mark is in it; returns what was
 * there. */
uint32_t live_drop(_Atomic uint32_t *word);

/* 1 when an owner holds slot's word and lives; 1 when one held it and died. Both 0 when free. */
int live_is_held(const struct ledger *ledger, unsigned slot);
int live_is_dead(const struct ledger *ledger, unsigned slot);

/* The join lock: only who makes or recycles a named group takes it. 0 or -ETIMEDOUT. */
int ledger_lock(struct ledger *ledger, uint32_t tid, uint64_t timeout_ns);
void ledger_unlock(struct ledger *ledger);

#endif
