/*
 * The caps that really bind a group now: what the ledger holds, what `cuota set` has left for it,
 * and the admin's policy, merged as the library does it (ledger/caps.c).
 */
#ifndef CUOTA_CLI_EFFECTIVE_H
#define CUOTA_CLI_EFFECTIVE_H

#include "ledger/ledger.h"

/* limits_dir: where that ledger lies, "" when nothing was ever set there. Reads the policy once per process. */
struct quota effective_quota(const char *limits_dir, const struct ledger_view *ledger,
			     const struct group_view *group);

#endif
