/*
 * The private state of this process, shared by tenant.c, seat.c and service.c only.
 *
 * One mapping, wiped on fork. Written under start_lock or seat_lock, or by the service thread.
 */
#ifndef CUOTA_HOOKS_PROCESS_H
#define CUOTA_HOOKS_PROCESS_H

#include <limits.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/policy.h"
#include "hooks/tenant.h"

/* The one thread of ours: joins ledgers (the kernel ties the seats to its life), takes turns, keeps books. */
struct service {
	_Atomic uint32_t running; /* 0 no, 1 starting, 2 yes */
	_Atomic uint32_t bell;	  /* futex: bumped to wake it */
	_Atomic uint32_t answer;  /* futex: bumped when a join is done */
	struct device_tenant *_Atomic to_join;
	int join_result;
	char join_error[256];
};

struct process {
	_Atomic uint32_t state; /* enum tenant_state */
	_Atomic uint32_t start_lock, seat_lock;
	pid_t pid; /* 0 when the kernel wipes this mapping on fork */
	struct device_tenant
		*_Atomic only; /* the seat, while there is exactly one: read at every launch */
	struct sched *_Atomic only_sched; /* and its scheduler */
	struct config config;
	struct policy *policy;
	char dir[PATH_MAX];
	int ledgers_looked_for; /* at cuInit, when CUOTA_STRICT is set; under seat_lock */
	int contexts_overlap;	/* MPS: kernels of different processes run side by side */
	struct service service;
	_Atomic uint32_t seats;
	struct device_tenant devices[TENANT_DEVICES];
};

extern struct process *_Atomic tenant_process;

/* The seat on a device that has been attached already; NULL without one, or when it is not known yet. */
static inline struct device_tenant *seat_taken(CUdevice device)
{
	struct process *process = atomic_load_explicit(&tenant_process, memory_order_acquire);
	struct device_tenant *at;
	uint32_t attached;

	if (!process || device < 0 || device >= TENANT_DEVICES ||
	    atomic_load_explicit(&process->state, memory_order_acquire) != TENANT_ON)
		return NULL;
	at = &process->devices[device];
	attached = atomic_load_explicit(&at->attached, memory_order_acquire);
	return attached == 1 || attached == 2 ? at : NULL; /* tenant.h */
}

/* Starts the thread if need be and has it join; 0 or -errno with the reason. Under seat_lock. */
int service_join(struct process *process, struct device_tenant *device, char ret_error[256]);

/* Has the thread look at its devices now. Any thread, no lock, a futex wake. */
void service_kick(void);

#endif
