/*
 * Around a launch: charged, timed now and then, held back when cap or turn say so. Nothing here runs on a capturing stream.
 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "hooks/capture.h"
#include "hooks/graph_mem.h"
#include "hooks/hooks.h"
#include "hooks/launch.h"
#include "hooks/launch_path.h"
#include "hooks/local_memory.h"
#include "hooks/process.h"

#define WAIT_MAX_NS (100 * NS_PER_MS) /* then it asks again: the cap may have been lifted */

static void wait_on_host(struct launching *l, const struct admit_result *admit, uint64_t now)
{
	struct sched *sched = &l->launcher->sched;
	uint64_t until = admit->until_ns < now + WAIT_MAX_NS ? admit->until_ns : now + WAIT_MAX_NS;
	uint32_t seen = atomic_load(&sched->slot_sm->turn_futex);
	uint64_t waited;
	long slack = prctl(PR_GET_TIMERSLACK);

	demand_wait_begins(sched, now);
	/* For the length of the wait: the usual 50 us would be lost at every turn. */
	prctl(PR_SET_TIMERSLACK, 1000ul);
	if (until > now)
		futex_wait(&sched->slot_sm->turn_futex, seen, until - now);
	else
		futex_wait(&sched->slot_sm->turn_futex, seen, TURN_GRACE_NS);
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
	waited = clock_now_ns() - now;
	demand_wait_ends(sched, now + waited);
	atomic_fetch_add_explicit(&sched->group_sm->throttled_ns, waited, memory_order_relaxed);
	atomic_fetch_add_explicit(&sched->slot_sm->throttled_ns, waited, memory_order_relaxed);
}

/* Under a cap a deep queue of kernels that nobody has timed yet would run before it is paid for. 1 when it has waited. */
static int wait_for_first_sample(struct launching *l)
{
	struct sched *sched = &l->launcher->sched;
	uint32_t cap = atomic_load(&sched->member->sm_cap_bp);

	if (!cost_is_unknown(l->cost))
		return 0;
	if ((!cap || cap >= QUOTA_SM_NONE) && !sched_is_shared(sched))
		return 0;
	sample_await_first(&l->launcher->sampler, sched, l->cost);
	return 1;
}

static int many_streams(const struct launching *l)
{
	return atomic_load_explicit(&l->launcher->sched.many_streams, memory_order_relaxed) != 0;
}

/* Pays, waits or gates as the scheduler says; 1 when the stream now waits at a turn's gate. */
static int admit(struct launching *l)
{
	struct launcher *launcher = l->launcher;
	struct sched *sched = &launcher->sched;
	int can_gate = sched->use_turns && !l->ungated && !sched_is_dense(sched) &&
		       !cost_is_unknown(l->cost) && !(many_streams(l) && cost_is_vague(l->cost)) &&
		       gate_usable(&launcher->gate, sched, l->stream);
	struct admit_result result;
	uint64_t now;

	for (;;) {
		enum admission what;

		now = clock_now_ns();
		what = sched_admit(sched, l->charged_ns, gate_lane(l->stream), now, can_gate,
				   &result);
		tenant_wake(l->device, result.wake);
		if (result.kick)
			service_kick();
		l->mark = result.mark;
		l->dry = result.dry;
		l->stretch = result.stretch;
		l->want_sample |= result.overdue && !cost_is_vague(l->cost);
		if (what == ADMIT_GO)
			return 0;
		if (what == ADMIT_GATE)
			return gate_wait_turn(&launcher->gate, l->stream, result.chunk) == 0;
		wait_on_host(l, &result, now);
		sample_collect(&launcher->sampler, sched);
	}
}

/* With several streams the kernels of the others are in the pair, unless the device was idle before. */
static int is_alone(const struct launching *l)
{
	return !many_streams(l) || (l->dry && sched_times_alone(&l->launcher->sched));
}

/* The device is idle: a moment to time one launch alone as well, which is for later if there is a measure of its kind. */
static void begin_stretch(struct launching *l)
{
	struct launcher *launcher = l->launcher;

	if (l->stretch != STRETCH_BEGINS)
		return;
	if (l->want_sample && !cost_sample_later(l->cost)) {
		sched_stretch_cancel(&launcher->sched);
		l->stretch = STRETCH_NOT;
		return;
	}
	l->want_sample = 0;
	stretch_begin(&launcher->stretch, &launcher->sched, l->stream);
}

