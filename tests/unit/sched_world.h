/*
 * A device and its processes in virtual time, around the scheduler itself (not a copy of it).
 *
 * The device: contexts alternate as on the real card (docs/sm-time.md): kernels of two contexts never overlap, the
 * runner goes on until it is dry or its slice is over while another has work, a switch costs 0.15 ms. A process is a
 * loop "think, launch `burst` kernels, wait for them" or a deep queue. Events in a list; one step at a time.
 */
#ifndef CUOTA_TESTS_SCHED_WORLD_H
#define CUOTA_TESTS_SCHED_WORLD_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sched/sched.h"

#define WORLD_PROCESSES 8
#define WORLD_QUEUE	4096

struct kernel {
	uint64_t ns;	/* left to run */
	uint32_t chunk; /* gate it stands behind, 0 = none */
	uint32_t mark;	/* written when it is done, 0 = none */
};

struct process_model {
	/* What it does. */
	uint64_t kernel_ns, think_ns, launch_ns;
	unsigned burst;	    /* launches before it waits for all of them */
	unsigned depth;	    /* deep queue: launches outstanding at most (burst unused) */
	int can_gate;
	/* State. */
	struct member member;
	struct sched sched;
	struct kernel queue[WORLD_QUEUE];
	unsigned head, tail; /* on the device or behind the gate */
	uint64_t host_at;    /* when the host acts next; UINT64_MAX = waits for its kernels */
	uint64_t service_at; /* when the service thread looks next */
	unsigned in_burst;
	int charged; /* the launch being admitted has been charged */
	int thought; /* the pause before this burst is over */
	uint64_t cost;
	/* Results. */
	uint64_t busy_ns, launches, waited_ns, asked_at;
};

struct world {
	uint64_t now, slice_ns, switch_ns;
	struct ledger ledger;
	unsigned count;
	int current; /* context on the device */
	uint64_t slice_end, switch_until;
	struct process_model p[WORLD_PROCESSES];
};

void world_begin(struct world *w);
void world_end(struct world *w);

/* Adds a process to `group` with a cap (hundredths of a percent, 0 none) and a weight. */
struct process_model *world_add(struct world *w, const char *group, uint32_t cap_bp, uint32_t weight,
				enum quota_priority priority, enum sched_mode mode);

/* Runs for `ns`; results since the last world_reset(). */
void world_run(struct world *w, uint64_t ns);
void world_reset(struct world *w);

#endif
