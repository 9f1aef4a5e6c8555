/*
 * All ledgers of this host, opened for reading. A damaged one is an entry with a problem, never a
 * reason to stop: the others must still be shown.
 */
#ifndef CUOTA_CLI_LEDGERS_H
#define CUOTA_CLI_LEDGERS_H

#include "cli.h"
#include "ledger/ledger.h"

struct ledger_entry {
	char path[PATH_MAX];
	struct ledger ledger;
	struct error problem; /* "" = open */
};

struct ledger_list {
	unsigned count;
	struct ledger_entry *entries;
	struct cli_dirs dirs;
};

/* 0, also when there are no ledgers at all; -ENOMEM; -EACCES and the like when no directory can be
 * read. */
int ledgers_open(struct ledger_list *ret, struct error *err);
void ledgers_close(struct ledger_list *list);

#endif
