/*
 * Between the wrappers (launch_calls.c) and what happens around a launch (launch.c).
 *
 * The short way of a launch: most of them are of a kind whose cost is known, on the stream of the one before, and need
 * no look at the clock. A handful of loads, four cache lines and one atomic add; everything else is launch.c's.
 */
#ifndef CUOTA_HOOKS_LAUNCH_PATH_H
#define CUOTA_HOOKS_LAUNCH_PATH_H

#include "hooks/capture.h"
#include "hooks/launch.h"
#include "hooks/process.h"
#include "sched/sched.h"

struct shape {
	uint32_t gx, gy, gz, bx, by, bz, shared;
};

/* The kind of a launch: function and shape. The products do not wait for one another. */
static inline __attribute__((always_inline)) uint64_t launch_key(const void *function,
								 struct shape s)
{
	uint64_t h = (uintptr_t)function * 0x9e3779b97f4a7c15ull;

	h ^= ((uint64_t)s.gx << 32 | s.gy) * 0xbf58476d1ce4e5b9ull;
	h ^= ((uint64_t)s.gz << 40 ^ (uint64_t)s.bx << 20 ^ s.by) * 0x94d049bb133111ebull;
	h ^= ((uint64_t)s.bz << 32 | s.shared) * 0xd6e8feb86659fd93ull;
	return (h ^ h >> 32) | 1;
}

/* The per-thread default stream by its own handle, so that one set of driver calls serves both ABIs. */
static inline CUstream explicit_stream(CUstream stream, int per_thread)
{
	return per_thread && !stream ? CU_STREAM_PER_THREAD : stream;
}

/* 1 when the launch is charged and may go; 0: nothing has happened. */
static inline __attribute__((always_inline)) int launch_at_once(const void *function,
								struct shape shape, CUstream stream)
{
	struct process *process = atomic_load_explicit(&tenant_process, memory_order_acquire);
	struct sched *sched;
	struct cost *cost;
	uint32_t left;
	uint64_t key;

	if (!process || atomic_load_explicit(&process->state, memory_order_acquire) != TENANT_ON)
		return 0;
	sched = atomic_load_explicit(&process->only_sched, memory_order_acquire);
	if (!sched || atomic_load_explicit(&sched->last_stream, memory_order_relaxed) != stream ||
	    atomic_load_explicit(&captures_active, memory_order_relaxed))
		return 0;
	key = launch_key(function, shape);
	cost = &sched->costs.entries[cost_place(key)];
	left = atomic_load_explicit(&cost->countdown, memory_order_relaxed);
	if (atomic_load_explicit(&cost->key, memory_order_relaxed) != key ||
	    !atomic_load_explicit(&cost->plain, memory_order_relaxed) || left <= 1 ||
	    !sched_goes(sched, sched_scaled(sched, atomic_load_explicit(&cost->mean_ns,
									memory_order_relaxed))))
		return 0;
	atomic_store_explicit(&cost->countdown, left - 1, memory_order_relaxed);
	return 1;
}

struct launching {
	struct device_tenant *device;
	struct launcher *launcher;
	struct cost *cost;
	struct sample *sample;
	CUstream stream;
	uint64_t cost_ns;    /* what it takes on its own, */
	uint64_t charged_ns; /* and what it was charged */
	int want_sample;
	int ungated; /* one of several launches that wait for each other: no gate in the stream */
	int dry;     /* nothing of this process was on the device before */
	enum stretch stretch;
	uint32_t mark; /* for the stream to write after the launch; 0 = none */
};

/* The long way: charges, waits or gates. 1 when launch_end() must follow the driver's call; 0 when it need not. */
int launch_begin(struct launching *l, const void *function, uint64_t key, CUstream stream,
		 int per_thread);
void launch_end(struct launching *l, CUresult rc);

#endif
