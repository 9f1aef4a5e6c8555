/*
 * What the launch path has in a context ends with it: events of samples, and the pinned words that gates and marks live
 * in (pinned memory belongs to the context that it was made in, and the service thread writes there). So the words
 * move back to our own memory before a context may end, and return to the pinned page if it has not.
 */
#include "base/cpu.h"
#include "hooks/hooks.h"
#include "hooks/launch.h"
#include "hooks/launch_path.h"
#include "hooks/process.h"

static struct launcher *launcher_of(struct process *process, int i)
{
	uint32_t attached =
		atomic_load_explicit(&process->devices[i].attached, memory_order_acquire);

	return attached == 1 || attached == 2 ? (struct launcher *)process->devices[i].sched : NULL;
}

void launch_code_changed(void)
{
	struct process *process = atomic_load(&tenant_process);

	if (!process || tenant_state() != TENANT_ON)
		return;
	for (int i = 0; i < TENANT_DEVICES; i++) {
		struct launcher *launcher = launcher_of(process, i);

		if (launcher)
			costs_forget(&launcher->sched.costs);
	}
}

void launch_graph_made(CUgraphExec exec)
{
	struct process *process = atomic_load(&tenant_process);

	for (int i = 0; process && tenant_state() == TENANT_ON && i < TENANT_DEVICES; i++) {
		struct launcher *launcher = launcher_of(process, i);

		if (launcher)
			costs_doubt(&launcher->sched.costs, launch_key(exec, (struct shape){0}));
	}
}

void launch_pause(void)
{
	struct process *process = atomic_load(&tenant_process);

	if (!process || tenant_state() != TENANT_ON)
		return;
	for (int i = 0; i < TENANT_DEVICES; i++) {
		struct launcher *launcher = launcher_of(process, i);

		if (launcher)
			gate_pause(&launcher->gate, &launcher->sched);
	}
}

/* A sample of a context that is gone can not be read, and its events must not be used again. */
static void forget_samples(struct sampler *sampler, CUcontext gone, int all)
{
	for (unsigned i = 0; i < SAMPLES; i++) {
		struct sample *sample = &sampler->samples[i];

		if (!sample->context || (!all && sample->context != gone))
			continue;
		sample_forget(sampler, sample);
	}
}

void launch_resume(CUcontext gone, int gone_device)
{
	struct process *process = atomic_load(&tenant_process);

	if (!process || tenant_state() != TENANT_ON)
		return;
	for (int i = 0; i < TENANT_DEVICES; i++) {
		struct launcher *launcher = launcher_of(process, i);

		if (!launcher)
			continue;
		if (gone || i == gone_device)
			forget_samples(&launcher->sampler, gone, i == gone_device);
		if (gone || i == gone_device)
			stretch_forget(&launcher->stretch, &launcher->sched,
				       i == gone_device ? NULL : gone);
		gate_resume(&launcher->gate, &launcher->sched,
			    i == gone_device || (gone && launcher->gate.context == gone));
	}
}
