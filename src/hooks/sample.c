/* Timed samples; sample.h tells why. Everything runs on the program's own launching thread. */
#include <stddef.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "hooks/hooks.h"
#include "hooks/sample.h"
#include "sched/sched.h"

#define VAIN_MAX 16u /* waits in a row that are counted */
#define FIRSTS_MAX \
	3u /* and so many may be in vain before the next are left out: it may be a long kernel */

enum { SAMPLE_FREE, SAMPLE_FILLING, SAMPLE_FLYING, SAMPLE_READING };

/* Events belong to the context they were made in: prefer a slot that has them, else a virgin one. */
static struct sample *claim(struct sampler *sampler, CUcontext context)
{
	struct sample *virgin = NULL;

	for (unsigned i = 0; i < SAMPLES; i++) {
		struct sample *sample = &sampler->samples[i];
		uint32_t free = SAMPLE_FREE;

		if (atomic_load_explicit(&sample->state, memory_order_relaxed) != SAMPLE_FREE)
			continue;
		if (sample->context != context) {
			if (!virgin && !sample->context)
				virgin = sample;
			continue;
		}
		if (atomic_compare_exchange_strong(&sample->state, &free, SAMPLE_FILLING)) {
			if (sample->context == context)
				return sample;
			atomic_store(&sample->state, SAMPLE_FREE);
		}
	}
	if (virgin) {
		uint32_t free = SAMPLE_FREE;

		if (!atomic_compare_exchange_strong(&virgin->state, &free, SAMPLE_FILLING))
			return NULL;
		if (virgin->context == NULL &&
		    real.cuEventCreate(&virgin->before, 0) == CUDA_SUCCESS) {
			if (real.cuEventCreate(&virgin->after, 0) == CUDA_SUCCESS) {
				virgin->context = context;
				return virgin;
			}
			real.cuEventDestroy_v2(virgin->before);
		}
		atomic_store(&virgin->state, SAMPLE_FREE);
	}
	return NULL;
}

/*
 * A stream that is idle when the launch gets there needs the gate, also when it is busy for a moment yet; one that is busy
 * for longer must not get it (its queue may be full, and then the launch call would wait for the gate that it is to open).
 */
static int wants_gate(struct gate *gate, struct sched *sched, CUstream stream, struct cost *cost)
{
	return atomic_load_explicit(&cost->mean_ns, memory_order_relaxed) < SAMPLE_GATE_MAX_NS &&
	       gate_usable(gate, sched, stream) &&
	       (sched_done_by(sched, clock_now_ns() + SAMPLE_SOON_NS) ||
		real.cuStreamQuery(stream) == CUDA_SUCCESS);
}

