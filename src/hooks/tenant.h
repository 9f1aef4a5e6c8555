/*
 * This process as a tenant: its configuration, and for each CUDA device its seat in the ledger.
 *
 * States, kept in a page that the kernel wipes on fork (any fork, raw clone included), so that a child
 * starts at UNKNOWN and owns nothing of its parent's:
 *   UNKNOWN  nothing read yet
 *   OFF      no quota is asked for: every wrapper passes straight through
 *   ON       quotas in force
 *   REFUSED  a malformed quota: cuInit fails
 */
#ifndef CUOTA_HOOKS_TENANT_H
#define CUOTA_HOOKS_TENANT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/config.h"
#include "driver/cuda_abi.h"
#include "ledger/ledger.h"

struct sched;	/* sched/sched.h */
struct charges; /* memory/charges.h */

#define TENANT_DEVICES 64

enum tenant_state { TENANT_UNKNOWN, TENANT_OFF, TENANT_ON, TENANT_REFUSED };

struct device_tenant {
	int ordinal;		   /* CUDA's own index, after CUDA_VISIBLE_DEVICES */
	_Atomic uint32_t attached; /* 0 not yet, 1 joined, 2 joined a private ledger, 3 refused */
	CUdevice device;
	char uuid[UUID_TEXT_BYTES];
	uint64_t device_bytes;	/* real total */
	uint64_t context_bytes; /* what a bare context costs here: measured or default */
	struct sched *sched;
	struct quota ceiling; /* the admin's policy */
	struct quota asked;   /* the environment */
	struct member member;
	struct ledger ledger; /* last: beyond its first words lies a path */
};

/* The slow half of tenant_state(): reads environment and policy. No driver call. */
enum tenant_state tenant_start(void);

struct process; /* hooks/process.h; its first word is the state */
extern struct process *_Atomic tenant_process;

/* 1 when it is known that no quota is asked for; never starts anything. */
static inline int tenant_is_off(void)
{
	struct process *process = atomic_load_explicit(&tenant_process, memory_order_acquire);

	return process && atomic_load_explicit((_Atomic uint32_t *)process, memory_order_acquire) ==
				  TENANT_OFF;
}

/* Two loads and a compare once started. */
static inline enum tenant_state tenant_state(void)
{
	struct process *process = atomic_load_explicit(&tenant_process, memory_order_acquire);

	if (process) {
		uint32_t state =
			atomic_load_explicit((_Atomic uint32_t *)process, memory_order_acquire);

		if (state != TENANT_UNKNOWN)
			return (enum tenant_state)state;
	}
	return tenant_start();
}

/*
 * The seat on a device, joined at the first use; NULL when quotas are off, the device is out of range, or
 * no seat can be had (then one warning has been logged and CUOTA_STRICT decided). Safe on any thread; makes only
 * context-free driver calls.
 */
struct device_tenant *tenant_of_device(CUdevice device);

/* Of the calling thread's current context; NULL also when there is none. 14 ns in the driver. */
struct device_tenant *tenant_of_current(void);

/* Of a launch by the calling thread: like tenant_of_current(), without a driver call while there is one seat. */
struct device_tenant *tenant_of_launch(void);

/* Of the context that a stream belongs to. */
struct device_tenant *tenant_of_stream(CUstream stream);

/* The seat on the device of this UUID if there is one already; takes none. */
struct device_tenant *tenant_of_uuid(const char *uuid);

/* What the admin's policy allows this process on a device. Only when the state is ON. */
struct quota tenant_ceiling(const char *uuid, uint64_t device_bytes);

/* Has the process in slot wake - 1 look at the turn; 0 = nobody. */
void tenant_wake(struct device_tenant *device, unsigned wake);

/* 1 when a seat on the device was asked for and must not be done without: memory is then refused. */
int tenant_refused(CUdevice device);

/*
 * 1 when cuInit must fail, after the driver's own: a malformed quota, or CUOTA_STRICT and a device of the program's
 * without a ledger. The reason has been logged, once. Takes no seat.
 */
int tenant_start_refused(void);

/* 1 when this process has a seat on some device: for views that need no context. */
int tenant_is_on(void);

const struct config *tenant_config(void);

/* Where the ledgers are; "" before the first seat. */
const char *tenant_dir(void);

#endif
