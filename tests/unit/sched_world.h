/*
 * A device and its processes in virtual time, around the scheduler itself (not a copy of it).
 *
 * The device: contexts alternate as on the real card (docs/sm-time.md): kernels of two contexts never overlap, the
 * runner goes on until it is dry or its slice is over while another has work, a switch costs 0.15 ms. A process is a
 * loop "think, launch `burst` kernels, wait for them" or a deep queue, over several streams if it likes, with kernels
 * of several lengths. Events in a list; one step at a time.
 *
 * How many multiprocessors a device has appears nowhere, here as in the scheduler: time is all that is shared.
 */
#ifndef CUOTA_TESTS_SCHED_WORLD_H
#define CUOTA_TESTS_SCHED_WORLD_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sched/sched.h"

#define WORLD_PROCESSES 8
#define WORLD_QUEUE	1024
#define WORLD_STREAMS	4
#define WORLD_SHAPES	4
#define WORLD_BURSTS	4096

struct kernel {
	uint64_t ns;	    /* left to run */
	uint32_t chunk;	    /* gate it stands behind, 0 = none */
	uint32_t mark;	    /* written when it is done, 0 = none */
	int ran;	    /* on the device */
	uint64_t began;	    /* its stream has got there; 0 = not yet */
	struct cost *timed; /* a sample of this kind, charged_ns so far; NULL = not timed */
	uint64_t charged_ns;
	struct company company; /* as in hooks/sample.h */
	enum stretch stretch;	/* an event before it, or after it */
	int held;		/* the host waits for it */
};

struct stream_model {
	struct kernel queue[WORLD_QUEUE];
	unsigned head, tail; /* on the device or behind the gate */
};

struct process_model {
	/* What it does. */
	uint64_t kernel_ns, think_ns, launch_ns;
	unsigned jitter; /* percent by which the host is slower in one burst than in another */
	unsigned burst;	 /* launches before it waits for all of them */
	unsigned depth;	 /* deep queue: launches outstanding at most (burst unused) */
	int can_gate;
	unsigned streams; /* launches go round them; 0 = one */
	int polls;	  /* asks whether its kernels are done, where others wait in the driver */
	int depth_first;  /* the device stays with a stream while that has kernels */
	int misread;	  /* percent by which pairs of events read too much */
	unsigned gap_ns;  /* before the next kernel of a stream, when no other fills it */
	int small;	  /* a kernel leaves room: those of several streams run side by side */
	uint64_t shapes
		[WORLD_SHAPES]; /* lengths in turn, each a kind of its own; none = kernel_ns */
	uint64_t launches_max;	/* ends after so many; 0 = never */
	/* Collectives: kernel n goes on only while the partner's kernel n runs or has run; until then it occupies the device.
	 * A follower launches its kernel n after its leader has: one host thread for two devices. */
	const struct process_model *partner, *leader;
	/* State. */
	struct member member;
	struct sched sched;
	struct stream_model stream[WORLD_STREAMS];
	unsigned at;		    /* stream that the device works for */
	uint64_t started, finished; /* kernels */
	uint32_t dice;
	uint64_t slower_ns; /* each launch of this burst */
	unsigned samples_due;
	int dead;
	uint64_t host_at;    /* when the host acts next; UINT64_MAX = waits for its kernels */
	uint64_t service_at; /* when the service thread looks next */
	unsigned in_burst;
	int charged; /* the launch being admitted has been charged, */
	int flows;   /* and may go at once */
	int thought; /* the pause before this burst is over */
	uint64_t cost, scaled;
	struct cost *timed;		       /* the launch being admitted is to be timed */
	int blocked;			       /* made to wait for cap or turn */
	int holding;			       /* the host waits for the last timed one */
	int dry;			       /* and nothing was on the device before */
	enum stretch stretch;		       /* begins or ends with it, */
	uint64_t stretch_began, stretch_ended; /* and did so on the device then */
	unsigned ends_due;
	uint64_t unknown_since;
	/* Results. */
	uint64_t busy_ns, launches, waited_ns, asked_at, looks; /* of the service thread */
	uint64_t done_at, pause_ns;	 /* the longest time without a completion */
	uint64_t burst_at;		 /* the first launch of this burst was asked for */
	uint64_t burst_ns[WORLD_BURSTS]; /* from then until its last kernel is done */
	unsigned bursts;
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
struct process_model *world_add(struct world *w, const char *group, uint32_t cap_bp,
				uint32_t weight, enum quota_priority priority,
				enum sched_mode mode);

/* Runs for `ns`; results since the last world_reset(). */
void world_run(struct world *w, uint64_t ns);
void world_reset(struct world *w);

/* Two devices, in lockstep. */
void world_run_both(struct world *a, struct world *b, uint64_t ns);

/* kill -9: its work is gone from the device, the kernel has released its slot. */
void world_kill(struct process_model *p);

/* SIGSTOP and SIGCONT: what is on the device goes on, neither thread does. */
void world_stop(struct process_model *p);
void world_continue(struct world *w, struct process_model *p);

#endif
