/*
 * The books: one line for each process that ended, one now and then for each group that runs, in
 * <dir>/journal/, for `cuota usage`. docs/accounting.md describes the files.
 *
 * Every user writes files of his own (nobody can change another's), each line in one append, each
 * file bounded in size. A failure is silent: accounting never disturbs a program. Nothing here
 * allocates, locks or changes errno; nothing is opened before there is something to write.
 */
#ifndef CUOTA_LEDGER_JOURNAL_H
#define CUOTA_LEDGER_JOURNAL_H

#include <stdint.h>

#include "ledger/ledger.h"

#define JOURNAL_VERSION	     1
#define JOURNAL_END_BYTES    (2u << 20) /* a file of ended processes; one older one is kept */
#define JOURNAL_SAMPLE_BYTES (4u << 20)
#define JOURNAL_SAMPLE_NS    15000000000ull /* between two samples of a group */

/* Where the ledgers are. Once per process; until then the functions below do nothing. */
void journal_setup(const char *dir);

/*
 * The process of this slot has ended, by its own word or found dead by another. To be called exactly once
 * per life of a slot, by whoever brings it to zero, with the slot as it was before.
 */
void journal_end(const struct ledger *ledger, const struct slot_view *slot, const char *group);

/*
 * The owner's service thread, every few hundred ms: integrates bytes over time for slot and group
 * and, when it is due, samples the group. The member with the lowest living slot samples for all.
 */
void journal_tick(struct ledger *ledger, struct member *member, uint64_t now_ns);

#endif
