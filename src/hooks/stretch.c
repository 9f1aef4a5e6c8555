/* Stretches in CUDA terms; stretch.h tells what they are. The program's own launching threads run this. */
#include <stddef.h>

#include "base/clock.h"
#include "base/spin.h"
#include "hooks/hooks.h"
#include "hooks/stretch.h"

static int try_lock(struct stretch_timer *timer)
{
	uint32_t free = 0;

	return atomic_compare_exchange_strong(&timer->lock, &free, 1);
}

static void drop(struct sched *sched)
{
	sched_stretch(sched, 0, clock_now_ns());
}

static void destroy_events(struct stretch_timer *timer, unsigned ends)
{
	real.cuEventDestroy_v2(timer->began);
	for (unsigned i = 0; i < ends; i++)
		real.cuEventDestroy_v2(timer->ended[i]);
}

/* Events belong to the context they were made in: another one that launches has none. */
static int has_events(struct stretch_timer *timer)
{
	CUcontext context;
	unsigned n = 0;

	if (real.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
		return 0;
	if (timer->context)
		return timer->context == context;
	if (real.cuEventCreate(&timer->began, 0) != CUDA_SUCCESS)
		return 0;
	while (n < STRETCH_STREAMS && real.cuEventCreate(&timer->ended[n], 0) == CUDA_SUCCESS)
		n++;
	if (n < STRETCH_STREAMS) {
		destroy_events(timer, n);
		return 0;
	}
	timer->context = context;
	return 1;
}

void stretch_begin(struct stretch_timer *timer, struct sched *sched, CUstream stream)
{
	int begun = 0;

	if (try_lock(timer)) {
		timer->count = 0;
		begun = has_events(timer) &&
			real.cuEventRecord(timer->began, stream) == CUDA_SUCCESS;
		spin_unlock(&timer->lock);
	}
	if (!begun)
		drop(sched);
}

static unsigned place_of(struct stretch_timer *timer, CUstream stream)
{
	unsigned at = 0;

	while (at < timer->count && timer->streams[at] != stream)
		at++;
	if (at == timer->count && at < STRETCH_STREAMS)
		timer->streams[timer->count++] = stream;
	return at;
}

void stretch_end(struct stretch_timer *timer, struct sched *sched, CUstream stream)
{
	int recorded = 0;

	if (try_lock(timer)) {
		unsigned at = place_of(timer, stream);

		recorded = at < STRETCH_STREAMS && has_events(timer) &&
			   real.cuEventRecord(timer->ended[at], stream) == CUDA_SUCCESS;
		spin_unlock(&timer->lock);
	}
	if (!recorded)
		drop(sched);
}

/* From the beginning to the last end. CUDA_ERROR_NOT_READY: it is not over. */
static CUresult measure(struct stretch_timer *timer, double *ret_ms)
{
	CUresult rc = timer->count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	float ms = 0;

	*ret_ms = 0;
	for (unsigned i = 0; i < timer->count && rc == CUDA_SUCCESS; i++) {
		rc = real.cuEventQuery(timer->ended[i]);
		if (rc == CUDA_SUCCESS)
			rc = real.cuEventElapsedTime(&ms, timer->began, timer->ended[i]);
		if ((double)ms > *ret_ms)
			*ret_ms = (double)ms;
	}
	return rc;
}

void stretch_collect(struct stretch_timer *timer, struct sched *sched)
{
	CUresult rc;
	double ms;

	if (!sched_stretch_ended(sched) || !try_lock(timer))
		return;
	rc = measure(timer, &ms);
	spin_unlock(&timer->lock);
	if (rc != CUDA_ERROR_NOT_READY)
		sched_stretch(sched, rc == CUDA_SUCCESS ? (uint64_t)(ms * 1e6) : 0, clock_now_ns());
}

void stretch_forget(struct stretch_timer *timer, struct sched *sched, CUcontext gone)
{
	spin_lock(&timer->lock);
	if (!gone || timer->context == gone) {
		timer->context = NULL;
		timer->count = 0;
		drop(sched);
	}
	spin_unlock(&timer->lock);
}
