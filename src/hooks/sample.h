/*
 * Timed samples: a pair of events around one launch in many, read back later without waiting.
 *
 * A pair around one kernel reads the kernel's time plus SAMPLE_EVENT_NS when the stream has work queued; on an idle stream
 * the first event would pass before the launch arrives, so the pair then stands behind a gate that is opened
 * after the launch call (docs/sm-time.md, "What a pair reads").
 *
 * While something is captured in the process the caller is in relaxed capture mode.
 */
#ifndef CUOTA_HOOKS_SAMPLE_H
#define CUOTA_HOOKS_SAMPLE_H

#include <stdatomic.h>
#include <stdint.h>

#include "driver/cuda_abi.h"
#include "hooks/gate.h"
#include "sched/sched.h"

#define SAMPLE_EVENT_NS	   2690u    /* what the pair itself adds (H200, driver 580) */
#define SAMPLE_GATE_MAX_NS 3000000u /* beyond this the idle stream's error does not matter */
#define SAMPLE_SOON_NS	   30000u /* what is busy for so long may be idle when the launch gets there */
#define SAMPLES		   64u
#define SAMPLE_HOLD_NS \
	3000000u /* the host waits for a launch so long at most, or four times its mean */
#define SAMPLE_HOLD_MAX_NS 50000000u
#define SAMPLE_SPIN_NS	   200000u    /* and sleeps in between when it takes longer than this */
#define SAMPLE_FIRST_NS	   100000000u /* and for the first sample of a kind */

struct sample {
	_Atomic uint32_t state; /* 0 free, 1 being filled, 2 on the device, 3 being read */
	CUcontext context;
	CUevent before, after;
	struct cost *cost;
	uint64_t charged_ns;
	uint32_t ticket; /* of the sample gate, 0 = none */
	struct company
		company; /* before the launch; all zero: other streams may be on the device */
};

/* The host waits for a launch, which may itself wait for something that this thread does later: then it waits in vain. */
struct patience {
	_Atomic uint32_t off;  /* so many waits are left out, */
	_Atomic uint32_t vain; /* since this many were in vain, and none since was not */
};

struct sampler {
	_Atomic uint32_t gate_lock; /* one gated sample at a time */
	_Atomic uint32_t pending;
	struct patience holds, firsts;
	struct sample samples[SAMPLES];
};

/*
 * Before the launch: NULL when it cannot be timed now. `behind_gate`: the stream waits for a turn already. `alone`: nothing
 * else of this process is on the device.
 */
struct sample *sample_begin(struct sampler *sampler, struct gate *gate, struct sched *sched,
			    CUstream stream, struct cost *cost, uint64_t charged_ns,
			    int behind_gate, int alone);

/* After the launch call. */
void sample_end(struct sampler *sampler, struct gate *gate, struct sample *sample, CUstream stream,
		CUresult launched);

/*
 * After sample_end(), when several streams are in use and this launch has the device for itself: waits for it, so that
 * nothing of the others gets into the pair. Bounded in time; one that waits for something else of this thread is not
 * waited for again soon. sample_collect() must follow.
 */
void sample_hold(struct sampler *sampler, struct sample *sample);

/* Waits for the first sample of a kind, bounded likewise, and reads it. */
void sample_await_first(struct sampler *sampler, struct sched *sched, struct cost *cost);

/* Its context is gone: the events are not to be used again. */
void sample_forget(struct sampler *sampler, struct sample *sample);

/* Reads what has finished and corrects the account; cheap when nothing is pending. */
void sample_collect(struct sampler *sampler, struct sched *sched);

#endif
