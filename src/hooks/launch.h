/*
 * What the scheduler needs of CUDA on one device: gates and samples. One per seat, made with it.
 */
#ifndef CUOTA_HOOKS_LAUNCH_H
#define CUOTA_HOOKS_LAUNCH_H

#include "hooks/gate.h"
#include "hooks/sample.h"
#include "sched/sched.h"

struct launcher {
	struct sched sched; /* first: device_tenant.sched points here */
	struct gate gate;
	struct sampler sampler;
};

#endif
