/*
 * The driver's own figure for this process on a device, read through NVML: what the ledger is compared with.
 *
 * NVML is loaded at the first call, never before the program's first context, and left loaded. It is another library
 * than the driver, with its own locks, so the service thread may ask it too.
 *
 * NVML may list processes by the numbers of another PID namespace. So the list is taken before and after this
 * process's first context on a device: the number that is new is ours.
 */
#ifndef CUOTA_HOOKS_DRIVER_BYTES_H
#define CUOTA_HOOKS_DRIVER_BYTES_H

#include <stdint.h>

#include "hooks/nvml_abi.h"

struct device_tenant;

enum { LISTED_MOST = 256 };

struct listed {
	unsigned count; /* LISTED_MOST + 1: could not be read */
	unsigned pids[LISTED_MOST];
};

/* The figure of each process on a device, and which of them is us. */
struct figures {
	unsigned own, count;
	nvmlProcessInfo_v2_t of[LISTED_MOST];
};

/* 1 when it is known which process NVML takes us for. */
int driver_bytes_known(void);

/* Before a context, while that is not known. */
void driver_bytes_look(const struct device_tenant *tenant, struct listed *ret_before);

/* After it: finds out which process NVML takes us for. */
void driver_bytes_learn(const struct device_tenant *tenant, const struct listed *before);

/* 0, or -ENOTSUP when NVML cannot be had or does not tell which process is which. */
int driver_bytes_of_all(const struct device_tenant *tenant, struct figures *ret);

/* Of our process: 0 and the bytes (0 when NVML does not list us: we hold nothing), or -ENOTSUP. */
int driver_bytes_own(const struct figures *figures, uint64_t *ret_bytes);

/* Of another one; 0 when it is not listed, or without a figure. */
uint64_t driver_bytes_in(const struct figures *figures, unsigned pid);

/* The first two in one. */
int driver_bytes_of_process(const struct device_tenant *tenant, uint64_t *ret_bytes);

/* What all processes together hold on the device. 0, or -ENOTSUP. */
int driver_bytes_of_device(const struct device_tenant *tenant, uint64_t *ret_used);

#endif
