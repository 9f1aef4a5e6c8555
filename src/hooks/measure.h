/*
 * What something that the driver made really takes on the device: contexts, modules, limits. The figure of
 * the process after the call, less what the ledger holds for everything else.
 */
#ifndef CUOTA_HOOKS_MEASURE_H
#define CUOTA_HOOKS_MEASURE_H

#include "hooks/mem_call.h"

/* 0 and the bytes that this call's reservation should be, or -ENOTSUP: keep the estimate. */
int measure_call(const struct mem_call *call, uint64_t *ret_bytes);

#endif
