/*
 * A stretch of launches timed as a whole (sched/stretch.c tells what for): an event where it begins, and one after the last
 * launch of each stream. One stretch at a time per device; read back later without waiting.
 *
 * While something is captured in the process the caller is in relaxed capture mode.
 */
#ifndef CUOTA_HOOKS_STRETCH_H
#define CUOTA_HOOKS_STRETCH_H

#include <stdatomic.h>
#include <stdint.h>

#include "driver/cuda_abi.h"
#include "sched/sched.h"

#define STRETCH_STREAMS 8u /* a stretch of more is not timed */

struct stretch_timer {
	_Atomic uint32_t lock; /* tried only: who does not get it drops the stretch */
	CUcontext context;     /* the events were made in */
	CUevent began, ended[STRETCH_STREAMS];
	CUstream streams[STRETCH_STREAMS]; /* only compared: they may be gone */
	uint32_t count;			   /* of the ends that were recorded */
};

/* Records the beginning, before or after the launch. */
void stretch_begin(struct stretch_timer *timer, struct sched *sched, CUstream stream);

/* After a launch that may be its stream's last. */
void stretch_end(struct stretch_timer *timer, struct sched *sched, CUstream stream);

/* Reads a stretch that is over, when all of it has run. */
void stretch_collect(struct stretch_timer *timer, struct sched *sched);

/* The context is gone: its events are not to be used again. NULL: whichever. */
void stretch_forget(struct stretch_timer *timer, struct sched *sched, CUcontext gone);

#endif
