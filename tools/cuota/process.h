/*
 * What /proc says about other processes: who they are, what they have mapped, and which slot of a
 * ledger is theirs though they may see themselves under another PID.
 */
#ifndef CUOTA_CLI_PROCESS_H
#define CUOTA_CLI_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "ledger/ledger.h"

struct process {
	pid_t pid;	    /* as this command sees it */
	uint32_t inner_pid; /* as the process sees itself */
	uint64_t start_ticks;
	uint64_t pid_ns_inode; /* 0 when we may not know */
	uint32_t uid;
	char comm[17];
};

/* 0 or -errno (-ENOENT: no such process here). */
int process_read(pid_t pid, struct process *ret);

enum process_maps {
	MAPS_CUDA = 1,	/* libcuda.so mapped, or a file of /dev/nvidia* */
	MAPS_CUOTA = 2, /* libcuota mapped */
};

/* Bits of enum process_maps, or -errno (-EACCES: somebody else's process). */
int process_maps(pid_t pid);

/* Fills ret with up to `room` direct children; returns how many. 0 also where the kernel does not
 * tell. */
unsigned process_children(pid_t pid, pid_t *ret, unsigned room);

/* 1 if the slot of a ledger is this process's. */
int process_owns(const struct process *process, const struct slot_view *slot);

/* The PID, as this command sees it, of the owner of a slot; 0 when it is not to be seen from here. */
pid_t process_of_slot(const struct slot_view *slot);

/* The first process whose command begins so; 0 when there is none. */
pid_t process_named(const char *comm_prefix);

/* 1 if this command sees the PIDs that NVML reports (the initial PID namespace). */
int process_sees_all(void);

#endif
