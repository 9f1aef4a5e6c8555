/*
 * This process as a tenant: its configuration, and for each CUDA device its seat in the ledger.
 *
 * States, kept in a page that the kernel wipes on fork (any fork, raw clone included), so that a child
 * starts at UNKNOWN and owns nothing of its parent's:
 *   UNKNOWN  nothing read yet
 *   OFF      no quota is asked for: every wrapper passes straight through
 *   ON       quotas in force
 *   REFUSED  a malformed quota, or CUOTA_STRICT and no ledger: cuInit fails
 */
#ifndef CUOTA_HOOKS_TENANT_H
#define CUOTA_HOOKS_TENANT_H

#include <stdint.h>

#include "base/config.h"
#include "driver/cuda_abi.h"
#include "ledger/ledger.h"

struct sched;	/* sched/sched.h */
struct charges; /* memory/charges.h */

#define TENANT_DEVICES 64

enum tenant_state { TENANT_UNKNOWN, TENANT_OFF, TENANT_ON, TENANT_REFUSED };

struct device_tenant {
	int ordinal; /* CUDA's own index, after CUDA_VISIBLE_DEVICES */
	CUdevice device;
	char uuid[UUID_TEXT_BYTES];
	uint64_t device_bytes; /* real total */
	struct ledger ledger;
	struct member member;
	struct sched *sched;
	uint64_t context_bytes; /* what a bare context costs here: measured or default */
	_Atomic uint32_t attached; /* 0 not yet, 1 joined, 2 joined a private ledger */
};

/*
 * One load and one compare when quotas are off or unset. Reads the configuration at the first call (no
 * driver call, no file but the policy). Returns the state.
 */
enum tenant_state tenant_state(void);

/*
 * The seat on a device, joined at the first use; NULL when quotas are off, the device is out of range, or
 * no seat can be had (then one warning has been logged and CUOTA_STRICT decided). Safe on any thread; makes only
 * context-free driver calls.
 */
struct device_tenant *tenant_of_device(CUdevice device);

/* Of the calling thread's current context; NULL also when there is none. 14 ns in the driver. */
struct device_tenant *tenant_of_current(void);

/* 1 when this process has a seat on some device: for views that need no context. */
int tenant_is_on(void);

const struct config *tenant_config(void);

/* Where the ledgers are; "" before the first seat. */
const char *tenant_dir(void);

#endif
