/*
 * Timed samples: a pair of events around one launch in many, read back later without waiting.
 *
 * A pair around one kernel reads the kernel's time plus SAMPLE_EVENT_NS when the stream has work queued; on an idle stream
 * the first event would pass before the launch arrives, so the pair then stands behind a gate that is opened
 * after the launch call (docs/sm-time.md, "What a pair reads").
 */
#ifndef CUOTA_HOOKS_SAMPLE_H
#define CUOTA_HOOKS_SAMPLE_H

#include <stdatomic.h>
#include <stdint.h>

#include "driver/cuda_abi.h"
#include "hooks/gate.h"
#include "sched/costs.h"

#define SAMPLE_EVENT_NS	   2690u    /* what the pair itself adds (H200, driver 580) */
#define SAMPLE_GATE_MAX_NS 3000000u /* beyond this the idle stream's error does not matter */
#define SAMPLES		   64u

struct sample {
	_Atomic uint32_t state; /* 0 free, 1 being filled, 2 on the device, 3 being read */
	CUcontext context;
	CUevent before, after;
	struct cost *cost;
	uint64_t charged_ns;
	uint32_t ticket; /* of the sample gate, 0 = none */
	int shared;	 /* others, or other streams, may have had the device meanwhile */
};

struct sampler {
	_Atomic uint32_t gate_lock; /* one gated sample at a time */
	_Atomic uint32_t pending;
	struct sample samples[SAMPLES];
};

/* Before the launch: NULL when it cannot be timed now. `behind_gate`: the stream waits for a turn already. */
struct sample *sample_begin(struct sampler *sampler, struct gate *gate, struct sched *sched,
			    CUstream stream, struct cost *cost, uint64_t charged_ns,
			    int behind_gate, int many_streams);

/* After the launch call. */
void sample_end(struct sampler *sampler, struct gate *gate, struct sample *sample, CUstream stream,
		CUresult launched);

/* Its context is gone: the events are not to be used again. */
void sample_forget(struct sampler *sampler, struct sample *sample);

/* Reads what has finished and corrects the account; cheap when nothing is pending. */
void sample_collect(struct sampler *sampler, struct sched *sched);

#endif
