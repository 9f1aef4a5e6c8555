/* Contexts as accounts: what is made in one dies with it. */
#ifndef CUOTA_HOOKS_CONTEXT_H
#define CUOTA_HOOKS_CONTEXT_H

#include "driver/cuda_abi.h"
#include "hooks/driver_bytes.h"
#include "hooks/mem_call.h"

/* A context that is being made: around the driver's call (context.c, green.c). */
struct context_call {
	struct mem_call call;
	struct listed before;
	uint64_t before_bytes; /* what the driver held for us */
	int first;	       /* it is not known yet which process NVML takes us for */
};

/* MEM_PASS also when the primary context is charged already. */
enum mem_begin context_begin(struct context_call *c, CUdevice device);
enum mem_begin context_begin_primary(struct context_call *c, CUdevice device);

/* The primary context became active in this call. 0, or -ENOMEM: it is too large, release it and refuse. */
int context_primary_made(struct context_call *c, CUdevice device, CUcontext context);

/* After a release or reset: gives back all that lived in it when it is not active any more. */
void context_primary_ended(CUdevice device);

/* The handle of each device's primary context that is charged, or 0. */
extern _Atomic uint64_t context_primaries[TENANT_DEVICES];

static inline uint64_t context_primary(CUdevice device)
{
	return device >= 0 && device < TENANT_DEVICES
		       ? atomic_load_explicit(&context_primaries[device], memory_order_acquire)
		       : 0;
}

/* -1 when the driver does not tell. */
int context_primary_is_active(CUdevice device);

/* From now on look-ups of owners are worth their while. */
void context_saw_green(void);

/* The context that owns what is made while `current` is current: a green context's is the primary one. */
CUcontext context_owner(struct memory *memory, CUcontext current);

#endif
