/*
 * NVIDIA's management library, opened at run time if there is one: which GPUs exist and which
 * processes use them, whether or not under a quota. Our own minimal declarations of NVIDIA's
 * public, documented ABI; the command works without it, with the ledgers alone.
 *
 * One thread; nvml_open() ... nvml_close().
 */
#ifndef CUOTA_CLI_NVML_H
#define CUOTA_CLI_NVML_H

#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "base/error.h"

#define NVML_GPUS	   64
#define NVML_BYTES_UNKNOWN UINT64_MAX

struct nvml_process {
	uint32_t pid;	     /* in the initial PID namespace, whoever asks */
	uint64_t used_bytes; /* NVML_BYTES_UNKNOWN when the driver does not say */
};

enum nvml_compute_mode {
	MODE_DEFAULT,
	MODE_EXCLUSIVE_THREAD,
	MODE_PROHIBITED,
	MODE_EXCLUSIVE,
	MODE_UNKNOWN
};

struct nvml_gpu {
	unsigned index;
	char uuid[UUID_TEXT_BYTES]; /* MIG-... for a slice, which is a GPU of its own here */
	char name[96];
	int is_mig, mig_enabled;
	uint64_t total_bytes, used_bytes;
	enum nvml_compute_mode compute_mode;
	unsigned process_count;
	struct nvml_process *processes; /* freed by nvml_state_free() */
};

struct nvml_state {
	unsigned gpu_count;
	struct nvml_gpu gpus[NVML_GPUS];
	char driver[32]; /* "580.159.04"; "" = unknown */
};

/* Loads and initialises NVML once; -ENOENT when there is none, -EIO when it fails, with the reason.
 */
int nvml_open(struct error *err);
void nvml_close(void);

/* 1 if the library has this symbol (what a driver release added). */
int nvml_has(const char *symbol);

/* Everything above in one sweep. -ENODEV when not open. */
int nvml_read(struct nvml_state *ret);
void nvml_state_free(struct nvml_state *state);

#endif
