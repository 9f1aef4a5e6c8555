/*
 * Gates in the stream: the device waits at a word of pinned host memory until somebody stores a number there.
 *
 * Words per device: one for turns (opened by the service thread), one for samples (closed around a timed launch
 * and opened by the same thread right after it, so that an idle stream reads like a busy one), and the lanes
 * that the device writes: the last mark that a stream has passed.
 */
#ifndef CUOTA_HOOKS_GATE_H
#define CUOTA_HOOKS_GATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "driver/cuda_abi.h"

struct sched;

#define GATE_STREAMS 64u

struct gate {
	_Atomic uint32_t state;	 /* 0 untried, 1 being made, 2 usable, 3 not to be had here */
	_Atomic uint32_t *words; /* pinned: turns, samples, lanes of marks, a cache line apart */
	CUdeviceptr device_words;
	CUcontext context;		       /* the words were made in */
	_Atomic uint64_t waited[GATE_STREAMS]; /* stream hash << 32 | highest chunk it waits for */
	uint32_t sample_next;
	_Atomic uint64_t sample_closed_ns; /* since when the sample gate is closed; 0 = open */
	_Atomic uint32_t lock;		   /* the pinned words stay while it is held */
};

/*
 * 1 when this stream can take gates and marks. Makes the words at the first call, in the stream's context: only its own streams
 * use them, since they end with it, and a stream of another may go on.
 */
int gate_usable(struct gate *gate, struct sched *sched, CUstream stream);

/* Before a context may end: opens what is closed and keeps the words in our own memory; gate_resume() goes back to the
 * pinned ones, or makes new ones at the next use when they are gone. */
void gate_pause(struct gate *gate, struct sched *sched);
void gate_resume(struct gate *gate, struct sched *sched, int gone);

/* Makes the stream wait for chunk (once per stream and chunk). 0 or -1 when the driver would not. */
int gate_wait_turn(struct gate *gate, CUstream stream, uint32_t chunk);

/* Has the stream write the mark when all before it is done. 0 or -1. */
int gate_write_mark(struct gate *gate, CUstream stream, uint32_t mark);

/* Which lane of marks a stream writes to. */
unsigned gate_lane(CUstream stream);

/* Service thread: a sample gate closed for too long is opened; the launch behind it may be waiting for the device itself
 * (it loads code), and then it would wait for ever. */
void gate_watch(struct gate *gate, uint64_t now_ns);

/* Closes the sample gate in front of what comes next; *ret_ticket opens it again. */
int gate_close_sample(struct gate *gate, CUstream stream, uint32_t *ret_ticket);
void gate_open_sample(struct gate *gate, uint32_t ticket);

#endif
