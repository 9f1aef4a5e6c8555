/*
 * A device as this process's group sees it, for the NVML hooks: the caps that bind, and a copy of the ledger.
 *
 * A process that never uses CUDA (nvidia-smi under `cuota run`) has no seat: it finds its group by CUOTA_GROUP
 * and reads the ledger without joining it, making no file and no thread.
 */
#ifndef CUOTA_HOOKS_NVML_VIEW_H
#define CUOTA_HOOKS_NVML_VIEW_H

#include <stdint.h>

#include "hooks/nvml.h"
#include "ledger/ledger.h"

struct nvml_view {
	char uuid[UUID_TEXT_BYTES];
	uint64_t cap_bytes;  /* the smallest that binds; UINT64_MAX = memory is not capped */
	uint64_t room_bytes; /* what may still be taken */
	const struct group_view *own; /* in `ledger`; NULL while the group has no member */
	struct ledger_view ledger;
};

/* NULL when no quota or group is in force for this process on this device: then NVML's own answer stands. */
struct nvml_view *nvml_view_open(nvmlDevice_t device);
void nvml_view_close(struct nvml_view *view);

/* Reads the ledger once more. */
void nvml_view_again(struct nvml_view *view);

/* The next living process of the group at or after *slot (an index into ledger.slots), which is moved past it;
 * NULL at the end. Start with 0. */
const struct slot_view *nvml_view_next(const struct nvml_view *view, unsigned *slot);

/*
 * PIDs of the group's processes as this process's PID namespace sees them, in the order of nvml_view_next();
 * 0 for one that cannot be seen from here. ret_pids has room for LEDGER_SLOTS. Returns how many.
 */
unsigned nvml_view_pids(const struct nvml_view *view, uint32_t *ret_pids);

/* The index by which CUDA would know the device under this CUDA_VISIBLE_DEVICES (NULL = unset), or -1. */
int nvml_visible_index(const char *visible, unsigned index, const char *uuid);

#endif
