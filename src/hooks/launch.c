/*
 * Every way to start kernels: charged at launch, timed now and then, held back when cap or turn say so.
 *
 * With no quota a body is two loads, a compare and the driver's call. With one that does not bind it adds a hash look-up
 * and an atomic add. Nothing here runs on a capturing stream.
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
#include "hooks/local_memory.h"
#include "hooks/process.h"

#define UNKNOWN_WAIT_NS (100 * NS_PER_MS) /* then each waits at most so long for the first sample */

struct launching {
	struct device_tenant *device;
	struct launcher *launcher;
	struct cost *cost;
	struct sample *sample;
	CUstream stream;
	uint64_t charged_ns;
	int want_sample;
	int ungated;   /* one of several launches that wait for each other: no gate in the stream */
	int dry;       /* nothing of this process was on the device before */
	uint32_t mark; /* for the stream to write after the launch; 0 = none */
};

struct shape {
	uint32_t gx, gy, gz, bx, by, bz, shared;
};

static uint64_t launch_key(const void *function, const struct shape *s)
{
	uint64_t h = (uintptr_t)function;

	h = (h ^ ((uint64_t)s->gx << 32 | s->gy)) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 29 ^ ((uint64_t)s->gz << 40 | (uint64_t)s->bx << 20 | s->by)) *
	    0xbf58476d1ce4e5b9ull;
	h = (h ^ h >> 32 ^ ((uint64_t)s->bz << 32 | s->shared)) * 0x94d049bb133111ebull;
	return h | 1;
}

/* The per-thread default stream by its own handle, so that one set of driver calls serves both ABIs. */
static CUstream explicit_stream(CUstream stream, int per_thread)
{
	return per_thread && !stream ? CU_STREAM_PER_THREAD : stream;
}

static void wait_on_host(struct launching *l, const struct admit_result *admit, uint64_t now)
{
	struct sched *sched = &l->launcher->sched;
	uint32_t seen = atomic_load(&sched->slot_sm->turn_futex);
	uint64_t waited;
	long slack = prctl(PR_GET_TIMERSLACK);

	/* For the length of the wait: the usual 50 us would be lost at every turn. */
	prctl(PR_SET_TIMERSLACK, 1000ul);
	if (admit->until_ns > now)
		futex_wait(&sched->slot_sm->turn_futex, seen, admit->until_ns - now);
	else
		futex_wait(&sched->slot_sm->turn_futex, seen, TURN_GRACE_NS);
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
	waited = clock_now_ns() - now;
	atomic_fetch_add_explicit(&sched->group_sm->throttled_ns, waited, memory_order_relaxed);
	atomic_fetch_add_explicit(&sched->slot_sm->throttled_ns, waited, memory_order_relaxed);
}

/* Under a cap a deep queue of kernels that nobody has timed yet would run before it is paid for. */
static void wait_for_first_sample(struct launching *l)
{
	struct sched *sched = &l->launcher->sched;
	uint32_t cap = atomic_load(&sched->member->sm_cap_bp);
	uint64_t end;

	if (!cost_is_unknown(l->cost))
		return;
	if ((!cap || cap >= QUOTA_SM_NONE) && !sched_is_shared(sched))
		return;
	end = clock_now_ns() + UNKNOWN_WAIT_NS;
	while (!atomic_load(&l->cost->samples) && atomic_load(&l->launcher->sampler.pending) &&
	       clock_now_ns() < end) {
		struct timespec nap = {0, 50000};

		nanosleep(&nap, NULL);
		sample_collect(&l->launcher->sampler, sched);
	}
}

/* Pays, waits or gates as the scheduler says; 1 when the stream now waits at a turn's gate. */
static int admit(struct launching *l)
{
	struct launcher *launcher = l->launcher;
	struct sched *sched = &launcher->sched;
	int can_gate = sched->use_turns && !l->ungated && !sched_is_dense(sched) &&
		       !cost_is_unknown(l->cost) && gate_usable(&launcher->gate, sched);
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
	return !l->launcher->many_streams || l->dry;
}

static int launch_slow(struct launching *l, int flows)
{
	struct launcher *launcher = l->launcher;
	int saved = errno, gated = 0;

	l->sample = NULL;
	l->mark = 0;
	l->dry = 0;
	sample_collect(&launcher->sampler, &launcher->sched);
	wait_for_first_sample(l);
	if (!flows)
		gated = admit(l);
	if (l->want_sample && (is_alone(l) || !cost_sample_later(l->cost))) {
		l->sample = sample_begin(&launcher->sampler, &launcher->gate, &launcher->sched,
					 l->stream, l->cost, l->charged_ns, gated || l->ungated,
					 is_alone(l));
		if (!l->sample)
			cost_sample_failed(l->cost);
	}
	if (l->mark && !gate_usable(&launcher->gate, &launcher->sched))
		l->mark = 0;
	errno = saved;
	return l->sample || l->mark;
}

