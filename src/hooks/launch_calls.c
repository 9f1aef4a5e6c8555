/*
 * Every way to start kernels, as programs call them.
 */
#include "hooks/graph_mem.h"
#include "hooks/hooks.h"
#include "hooks/launch_path.h"
#include "hooks/local_memory.h"

/* A kernel's frame is memory, for every thread at once. */
static inline CUresult frame_fits(CUfunction function)
{
	return tenant_state() == TENANT_ON ? local_memory_before_launch(function) : CUDA_SUCCESS;
}

/*
 * Three functions in a row, each of which hands on its arguments where they are: with no quota a wrapper is two loads, a
 * compare and a jump; a launch that may go at once is some loads more; all others take the long way.
 */
#define AT_ONCE(symbol, function, shape, stream, args) \
	do { \
		if (launch_at_once(function, shape, stream)) \
			return real.symbol args; \
	} while (0)

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
		if (!launch_begin(&l_, function, launch_key(function, shape), stream, per_thread)) \
			return call; \
		rc_ = call; \
		launch_end(&l_, rc_); \
		return rc_; \
	} while (0)

/* Of the wrappers' own arguments. */
#define SHAPE ((struct shape){gx, gy, gz, bx, by, bz, shared})

typedef __typeof__(cuLaunchKernel) kernel_call;
typedef __typeof__(cuLaunchKernelEx) kernel_ex_call;
typedef __typeof__(cuLaunchCooperativeKernel) cooperative_call;
typedef __typeof__(cuGraphLaunch) graph_call;

static __attribute__((noinline)) CUresult
launch_kernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
	      unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params,
	      void **extra, kernel_call *call, int per_thread)
{
	LAUNCH(call(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra), f, SHAPE, stream,
	       per_thread);
}

static __attribute__((noinline)) CUresult
metered_cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
		       unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
		       CUstream stream, void **params, void **extra)
{
	AT_ONCE(cuLaunchKernel, f, SHAPE, stream,
		(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra));
	return launch_kernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra,
			     real.cuLaunchKernel, 0);
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
			unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			CUstream stream, void **params, void **extra)
{
	WITHOUT_QUOTA(cuLaunchKernel, (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra));
	return metered_cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

static __attribute__((noinline)) CUresult
metered_cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
			    unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			    CUstream stream, void **params, void **extra)
{
	AT_ONCE(cuLaunchKernel_ptsz, f, SHAPE, explicit_stream(stream, 1),
		(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra));
	return launch_kernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra,
			     real.cuLaunchKernel_ptsz, 1);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
			     unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			     CUstream stream, void **params, void **extra)
{
	WITHOUT_QUOTA(cuLaunchKernel_ptsz,
		      (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra));
	return metered_cuLaunchKernel_ptsz(f, gx, gy, gz, bx, by, bz, shared, stream, params,
					   extra);
}

static inline struct shape shape_of(const CUlaunchConfig *c)
{
	return (struct shape){c->gridDimX,  c->gridDimY,  c->gridDimZ,	    c->blockDimX,
			      c->blockDimY, c->blockDimZ, c->sharedMemBytes};
}

static __attribute__((noinline)) CUresult launch_kernel_ex(const CUlaunchConfig *c, CUfunction f,
							   void **params, void **extra,
							   kernel_ex_call *call, int per_thread)
{
	struct shape none = {0};

	LAUNCH(call(c, f, params, extra), f, c ? shape_of(c) : none, c ? c->hStream : NULL,
	       per_thread);
}

static __attribute__((noinline)) CUresult
metered_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	if (config)
		AT_ONCE(cuLaunchKernelEx, f, shape_of(config), config->hStream,
			(config, f, params, extra));
	return launch_kernel_ex(config, f, params, extra, real.cuLaunchKernelEx, 0);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	WITHOUT_QUOTA(cuLaunchKernelEx, (config, f, params, extra));
	return metered_cuLaunchKernelEx(config, f, params, extra);
}

static __attribute__((noinline)) CUresult
metered_cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params,
			      void **extra)
{
	if (config)
		AT_ONCE(cuLaunchKernelEx_ptsz, f, shape_of(config),
			explicit_stream(config->hStream, 1), (config, f, params, extra));
	return launch_kernel_ex(config, f, params, extra, real.cuLaunchKernelEx_ptsz, 1);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **params,
			       void **extra)
{
	WITHOUT_QUOTA(cuLaunchKernelEx_ptsz, (config, f, params, extra));
	return metered_cuLaunchKernelEx_ptsz(config, f, params, extra);
}

static __attribute__((noinline)) CUresult
launch_cooperative(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
		   unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
		   void **params, cooperative_call *call, int per_thread)
{
	LAUNCH(call(f, gx, gy, gz, bx, by, bz, shared, stream, params), f, SHAPE, stream,
	       per_thread);
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
	begun = launch_begin(l, p->function, launch_key(p->function, s), p->hStream, 0);
	real.cuCtxPopCurrent_v2(&context);
	return begun;
}

static void multi_device_end(struct launching *l, CUresult rc)
{
	CUcontext context;
	int pushed = real.cuStreamGetCtx(l->stream, &context) == CUDA_SUCCESS &&
		     real.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS;

	launch_end(l, rc); /* whatever went wrong: it gives back what was taken */
	if (pushed)
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
	LAUNCH(real.cuLaunch(f), f, s, NULL, 0);
}

CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
	struct shape s = {(uint32_t)width, (uint32_t)height, 1, 0, 0, 0, 0};

	WITHOUT_QUOTA(cuLaunchGrid, (f, width, height));
	LAUNCH(real.cuLaunchGrid(f, width, height), f, s, NULL, 0);
}

CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream)
{
	struct shape s = {(uint32_t)width, (uint32_t)height, 1, 0, 0, 0, 0};

	WITHOUT_QUOTA(cuLaunchGridAsync, (f, width, height, stream));
	LAUNCH(real.cuLaunchGridAsync(f, width, height, stream), f, s, stream, 0);
}

/* ---- graphs: launched as a whole ------------------------------------------------------------------ */

static const struct shape whole;

static CUresult graph_kernels(CUgraphExec exec, CUstream stream, graph_call *call, int per_thread)
{
	struct launching l = {.cost = NULL};
	uint64_t key = launch_key(exec, whole);
	int begun = launch_begin(&l, exec, key, stream, per_thread);
	CUresult rc;

	/* Its kernels' frames were looked at when it was instantiated. */
	if (l.cost && cost_may_be_plain(l.cost, key))
		atomic_store_explicit(&l.cost->plain, 1, memory_order_relaxed);
	rc = call(exec, stream);
	if (begun)
		launch_end(&l, rc);
	return rc;
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

static __attribute__((noinline)) CUresult metered_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	if (!graph_mem_any())
		AT_ONCE(cuGraphLaunch, exec, whole, stream, (exec, stream));
	return launch_graph(exec, stream, real.cuGraphLaunch, 0);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	WITHOUT_QUOTA(cuGraphLaunch, (exec, stream));
	return metered_cuGraphLaunch(exec, stream);
}

static __attribute__((noinline)) CUresult metered_cuGraphLaunch_ptsz(CUgraphExec exec,
								     CUstream stream)
{
	if (!graph_mem_any())
		AT_ONCE(cuGraphLaunch_ptsz, exec, whole, explicit_stream(stream, 1),
			(exec, stream));
	return launch_graph(exec, stream, real.cuGraphLaunch_ptsz, 1);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	WITHOUT_QUOTA(cuGraphLaunch_ptsz, (exec, stream));
	return metered_cuGraphLaunch_ptsz(exec, stream);
}
