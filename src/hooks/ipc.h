/* Memory shared with other processes, as the rest of the memory hooks see it (ipc.c, memory/shares.h). */
#ifndef CUOTA_HOOKS_IPC_H
#define CUOTA_HOOKS_IPC_H

#include "hooks/mem_call.h"

/* What another process exported is not held here any more; refunds it when its charge was ours. */
void share_import_ended(struct memory *memory, const struct charge *entry);

/*
 * Our own exported memory is let go of: when others hold it, its charge is taken once more, as theirs that we
 * carry, before the caller refunds it as ours.
 */
void share_own_ended(struct memory *memory, const struct charge *entry);

/* The service thread's part: takes over what the dead carried, gives back what nobody holds any more. */
void share_keep(struct memory *memory, struct device_tenant *tenant);

#endif
