/*
 * What the files of src/sched share among themselves: memory order by default, and the scheduler's lock.
 *
 * The lock (rank SCHED) is private to the process and held for a few dozen instructions, never across a driver call.
 */
#ifndef CUOTA_SCHED_PRIVATE_H
#define CUOTA_SCHED_PRIVATE_H

#include <stdatomic.h>

#include "base/spin.h"
#include "sched/sched.h"

#define LOAD(p)	    atomic_load_explicit(p, memory_order_acquire)
#define STORE(p, v) atomic_store_explicit(p, v, memory_order_release)

static inline void sched_lock(struct sched *sched)
{
	spin_lock(&sched->lock);
}

static inline void sched_unlock(struct sched *sched)
{
	spin_unlock(&sched->lock);
}

/* ---- backlog.c: launches behind the gate -------------------------------------------------------------- */

/* Puts a launch behind the gate: its chunk, or 0 when the backlog is full. *ret_first: the first one there. */
uint32_t backlog_add(struct sched *sched, uint64_t cost_ns, uint64_t now_ns, int *ret_first);
/* Opens closed chunks that fit into what is left of the lease; 1 when none is left closed. */
int backlog_open(struct sched *sched, uint64_t now_ns, uint64_t *ret_paid_ns);

/* Opens all of it, whoever has the device; returns the work. */
uint64_t backlog_open_all(struct sched *sched);

/* A light program's launches are collected: 0 = it is time to ask for a turn for them, else when it will be. */
uint64_t backlog_ripe_at(const struct sched *sched, uint64_t now_ns);
/* ---- marks.c: predictions held against what the device has reached ------------------------------------ */

/* Counts work handed to the driver; answers a mark for the stream to write after it when one is due, else 0. */
uint32_t marks_issue(struct sched *sched, uint64_t ns, unsigned lane, int contended);

/*
 * The holder's marks against its predictions: moves the predicted end when a mark is late, and sees the end itself, so
 * that those who wait know. Returns when to look again, 0 = no mark will tell more.
 */
uint64_t marks_look(struct sched *sched, uint64_t now_ns);

/* ---- overlap.c: kernels of several streams that run side by side --------------------------------------- */

/* From at_ns on the device works for what is handed over from now on. */
void overlap_begin(struct sched *sched, uint64_t at_ns);

/* Work up to `seen_ns` is done. Under the lock. */
void overlap_seen(struct sched *sched, uint64_t seen_ns, uint64_t now_ns);

/* 1 when a capped program should save up before it goes on, so that its streams can run together. */
int overlap_wants_batch(const struct sched *sched, uint64_t now_ns);

#endif
