/*
 * Physical memory handles, as vmm.c and vmm_share.c share them. All of it needs core_lock.
 */
#ifndef SIM_VMM_H
#define SIM_VMM_H

#include "memory.h"

#define NO_OFFSET UINT64_MAX

struct handle {
	struct object object;
	CUmemAllocationProp prop;
	uint64_t bytes;
	unsigned refs, maps;
	int share;	 /* index + 1 */
	uint64_t offset; /* in the memory file, or NO_OFFSET */
};

/* The file with the bytes of handles that were never exported; -1 before the first. */
extern int memory_file;

struct handle *handle_of(CUmemGenericAllocationHandle handle);
/* One mapping less. */
void handle_let_go(struct handle *handle);
void *handle_map(struct handle *handle, uint64_t address, uint64_t bytes, int prot);

static inline bool handle_on_device(const struct handle *handle)
{
	return handle->prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

#endif
