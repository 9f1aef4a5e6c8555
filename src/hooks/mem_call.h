/*
 * What the bodies of the memory families share: whose account a call is on, the reservation around the
 * driver's call, and what to say when there is no room.
 *
 *	switch (mem_begin(&call, kind, bytes)) {
 *	case MEM_PASS: return real.x(...);	  no quota here
 *	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
 *	case MEM_HELD: break;			  call the driver, then commit or mem_drop()
 *	}
 *
 * Any thread. No lock is held between begin and end.
 */
#ifndef CUOTA_HOOKS_MEM_CALL_H
#define CUOTA_HOOKS_MEM_CALL_H

#include "hooks/hooks.h"
#include "hooks/tenant.h"
#include "memory/memory.h"

enum mem_begin { MEM_PASS, MEM_HELD, MEM_REFUSED };

struct mem_call {
	struct device_tenant *tenant;
	struct memory *memory;
	CUcontext context; /* that what is made dies with; a green context's is the primary one */
	uint64_t asked_bytes;
	struct hold hold;
	struct refusal refusal;
	int looked; /* near the cap: mem_outgrown() looks again */
};

extern struct memory *_Atomic mem_process_memory;

/* At its first use, in this process or in a forked child. */
struct memory *mem_of_process_first(void);

/* This process's memory; NULL with no quota (two loads and a compare), or without memory of our own. */
static inline struct memory *mem_of_process(void)
{
	struct memory *memory;

	if (__builtin_expect(tenant_state() != TENANT_ON, 0))
		return NULL;
	memory = atomic_load_explicit(&mem_process_memory, memory_order_acquire);
	if (__builtin_expect(memory != NULL, 1) &&
	    __builtin_expect(atomic_load_explicit(&memory->ready, memory_order_acquire) != 0, 1))
		return memory;
	return mem_of_process_first();
}

/* On the device of the current context. `held` is what to reserve, `asked` what to tell. */
enum mem_begin mem_begin(struct mem_call *call, enum charge_kind kind, uint64_t asked);
enum mem_begin mem_begin_linear(struct mem_call *call, enum charge_kind kind, uint64_t asked);

/* On a device, whatever is current. */
enum mem_begin mem_begin_on(struct mem_call *call, CUdevice device, enum charge_kind kind,
			    uint64_t asked);

/* The driver said no, or what it did was undone: gives the reservation back; tells a full card apart. */
CUresult mem_drop(struct mem_call *call, CUresult result);

/* The driver took more than there is room for, and it has been undone. */
CUresult mem_refuse(struct mem_call *call);

/*
 * What was made is entered, and the driver may have taken more beside it: 1 when that passes the cap. The caller undoes
 * it as a free does, and answers mem_refuse_made(). A load and a compare unless the cap is near.
 */
int mem_outgrown(struct mem_call *call);
CUresult mem_refuse_made(struct mem_call *call);

/* An entry for something made in this call. */
struct charge mem_entry(const struct mem_call *call, enum charge_space space, uint64_t key,
			uint64_t bytes);

/* The account of a device that this process uses; NULL when there is none. */
struct member *mem_member_of(unsigned device);

/* Refunds by the entry that was taken off. */
void mem_leave(struct memory *memory, const struct charge *entry);

/* What a call wants of a device and cannot have yet. */
struct mem_want {
	struct device_tenant *tenant;
	uint64_t bytes;
	int looked; /* the books were kept for it */
};

/* What to do for it before a refusal, and before a charge near the cap. */
struct relief mem_relief(struct memory *memory, struct mem_want *want);

/* Gives up what this process can do without (mem_relief.c), as struct relief wants it. arg: struct mem_want. */
int mem_give_up(void *arg, unsigned attempt);

#endif