struct sample *sample_begin(struct sampler *sampler, struct gate *gate, struct sched *sched,
			    CUstream stream, struct cost *cost, uint64_t charged_ns,
			    int behind_gate, int alone)
{
	struct sample *sample;
	uint32_t unlocked = 0;
	CUcontext context;

	if (real.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
		return NULL;
	sample = claim(sampler, context);
	if (!sample)
		return NULL;
	sample->cost = cost;
	sample->charged_ns = charged_ns;
	sample->ticket = 0;
	/* Behind a gate it runs in some later turn; what other streams run meanwhile is in the pair too. */
	sample->company =
		alone && !behind_gate ? sched_company(sched, clock_now_ns()) : (struct company){0};
	if (!behind_gate && wants_gate(gate, sched, stream, cost) &&
	    atomic_compare_exchange_strong(&sampler->gate_lock, &unlocked, 1)) {
		if (gate_close_sample(gate, stream, &sample->ticket) != 0) {
			sample->ticket = 0;
			atomic_store(&sampler->gate_lock, 0);
		}
	}
	if (real.cuEventRecord(sample->before, stream) != CUDA_SUCCESS) {
		sample_end(sampler, gate, sample, stream, CUDA_ERROR_UNKNOWN);
		return NULL;
	}
	return sample;
}

void sample_end(struct sampler *sampler, struct gate *gate, struct sample *sample, CUstream stream,
		CUresult launched)
{
	CUresult rc = launched;

	if (rc == CUDA_SUCCESS)
		rc = real.cuEventRecord(sample->after, stream);
	if (sample->ticket) {
		gate_open_sample(gate, sample->ticket);
		atomic_store(&sampler->gate_lock, 0);
	}
	if (rc != CUDA_SUCCESS) {
		cost_sample_failed(sample->cost);
		atomic_store_explicit(&sample->state, SAMPLE_FREE, memory_order_release);
		return;
	}
	atomic_store_explicit(&sample->state, SAMPLE_FLYING, memory_order_release);
	atomic_fetch_add(&sampler->pending, 1);
}

static int is_done(struct sample *sample)
{
	return atomic_load(&sample->state) != SAMPLE_FLYING ||
	       real.cuEventQuery(sample->after) != CUDA_ERROR_NOT_READY;
}

/* After the n-th one in vain, beyond `most`, 2^n waits are left out. */
static int leaves_out(struct patience *patience)
{
	uint32_t left = atomic_load_explicit(&patience->off, memory_order_relaxed);

	if (left)
		atomic_store_explicit(&patience->off, left - 1, memory_order_relaxed);
	return left != 0;
}

static void note_wait(struct patience *patience, int in_vain, uint32_t most)
{
	uint32_t n = in_vain ? atomic_load_explicit(&patience->vain, memory_order_relaxed) + 1 : 0;

	if (n > VAIN_MAX)
		n = VAIN_MAX;
	atomic_store_explicit(&patience->vain, n, memory_order_relaxed);
	if (n > most)
		atomic_store_explicit(&patience->off, 1u << (n - most), memory_order_relaxed);
}

void sample_hold(struct sampler *sampler, struct sample *sample)
{
	uint64_t mean = atomic_load_explicit(&sample->cost->mean_ns, memory_order_relaxed);
	uint64_t now = clock_now_ns(), begun = now;
	uint64_t most = 4 * mean > SAMPLE_HOLD_NS ? 4 * mean : SAMPLE_HOLD_NS;
	struct timespec nap = {0, 20000};
	int done = 0;

	if (most > SAMPLE_HOLD_MAX_NS)
		most = SAMPLE_HOLD_MAX_NS;
	if (!leaves_out(&sampler->holds)) {
		while (!(done = is_done(sample)) && now < begun + most) {
			if (now > begun + SAMPLE_SPIN_NS)
				nanosleep(&nap, NULL);
			else
				cpu_relax();
			now = clock_now_ns();
		}
		note_wait(&sampler->holds, !done, 0);
	}
	if (!done)
		sample->company.word = 0;
}

void sample_await_first(struct sampler *sampler, struct sched *sched, struct cost *cost)
{
	uint64_t end = clock_now_ns() + SAMPLE_FIRST_NS;
	struct timespec nap = {0, 50000};
	int known = 0;

	if (!atomic_load(&sampler->pending) || leaves_out(&sampler->firsts))
		return;
	while (!(known = atomic_load(&cost->samples) != 0) && atomic_load(&sampler->pending) &&
	       clock_now_ns() < end) {
		nanosleep(&nap, NULL);
		sample_collect(sampler, sched);
	}
	note_wait(&sampler->firsts, !known && atomic_load(&sampler->pending), FIRSTS_MAX);
}

static void read_one(struct sampler *sampler, struct sched *sched, struct sample *sample)
{
	uint32_t flying = SAMPLE_FLYING;
	float ms = 0;
	CUresult rc;

	if (atomic_load_explicit(&sample->state, memory_order_relaxed) != SAMPLE_FLYING ||
	    !atomic_compare_exchange_strong(&sample->state, &flying, SAMPLE_READING))
		return;
	rc = real.cuEventQuery(sample->after);
	if (rc == CUDA_ERROR_NOT_READY) {
		atomic_store(&sample->state, SAMPLE_FLYING);
		return;
	}
	if (rc == CUDA_SUCCESS)
		rc = real.cuEventElapsedTime(&ms, sample->before, sample->after);
	atomic_fetch_sub(&sampler->pending, 1);
	if (rc == CUDA_SUCCESS) {
		double ns = (double)ms * 1e6 - SAMPLE_EVENT_NS + SCHED_LAUNCH_NS;

		sched_sampled(sched, sample->cost, ns > 1 ? (uint64_t)ns : 1, sample->charged_ns,
			      &sample->company, clock_now_ns());
	} else {
		/* The events stay: when their context ends sample_forget() is told. */
		cost_sample_failed(sample->cost);
	}
	atomic_store_explicit(&sample->state, SAMPLE_FREE, memory_order_release);
}

void sample_forget(struct sampler *sampler, struct sample *sample)
{
	for (;;) {
		uint32_t flying = SAMPLE_FLYING, free = SAMPLE_FREE;

		if (atomic_compare_exchange_strong(&sample->state, &flying, SAMPLE_READING)) {
			atomic_fetch_sub(&sampler->pending, 1);
			cost_sample_failed(sample->cost);
			break;
		}
		if (atomic_compare_exchange_strong(&sample->state, &free, SAMPLE_READING))
			break;
		cpu_relax(); /* another thread fills or reads it just now */
	}
	sample->context = NULL;
	atomic_store_explicit(&sample->state, SAMPLE_FREE, memory_order_release);
}

void sample_collect(struct sampler *sampler, struct sched *sched)
{
	if (atomic_load_explicit(&sampler->pending, memory_order_relaxed) == 0)
		return;
	for (unsigned i = 0; i < SAMPLES; i++)
		read_one(sampler, sched, &sampler->samples[i]);
}
