/* Timed stretches of work; stretch.h tells why. Everything runs on the program's own launching threads. */
#include <stddef.h>

#include "base/cpu.h"
#include "hooks/hooks.h"
#include "hooks/stretch.h"

enum { TIMER_FREE, TIMER_BEGUN, TIMER_FLYING, TIMER_HELD };

/* Takes it out of state `from`; the one who has it sets the next. */
static int take(struct stretch_timer *timer, uint32_t from)
{
	return atomic_load_explicit(&timer->state, memory_order_relaxed) == from &&
	       atomic_compare_exchange_strong(&timer->state, &from, TIMER_HELD);
}

static void release(struct stretch_timer *timer, uint32_t state)
{
	atomic_store_explicit(&timer->state, state, memory_order_release);
}

/* Events belong to the context they were made in; those of one that is current no more are left to it. */
static int has_events(struct stretch_timer *timer)
{
	CUcontext context;

	if (real.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
		return 0;
	if (timer->context == context)
		return 1;
	timer->context = NULL;
	if (real.cuEventCreate(&timer->before, 0) != CUDA_SUCCESS)
		return 0;
	if (real.cuEventCreate(&timer->after, 0) != CUDA_SUCCESS) {
		real.cuEventDestroy_v2(timer->before);
		return 0;
	}
	timer->context = context;
	return 1;
}

void stretch_begin(struct stretch_timer *timer, struct sched *sched, CUstream stream)
{
	/* Behind work of its own stream the event would come late, and the stretch seem short. */
	if (real.cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
		sched_stretch_late(sched);
		return;
	}
	if (!take(timer, TIMER_FREE) && !take(timer, TIMER_BEGUN)) {
		sched_stretch(sched, 0);
		return;
	}
	if (has_events(timer) && real.cuEventRecord(timer->before, stream) == CUDA_SUCCESS) {
		release(timer, TIMER_BEGUN);
		return;
	}
	release(timer, TIMER_FREE);
	sched_stretch(sched, 0);
}

void stretch_end(struct stretch_timer *timer, struct sched *sched, CUstream stream)
{
	if (!take(timer, TIMER_BEGUN)) {
		sched_stretch(sched, 0);
		return;
	}
	if (real.cuEventRecord(timer->after, stream) == CUDA_SUCCESS) {
		release(timer, TIMER_FLYING);
		return;
	}
	release(timer, TIMER_FREE);
	sched_stretch(sched, 0);
}

void stretch_drop(struct stretch_timer *timer, struct sched *sched)
{
	if (take(timer, TIMER_BEGUN))
		release(timer, TIMER_FREE);
	sched_stretch(sched, 0);
}

void stretch_collect(struct stretch_timer *timer, struct sched *sched)
{
	float ms = 0;
	CUresult rc;

	if (!take(timer, TIMER_FLYING))
		return;
	rc = real.cuEventQuery(timer->after);
	if (rc == CUDA_ERROR_NOT_READY) {
		release(timer, TIMER_FLYING);
		return;
	}
	if (rc == CUDA_SUCCESS)
		rc = real.cuEventElapsedTime(&ms, timer->before, timer->after);
	if (rc != CUDA_SUCCESS)
		timer->context = NULL; /* it is gone, and its events with it */
	sched_stretch(sched, rc == CUDA_SUCCESS && ms > 0 ? (uint64_t)((double)ms * 1e6) : 0);
	release(timer, TIMER_FREE);
}

void stretch_forget(struct stretch_timer *timer, struct sched *sched)
{
	while (!take(timer, TIMER_FREE) && !take(timer, TIMER_BEGUN) && !take(timer, TIMER_FLYING))
		cpu_relax(); /* another thread records or reads it just now */
	timer->context = NULL;
	sched_stretch(sched, 0);
	release(timer, TIMER_FREE);
}
