/*
 * What the scheduler needs of CUDA on one device: gates and samples. One per seat, made with it.
 */
#ifndef CUOTA_HOOKS_LAUNCH_H
#define CUOTA_HOOKS_LAUNCH_H

#include "hooks/gate.h"
#include "hooks/sample.h"
#include "hooks/stretch.h"
#include "hooks/tenant.h"
#include "sched/sched.h"

struct launcher {
	struct sched sched; /* first: device_tenant.sched points here */
	struct device_tenant *device;
	struct gate gate;
	struct sampler sampler;
	struct stretch_timer stretch;
};

/* A thread waits for the device from now on: what it waits for is let go, by itself if that is right now. */
void launch_wait_begins(struct launcher *launcher);

/* Code was unloaded, or a context ended: function handles may mean something else from now on. */
void launch_code_changed(void);

/* A graph that can be launched was made; the handle may have been another one's. */
void launch_graph_made(CUgraphExec exec);

/* Around a call that may end a context: `gone` is the one that has, gone_device the device whose primary one has (else
 * NULL and -1). Any thread. */
void launch_pause(void);
void launch_resume(CUcontext gone, int gone_device);

#endif