/* 1 when launch_end() must follow; 0 when the caller just makes the driver's call. */
static inline int launch_begin(struct launching *l, const void *function, const struct shape *shape,
			       CUstream stream, int per_thread)
{
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
	if (l->launcher->last_stream != l->stream) {
		l->launcher->last_stream = l->stream;
		l->launcher->many_streams = LAUNCHER_MANY;
	}
	l->cost = costs_find(&l->launcher->sched.costs, launch_key(function, shape));
	l->charged_ns = cost_launch(l->cost, &l->want_sample);
	flows = sched_flows(&l->launcher->sched, l->charged_ns);
	/* Until the first sample is read each launch looks for it: by guess a 20 ms kernel looks like a short one. */
	if (__builtin_expect(flows && !l->want_sample &&
				     atomic_load_explicit(&l->cost->samples, memory_order_relaxed),
			     1))
		return 0;
	return launch_slow(l, flows);
}

/* Several streams: the timed launch is alone on the device as long as nothing else is launched. */
static void hold(struct launching *l)
{
	struct launcher *launcher = l->launcher;
	int alone;

	sched_sync_begin(&launcher->sched);
	sample_hold(&launcher->sampler, l->sample);
	alone = launcher->last_stream == l->stream;
	if (!alone) /* another thread has launched */
		l->sample->alone = 0;
	tenant_wake(l->device, sched_sync_end(&launcher->sched, clock_now_ns(),
					      alone && l->sample->alone != 0));
	sample_collect(&launcher->sampler, &launcher->sched);
}

static void launch_end(struct launching *l, CUresult rc)
{
	int saved = errno;

	if (l->sample)
		sample_end(&l->launcher->sampler, &l->launcher->gate, l->sample, l->stream, rc);
	if (l->sample && rc == CUDA_SUCCESS && l->launcher->many_streams && l->sample->alone)
		hold(l);
	if (l->mark && rc == CUDA_SUCCESS)
		gate_write_mark(&l->launcher->gate, l->stream, l->mark);
	errno = saved;
}

/* A kernel's frame is memory, for every thread at once. A graph's kernels were looked at with the graph. */
static inline CUresult frame_of_function(CUfunction function)
{
	return tenant_state() == TENANT_ON ? local_memory_before_launch(function) : CUDA_SUCCESS;
}

static inline CUresult frame_of_graph(CUgraphExec exec)
{
	(void)exec;
	return CUDA_SUCCESS;
}

#define frame_fits(what) \
	_Generic((what), CUgraphExec : frame_of_graph, default : frame_of_function)(what)

/*
 * With no quota a wrapper is two loads, a compare and a jump: the body below is a function of its own, so that the
 * driver's call can reuse the arguments where they are.
 */
#define WITHOUT_QUOTA(symbol, args) \
	do { \
		if (tenant_is_off()) \
			return real.symbol args; \
	} while (0)

#define LAUNCH(call, function, shape, stream, per_thread) \
	do { \
		struct launching l_; \
		CUresult rc_ = frame_fits(function); \
\
		if (rc_ != CUDA_SUCCESS) \
			return rc_; \
		l_.ungated = 0; \
		if (!launch_begin(&l_, function, shape, stream, per_thread)) \
			return call; \
		rc_ = call; \
		launch_end(&l_, rc_); \
		return rc_; \
	} while (0)

typedef __typeof__(cuLaunchKernel) kernel_call;
typedef __typeof__(cuLaunchKernelEx) kernel_ex_call;
typedef __typeof__(cuLaunchCooperativeKernel) cooperative_call;
typedef __typeof__(cuGraphLaunch) graph_call;

static __attribute__((noinline)) CUresult
launch_kernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
	      unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params,
	      void **extra, kernel_call *call, int per_thread)
{
	struct shape s = {gx, gy, gz, bx, by, bz, shared};

	LAUNCH(call(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra), f, &s, stream,
	       per_thread);
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
			unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			CUstream stream, void **params, void **extra)
{
	WITHOUT_QUOTA(cuLaunchKernel, (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra));
	return launch_kernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra,
			     real.cuLaunchKernel, 0);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
			     unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			     CUstream stream, void **params, void **extra)
{
	WITHOUT_QUOTA(cuLaunchKernel_ptsz,
		      (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra));
	return launch_kernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra,
			     real.cuLaunchKernel_ptsz, 1);
}

static __attribute__((noinline)) CUresult launch_kernel_ex(const CUlaunchConfig *c, CUfunction f,
							   void **params, void **extra,
							   kernel_ex_call *call, int per_thread)
{
	struct shape s = {0};

	if (c)
		s = (struct shape){c->gridDimX,	 c->gridDimY,  c->gridDimZ,	 c->blockDimX,
				   c->blockDimY, c->blockDimZ, c->sharedMemBytes};
	LAUNCH(call(c, f, params, extra), f, &s, c ? c->hStream : NULL, per_thread);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	WITHOUT_QUOTA(cuLaunchKernelEx, (config, f, params, extra));
	return launch_kernel_ex(config, f, params, extra, real.cuLaunchKernelEx, 0);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params,
			       void **extra)
{
	WITHOUT_QUOTA(cuLaunchKernelEx_ptsz, (config, f, params, extra));
	return launch_kernel_ex(config, f, params, extra, real.cuLaunchKernelEx_ptsz, 1);
}

