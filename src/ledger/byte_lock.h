/*
 * Liveness for where the kernel has no robust lists (set_robust_list fails: some sandboxes): a byte of the
 * ledger file beyond its end, locked with F_OFD_SETLK by the owner's own descriptor, which the kernel
 * closes when the process is gone. Weaker than the list: a forked child that does not exec keeps the lock
 * while it lives, and a program that closes every descriptor gives it up. live.c alone uses this.
 */
#ifndef CUOTA_LEDGER_BYTE_LOCK_H
#define CUOTA_LEDGER_BYTE_LOCK_H

#include "ledger/ledger.h"

/* The lock of slot i is byte i; the join lock's is this one. */
#define BYTE_JOIN LEDGER_SLOTS

/* 1 when taken, 0 when somebody else has it, or -errno. */
int byte_lock_take(struct ledger *ledger, unsigned byte);
void byte_lock_drop(struct ledger *ledger, unsigned byte);

/* 1 when somebody has it; also when that cannot be found out: the living are not to be robbed. */
int byte_lock_is_held(const struct ledger *ledger, unsigned byte);

/* Gives up the descriptor, and with it every lock of this ledger. */
void byte_lock_close(struct ledger *ledger);

#endif
