/*
 * Waits of the host for the device. The driver's call goes through unchanged; the scheduler is told that a thread
 * waits, so that others who want the device do not take late work for done work, and told when all is done.
 */
#include <errno.h>

#include "base/clock.h"
#include "hooks/hooks.h"
#include "hooks/launch.h"
#include "hooks/mem_pool.h"
#include "hooks/process.h"
#include "hooks/tenant.h"

static struct launcher *waiting_begin(void)
{
	struct device_tenant *device;
	struct launcher *launcher;

	if (tenant_state() != TENANT_ON)
		return NULL;
	device = tenant_of_launch();
	if (!device || !device->sched->use_turns)
		return NULL;
	launcher = (struct launcher *)device->sched;
	launch_wait_begins(launcher);
	return launcher;
}

static CUresult waiting_end(struct launcher *launcher, CUresult rc, int all_done)
{
	int saved = errno;

	if (launcher)
		tenant_wake(launcher->device, sched_sync_end(&launcher->sched, clock_now_ns(),
							     rc == CUDA_SUCCESS && all_done));
	mem_after_sync(); /* a pool may have given memory back */
	errno = saved;
	return rc;
}

/* A wait for the only stream in use is a wait for everything. */
static int only_stream(struct launcher *launcher, CUstream stream)
{
	if (!launcher || launcher->sched.last_stream != stream)
		return 0;
	if (launcher->sched.many_streams) {
		sched_same_stream(&launcher->sched);
		return 0;
	}
	return 1;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	struct launcher *launcher = waiting_begin();
	CUresult rc = real.cuStreamSynchronize(stream);

	return waiting_end(launcher, rc, only_stream(launcher, stream));
}

CUresult cuStreamSynchronize_ptsz(CUstream stream)
{
	struct launcher *launcher = waiting_begin();
	CUresult rc = real.cuStreamSynchronize_ptsz(stream);

	return waiting_end(launcher, rc,
			   only_stream(launcher, stream ? stream : CU_STREAM_PER_THREAD));
}

CUresult cuCtxSynchronize(void)
{
	struct launcher *launcher = waiting_begin();

	return waiting_end(launcher, real.cuCtxSynchronize(), 1);
}

#if CUDA_VERSION >= 13000
CUresult cuCtxSynchronize_v2(CUcontext context)
{
	struct launcher *launcher = waiting_begin();

	return waiting_end(launcher, real.cuCtxSynchronize_v2(context), 0);
}
#endif

CUresult cuEventSynchronize(CUevent event)
{
	struct launcher *launcher = waiting_begin();

	return waiting_end(launcher, real.cuEventSynchronize(event), 0);
}