static __attribute__((noinline)) CUresult
launch_cooperative(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
		   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
		   void **params, cooperative_call *call, int per_thread)
{
	struct shape s = {gx, gy, gz, bx, by, bz, shared};

	LAUNCH(call(f, gx, gy, gz, bx, by, bz, shared, stream, params), f, &s, stream, per_thread);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
				   unsigned int bx, unsigned int by, unsigned int bz,
				   unsigned int shared, CUstream stream, void **params)
{
	WITHOUT_QUOTA(cuLaunchCooperativeKernel,
		      (f, gx, gy, gz, bx, by, bz, shared, stream, params));
	return launch_cooperative(f, gx, gy, gz, bx, by, bz, shared, stream, params,
				  real.cuLaunchCooperativeKernel, 0);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy,
					unsigned int gz, unsigned int bx, unsigned int by,
					unsigned int bz, unsigned int shared, CUstream stream,
					void **params)
{
	WITHOUT_QUOTA(cuLaunchCooperativeKernel_ptsz,
		      (f, gx, gy, gz, bx, by, bz, shared, stream, params));
	return launch_cooperative(f, gx, gy, gz, bx, by, bz, shared, stream, params,
				  real.cuLaunchCooperativeKernel_ptsz, 1);
}

/* With the stream's own context current: events belong to it. */
static int multi_device_begin(struct launching *l, const CUDA_LAUNCH_PARAMS *p)
{
	struct shape s = {p->gridDimX,	p->gridDimY,  p->gridDimZ,	p->blockDimX,
			  p->blockDimY, p->blockDimZ, p->sharedMemBytes};
	CUcontext context;
	int begun;

	if (real.cuStreamGetCtx(p->hStream, &context) != CUDA_SUCCESS ||
	    real.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return 0;
	l->ungated = 1;
	begun = launch_begin(l, p->function, &s, p->hStream, 0);
	real.cuCtxPopCurrent_v2(&context);
	return begun;
}

static void multi_device_end(struct launching *l, CUresult rc)
{
	CUcontext context;

	if (real.cuStreamGetCtx(l->stream, &context) != CUDA_SUCCESS ||
	    real.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return;
	launch_end(l, rc);
	real.cuCtxPopCurrent_v2(&context);
}

/* One launch on several devices at once. A gate in front of one would stall the others, so the host waits for all. */
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int count,
					      unsigned int flags)
{
	struct launching launching[TENANT_DEVICES];
	uint64_t begun = 0;
	CUresult rc;

	for (unsigned i = 0; list && i < count && i < TENANT_DEVICES && tenant_state() == TENANT_ON;
	     i++)
		if (multi_device_begin(&launching[i], &list[i]))
			begun |= 1ull << i;
	rc = real.cuLaunchCooperativeKernelMultiDevice(list, count, flags);
	for (unsigned i = 0; i < TENANT_DEVICES; i++)
		if (begun >> i & 1)
			multi_device_end(&launching[i], rc);
	return rc;
}

CUresult cuLaunch(CUfunction f)
{
	struct shape s = {1, 1, 1, 0, 0, 0, 0};

	WITHOUT_QUOTA(cuLaunch, (f));
	LAUNCH(real.cuLaunch(f), f, &s, NULL, 0);
}

CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
	struct shape s = {(uint32_t)width, (uint32_t)height, 1, 0, 0, 0, 0};

	WITHOUT_QUOTA(cuLaunchGrid, (f, width, height));
	LAUNCH(real.cuLaunchGrid(f, width, height), f, &s, NULL, 0);
}

CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream)
{
	struct shape s = {(uint32_t)width, (uint32_t)height, 1, 0, 0, 0, 0};

	WITHOUT_QUOTA(cuLaunchGridAsync, (f, width, height, stream));
	LAUNCH(real.cuLaunchGridAsync(f, width, height, stream), f, &s, stream, 0);
}

static CUresult graph_kernels(CUgraphExec exec, CUstream stream, graph_call *call, int per_thread)
{
	static const struct shape none;

	LAUNCH(call(exec, stream), exec, &none, stream, per_thread);
}

/* Nodes that allocate take their memory now. */
static __attribute__((noinline)) CUresult launch_graph(CUgraphExec exec, CUstream stream,
						       graph_call *call, int per_thread)
{
	struct graph_launch memory;
	CUresult rc = graph_mem_before_launch(exec, &memory);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = graph_kernels(exec, stream, call, per_thread);
	graph_mem_after_launch(&memory);
	return rc;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	WITHOUT_QUOTA(cuGraphLaunch, (exec, stream));
	return launch_graph(exec, stream, real.cuGraphLaunch, 0);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	WITHOUT_QUOTA(cuGraphLaunch_ptsz, (exec, stream));
	return launch_graph(exec, stream, real.cuGraphLaunch_ptsz, 1);
}
