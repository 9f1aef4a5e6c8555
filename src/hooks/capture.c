/*
 * Stream captures: launches on a capturing stream do not run, and many driver calls on or beside a capturing
 * thread are errors that end the capture. So cuota counts captures under way; while there are any it asks about a stream
 * before it charges a launch on it, and makes its own calls in relaxed mode, which no capture forbids.
 */
#include "hooks/capture.h"
#include "hooks/hooks.h"
#include "hooks/tenant.h"

_Atomic uint32_t captures_active;

static CUresult began(CUresult rc)
{
	if (rc == CUDA_SUCCESS)
		atomic_fetch_add(&captures_active, 1);
	return rc;
}

int capture_holds(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	if (!real.cuStreamIsCapturing)
		return 0;
	/* The legacy stream answers with an error while another stream captures: then it cannot be used. */
	return real.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUstreamCaptureMode capture_relax(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	if (atomic_load_explicit(&captures_active, memory_order_relaxed))
		real.cuThreadExchangeStreamCaptureMode(&mode);
	return mode;
}

void capture_restore(CUstreamCaptureMode mode)
{
	if (mode != CU_STREAM_CAPTURE_MODE_RELAXED)
		real.cuThreadExchangeStreamCaptureMode(&mode);
}

#define BODY(symbol, params, args) \
	CUresult symbol params \
	{ \
		return began(real.symbol args); \
	}

BODY(cuStreamBeginCapture, (CUstream stream), (stream))
BODY(cuStreamBeginCapture_ptsz, (CUstream stream), (stream))
BODY(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
BODY(cuStreamBeginCapture_v2_ptsz, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
#if CUDA_VERSION >= 12030
BODY(cuStreamBeginCaptureToGraph,
     (CUstream stream, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
      size_t count, CUstreamCaptureMode mode),
     (stream, graph, dependencies, edges, count, mode))
BODY(cuStreamBeginCaptureToGraph_ptsz,
     (CUstream stream, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
      size_t count, CUstreamCaptureMode mode),
     (stream, graph, dependencies, edges, count, mode))
#endif

/*
 * What it answers does not tell whether one has ended: a capture that failed has, that of a thread of its own has not, and a
 * stream that captures nothing ends none of the others'.
 */
static CUresult ended(CUstream stream, int captured, CUresult rc)
{
	uint32_t n = atomic_load(&captures_active);

	if (!captured || capture_holds(stream))
		return rc;
	while (n && !atomic_compare_exchange_weak(&captures_active, &n, n - 1))
		;
	return rc;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	int captured = capture_is_on(stream);

	return ended(stream, captured, real.cuStreamEndCapture(stream, graph));
}

CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
	CUstream meant = stream ? stream : CU_STREAM_PER_THREAD;
	int captured = capture_is_on(meant);

	return ended(meant, captured, real.cuStreamEndCapture_ptsz(stream, graph));
}