static int launch_slow(struct launching *l, int flows)
{
	struct launcher *launcher = l->launcher;
	CUstreamCaptureMode mode = capture_relax();
	int saved = errno, gated = 0, alone;

	l->sample = NULL;
	l->mark = 0;
	l->dry = 0;
	l->stretch = flows && sched_stretch_tail(&launcher->sched) ? STRETCH_ENDS : STRETCH_NOT;
	sample_collect(&launcher->sampler, &launcher->sched);
	stretch_collect(&launcher->stretch, &launcher->sched);
	/* After that the device may be idle, which only the admission tells: the moment to time one alone. */
	if (wait_for_first_sample(l) || !flows)
		gated = admit(l);
	begin_stretch(l);
	alone = l->want_sample && is_alone(l);
	if (l->want_sample && (alone || !cost_sample_later(l->cost))) {
		l->sample =
			sample_begin(&launcher->sampler, &launcher->gate, &launcher->sched,
				     l->stream, l->cost, l->cost_ns, gated || l->ungated, alone);
		if (!l->sample)
			cost_sample_failed(l->cost);
	}
	if (l->mark && !gate_usable(&launcher->gate, &launcher->sched, l->stream)) {
		sched_mark_lost(&launcher->sched, l->mark);
		l->mark = 0;
	}
	capture_restore(mode);
	errno = saved;
	return l->sample || l->mark || l->stretch > STRETCH_BEGINS;
}

/* One stream, or several? Many launches in a row on one, or waits for it, say that it is the only one. */
static void note_stream(struct sched *sched, CUstream stream)
{
	const void *last = atomic_load_explicit(&sched->last_stream, memory_order_relaxed);

	if (last == stream) {
		sched_same_stream(sched);
		return;
	}
	atomic_store_explicit(&sched->last_stream, stream, memory_order_relaxed);
	if (last)
		sched_other_stream(sched);
}

int launch_begin(struct launching *l, const void *function, uint64_t key, CUstream stream,
		 int per_thread)
{
	struct sched *sched;
	int flows;

	if (tenant_state() != TENANT_ON)
		return 0;
	l->stream = explicit_stream(stream, per_thread);
	if (capture_is_on(l->stream))
		return 0;
	l->device = tenant_of_launch();
	if (!l->device)
		return 0;
	l->launcher = (struct launcher *)l->device->sched;
	sched = &l->launcher->sched;
	note_stream(sched, l->stream);
	l->cost = costs_find(&sched->costs, key);
	/* What it costs must be known, and so must its kernel's frame; graphs: launch_calls.c. */
	if (cost_may_be_plain(l->cost, key) &&
	    local_memory_is_known((CUfunction)(uintptr_t)function))
		atomic_store_explicit(&l->cost->plain, 1, memory_order_relaxed);
	l->cost_ns = cost_launch(l->cost, &l->want_sample);
	l->charged_ns = sched_scaled(sched, l->cost_ns);
	flows = sched_flows(sched, l->charged_ns);
	/* Until the first sample is read each launch looks for it: by guess a 20 ms kernel looks like a short one. */
	if (__builtin_expect(flows && !l->want_sample && !sched_stretch_tail(sched) &&
				     atomic_load_explicit(&l->cost->samples, memory_order_relaxed),
			     1))
		return 0;
	return launch_slow(l, flows);
}

void launch_wait_begins(struct launcher *launcher)
{
	uint64_t now = clock_now_ns();
	unsigned wake;

	if (!sched_sync_begin(&launcher->sched, now))
		return;
	if (!sched_open(&launcher->sched, now, &wake))
		service_kick();
	tenant_wake(launcher->device, wake);
}

/* Several streams: the timed launch is alone on the device as long as nothing else is launched. */
static void hold(struct launching *l)
{
	struct launcher *launcher = l->launcher;
	int alone;
	launch_wait_begins(launcher);
	sample_hold(&launcher->sampler, l->sample);
	alone = atomic_load_explicit(&launcher->sched.last_stream, memory_order_relaxed) ==
		l->stream;
	if (!alone) /* another thread has launched */
		l->sample->company.word = 0;
	tenant_wake(l->device, sched_sync_end(&launcher->sched, clock_now_ns(),
					      alone && l->sample->company.word != 0));
	sample_collect(&launcher->sampler, &launcher->sched);
}

void launch_end(struct launching *l, CUresult rc)
{
	CUstreamCaptureMode mode = capture_relax();
	int saved = errno;

	if (l->sample)
		sample_end(&l->launcher->sampler, &l->launcher->gate, l->sample, l->stream, rc);
	if (l->sample && rc == CUDA_SUCCESS && many_streams(l) && l->sample->company.word)
		hold(l);
	if (l->stretch == STRETCH_BEGINS_AFTER)
		stretch_begin(&l->launcher->stretch, &l->launcher->sched, l->stream);
	else if (l->stretch == STRETCH_ENDS)
		stretch_end(&l->launcher->stretch, &l->launcher->sched, l->stream);
	if (l->mark &&
	    (rc != CUDA_SUCCESS || gate_write_mark(&l->launcher->gate, l->stream, l->mark) != 0))
		sched_mark_lost(&l->launcher->sched, l->mark);
	capture_restore(mode);
	errno = saved;
}
