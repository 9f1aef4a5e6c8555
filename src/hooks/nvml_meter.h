/*
 * How busy the own group and its processes kept a device lately, from the ledger's counters of device-busy time.
 */
#ifndef CUOTA_HOOKS_NVML_METER_H
#define CUOTA_HOOKS_NVML_METER_H

#include "hooks/nvml_view.h"

struct nvml_meter {
	unsigned group_pct;
	unsigned count; /* in the order of nvml_view_next() */
	unsigned process_pct[LEDGER_SLOTS];
};

/*
 * Between this call and the last one that was at least 100 ms ago. The first call for a device in a process
 * looks twice, 50 ms apart, since counters say nothing without a past.
 */
void nvml_meter_read(struct nvml_view *view, struct nvml_meter *ret);

#endif
