/* Are streams being captured? See capture.c. */
#ifndef CUOTA_HOOKS_CAPTURE_H
#define CUOTA_HOOKS_CAPTURE_H

#include <stdatomic.h>
#include <stdint.h>

#include "driver/cuda_abi.h"

extern _Atomic uint32_t captures_active; /* captures under way in this process */

/* 1 when this stream captures (or cannot say): 25 ns in the driver. */
int capture_holds(CUstream stream);

/* 1 when a call on this stream only records. One load while nothing is captured. */
static inline int capture_is_on(CUstream stream)
{
	return atomic_load_explicit(&captures_active, memory_order_relaxed) &&
	       capture_holds(stream);
}

/*
 * Around calls of our own that a capture somewhere in the process may forbid to this thread, and be ended by: what a
 * program may not do beside a capture an observer may, in relaxed mode. Nothing while nothing is captured.
 */
CUstreamCaptureMode capture_relax(void);
void capture_restore(CUstreamCaptureMode mode);

#endif
