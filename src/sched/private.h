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

/* An owner word never equals this (its slot part is out of range), so "not flowing" can not match. */
#define NOT_FLOWING UINT64_MAX

/* ---- account.c: what is paid, and corrected ----------------------------------------------------------- */

/* The group's cap in hundredths of a percent; 0 = none, or not to be kept here. */
uint32_t cap_of(const struct sched *sched);

/* Our cap has changed since last time: the group's debt follows it, once. cap_begin(): from now on. */
void cap_begin(struct sched *sched);
void cap_follow(struct sched *sched, uint64_t now_ns);

/* Pays `busy_ns` that goes to the device now. */
void pay(struct sched *sched, uint64_t busy_ns, uint64_t launches, uint64_t now_ns);
/* Of what is pending, all but a launch of cost_ns that waits now. */
void pay_flown(struct sched *sched, uint64_t cost_ns, uint64_t now_ns);
uint64_t pay_pending(struct sched *sched, uint64_t now_ns);

/* ---- flow.c: launches that flow ------------------------------------------------------------------------- */

/* From now on, in a turn of ours: with what was opened before done, the program is on its own. */
void begin_flow(struct sched *sched, uint64_t word, uint64_t now_ns);

/* From now on, but others may be on the device as well: nothing is learnt about the program. */
void flow_along(struct sched *sched, uint64_t word);
/* Its cap holds it back until then. */
void flow_pauses(struct sched *sched, uint64_t now_ns, uint64_t until_ns);
void end_flow(struct sched *sched, uint64_t now_ns);
int flows_along(const struct sched *sched);

/* How busy the program keeps the device on its own; whether it is idle when a launch comes. */
void density_sample(struct sched *sched, uint32_t bp);
void note_dry(struct sched *sched, int in_flow, uint64_t now_ns);

/* Without a turn; what goes to the device then is told to those who have one. */
int goes_along(const struct sched *sched);
void intrude(const struct sched *sched, uint64_t busy_ns);

/* Launches are collected behind the gate, and run in one go. */
int collects(const struct sched *sched);

/* ---- sched.c --------------------------------------------------------------------------------------------- */

/* Nothing of ours is on the device; it begins with what comes now, at once or when it has changed contexts. */
int is_idle(const struct sched *sched, uint64_t now_ns);
void work_begins(struct sched *sched, uint64_t now_ns);

/* ---- backlog.c: launches behind the gate -------------------------------------------------------------- */

/* Puts a launch behind the gate: its chunk, or 0 when the backlog is full. *ret_first: the first one there. */
uint32_t backlog_add(struct sched *sched, uint64_t cost_ns, uint64_t now_ns, int *ret_first);
/* Opens closed chunks that fit into what is left of the lease; 1 when none is left closed. */
int backlog_open(struct sched *sched, uint64_t now_ns, uint64_t *ret_paid_ns);

/* Opens all of it, whoever has the device; returns the work. */
uint64_t backlog_open_all(struct sched *sched);

/* A light program's launches are collected: 0 = it is time to ask for a turn for them, else when it will be. */
uint64_t backlog_ripe_at(struct sched *sched, uint64_t now_ns);

/* ---- burst.c: what is launched between two waits ------------------------------------------------------- */

/* A launch goes behind the gate. Under the lock. */
void burst_launch(struct sched *sched, uint64_t now_ns);
/* The program waits for what it has launched. */
void burst_waits(struct sched *sched, uint64_t now_ns);
/* When to ask for a turn so that a burst is done when it is waited for; UINT64_MAX = not before that. */
uint64_t burst_ask_at(struct sched *sched);

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

/* ---- stretch.c: what was charged for a stretch of work, held against how long it took ------------------ */

/* A launch of own_ns goes to the device, which was dry or not, and is paid for. */
enum stretch stretch_step(struct sched *sched, uint32_t cap, uint64_t own_ns, int dry,
			  uint64_t now_ns);
/* The cap holds it back now: several streams' stretch is over. */
void stretch_pauses(struct sched *sched, uint64_t now_ns);
/* What was charged for it was a guess. `anew`: and the scale that was found is, too. */
void stretch_void(struct sched *sched, int anew);
/* What a capped program should save up before it goes on, so that a stretch runs without a pause; 0 = nothing. */
uint64_t stretch_batch_ns(const struct sched *sched, uint32_t cap, uint64_t cost_ns,
			  uint64_t now_ns);

#endif
