/*
 * How long a stretch of work of several streams takes: an event before its first launch and one after its last
 * (sched/overlap.c tells what for). One at a time; read later without waiting.
 */
#ifndef CUOTA_HOOKS_STRETCH_H
#define CUOTA_HOOKS_STRETCH_H

#include <stdatomic.h>
#include <stdint.h>

#include "driver/cuda_abi.h"
#include "sched/sched.h"

struct stretch_timer {
	_Atomic uint32_t
		state;	   /* 0 free, 1 begun, 2 on the device, 3 somebody has it in his hands */
	CUcontext context; /* of the events; NULL = none were made */
	CUevent before, after;
};

/* Before its first launch, and after its last; the caller is in relaxed capture mode. */
void stretch_begin(struct stretch_timer *timer, struct sched *sched, CUstream stream);
void stretch_end(struct stretch_timer *timer, struct sched *sched, CUstream stream);

/* The launch that it was to begin or end with was not made, or made in another way. */
void stretch_drop(struct stretch_timer *timer, struct sched *sched);

/* Reads it if it has ended. */
void stretch_collect(struct stretch_timer *timer, struct sched *sched);

/* Its context is gone: the events are not to be used again. */
void stretch_forget(struct stretch_timer *timer, struct sched *sched);

#endif
