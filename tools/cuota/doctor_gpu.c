/*
 * `cuota doctor`, the GPUs: driver, modes, ledgers, what is promised and who has no quota.
 */
#include "doctor.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define KERNEL_LIMITS_DRIVER \
	615 /* the first with nvidia-smi memory-limits (MPS v3 documentation) */

void doctor_driver(struct doctor *doctor)
{
	const struct snapshot *s = doctor->snapshot;
	unsigned gpus = 0;

	if (s->nvml_problem.text[0]) {
		doctor_add(doctor, "driver", DOCTOR_BAD, "%s", s->nvml_problem.text);
		doctor_mend(doctor, "nvidia-smi");
		return;
	}
	for (unsigned g = 0; g < s->gpu_count; g++)
		gpus += s->gpus[g].index >= 0;
	doctor_add(doctor, "driver", gpus ? DOCTOR_GOOD : DOCTOR_BAD, "NVIDIA driver %s, %u GPU%s",
		   s->driver[0] ? s->driver : "of unknown version", gpus, gpus == 1 ? "" : "s");
}

void doctor_modes(struct doctor *doctor)
{
	const struct snapshot *s = doctor->snapshot;
	pid_t mps = process_named("nvidia-cuda-mps");

	for (unsigned g = 0; g < s->gpu_count; g++) {
		const struct gpu_state *gpu = &s->gpus[g];

		if (gpu->compute_mode == MODE_EXCLUSIVE ||
		    gpu->compute_mode == MODE_EXCLUSIVE_THREAD) {
			doctor_add(doctor, "mode", DOCTOR_WARN,
				   "GPU %d is in exclusive mode: a second process fails to start "
				   "there",
				   gpu->index);
			doctor_mend(doctor, "sudo nvidia-smi -i %d -c DEFAULT", gpu->index);
		} else if (gpu->compute_mode == MODE_PROHIBITED) {
			doctor_add(doctor, "mode", DOCTOR_BAD, "GPU %d is closed to computing",
				   gpu->index);
			doctor_mend(doctor, "sudo nvidia-smi -i %d -c DEFAULT", gpu->index);
		}
		if (gpu->is_mig)
			doctor_add(doctor, "mig", DOCTOR_NOTE,
				   "GPU %d has a MIG instance %s, which is a GPU of its own for "
				   "quotas",
				   gpu->index, gpu->uuid);
	}
	if (mps)
		doctor_add(doctor, "mps", DOCTOR_NOTE,
			   "MPS runs (pid %d): kernels of several processes overlap, SM time is "
			   "capped by "
			   "rate and not by turns",
			   (int)mps);
}

void doctor_ledgers(struct doctor *doctor)
{
	const struct snapshot *s = doctor->snapshot;
	unsigned good = 0;

	for (unsigned g = 0; g < s->gpu_count; g++) {
		const struct gpu_state *gpu = &s->gpus[g];

		if (!gpu->ledger_path[0])
			continue;
		if (!gpu->problem.text[0]) {
			good++;
			continue;
		}
		doctor_add(doctor, "ledger", DOCTOR_BAD, "%s", gpu->problem.text);
		doctor_mend(doctor, "rm %s    # once no program under a quota uses that GPU",
			    gpu->ledger_path);
	}
	if (good)
		doctor_add(doctor, "ledger", DOCTOR_GOOD, "%u ledger%s can be read", good,
			   good == 1 ? "" : "s");
}

/* More promised than there is: a tenant below its cap can meet a full card. */
void doctor_caps(struct doctor *doctor)
{
	const struct snapshot *s = doctor->snapshot;

	for (unsigned g = 0; g < s->gpu_count; g++) {
		const struct gpu_state *gpu = &s->gpus[g];
		char sum[16], total[16];
		uint64_t promised = 0;
		unsigned uncapped = 0;

		for (unsigned i = 0; i < gpu->group_count; i++) {
			if (gpu->groups[i].caps.mem_bytes == QUOTA_NONE)
				uncapped++;
			else
				promised += gpu->groups[i].caps.mem_bytes;
		}
		if (gpu->total_bytes && promised > gpu->total_bytes)
			doctor_add(doctor, "caps", DOCTOR_WARN,
				   "%s: the groups' memory caps are %s in all, the GPU has %s: a "
				   "group below "
				   "its cap can meet a full GPU",
				   gpu->uuid, size_format(promised, sum, sizeof(sum)),
				   size_format(gpu->total_bytes, total, sizeof(total)));
		if (uncapped)
			doctor_add(doctor, "caps", DOCTOR_NOTE,
				   "%s: %u group%s without a memory cap", gpu->uuid, uncapped,
				   uncapped == 1 ? "" : "s");
	}
}

void doctor_unattached(struct doctor *doctor)
{
	const struct snapshot *s = doctor->snapshot;

	for (unsigned g = 0; g < s->gpu_count; g++) {
		const struct gpu_state *gpu = &s->gpus[g];

		for (unsigned i = 0; i < gpu->unattached_count; i++) {
			const struct unattached *u = &gpu->unattached[i];
			char user[64], used[16] = "?";

			if (u->used_bytes != NVML_BYTES_UNKNOWN)
				size_format(u->used_bytes, used, sizeof(used));
			doctor_add(doctor, "unattached", DOCTOR_WARN,
				   "GPU %d: %s (pid %d, user %s) uses %s under no quota",
				   gpu->index, u->process.comm, (int)u->process.pid,
				   cli_user(u->process.uid, user, sizeof(user)), used);
			doctor_mend(
				doctor,
				"cuota run --mem SIZE -- %s ...    # instead of starting it bare",
				u->process.comm);
		}
		if (gpu->invisible)
			doctor_add(doctor, "unattached", DOCTOR_NOTE,
				   "GPU %d: %u processes cannot be seen from this PID namespace",
				   gpu->index, gpu->invisible);
	}
}

void doctor_kernel_limits(struct doctor *doctor)
{
	if (atoi(doctor->snapshot->driver) < KERNEL_LIMITS_DRIVER &&
	    !nvml_has("nvmlDeviceSetMemoryLimits_v1"))
		return;
	doctor_add(doctor, "kernel", DOCTOR_NOTE,
		   "this driver can also cap memory per cgroup in the kernel: a wall behind "
		   "cuota's caps "
		   "against programs that go round a preloaded library");
	doctor_mend(doctor, "sudo nvidia-smi memory-limits --set -n CGROUP --hard-limit MIB -i 0");
}
