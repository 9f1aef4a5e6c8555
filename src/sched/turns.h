/*
 * Turns: who has the device. Without MPS the kernels of two processes never overlap; the driver alternates
 * contexts and pays some 0.15 ms whenever one runs dry or its slice ends. Exclusive turns of a few
 * milliseconds keep almost all of the device (docs/sm-time.md).
 *
 * The turn is one word in the ledger: epoch and slot. Nobody hands it over and nobody has to: whoever wants
 * it looks, at instants that it can compute itself, whether the holder is dry (its predicted work is done), its
 * lease is over, or it is dead or stopped, and takes it with one compare-and-swap. So no step waits for
 * another process to act, and since "done" is a prediction, a kernel that waits for a peer merely
 * shares the device with it for a while instead of deadlocking.
 *
 * Who is next: the highest priority, then the group with the least busy time per weight, then the member
 * with the least.
 *
 * Pure functions of the ledger and the time; no CUDA, no waiting.
 */
#ifndef CUOTA_SCHED_TURNS_H
#define CUOTA_SCHED_TURNS_H

#include <stdint.h>

#include "ledger/ledger.h"

#define TURN_QUANTUM_NS	     10000000ull /* lease while others want the device */
#define TURN_QUANTUM_MIN_NS  2000000ull /* and while one of them is far behind: it seldom wants it */
#define TURN_QUANTUM_HIGH_NS 500000ull	/* and while a group of higher priority does */
#define TURN_GRACE_NS \
	40000ull /* a gap shorter than this is not dry: a launch-and-wait
					    loop leaves some 10 us */
#define TURN_GRACE_HIGH_NS \
	200000ull /* of a group of higher priority: its next launch should not wait again */
#define TURN_SYNC_GRACE_NS \
	500000ull /* while a thread of the holder waits for the device, its work is
					    late rather than done: another context ran meanwhile */
#define TURN_AHEAD_NS	   1000000ull /* work the holder may have queued while others want the device */
#define TURN_AHEAD_HIGH_NS 200000ull	/* and next to a group of higher priority, gates or not */
#define TURN_HIGH_NS	   200000000ull /* it counts as being there for so long after it last asked */
#define TURN_MEMORY_NS \
	300000000ull /* leases go on for so long after somebody last asked: he may only rest */
#define TURN_POLL_NS 40000ull /* a waiter looks this often once the end is due */
#define TURN_SWITCH_NS \
	140000ull /* what the driver needs to change contexts: our work starts later */
#define TURN_SLICE_NS 2090000ull  /* and how long it leaves one while another has work */
#define TURN_DRAIN_NS 10000000ull /* past its lease by this, the device is shared */
#define TURN_HUNG_STEP \
	4u /* work that hangs counts so much, each mark that passes in time one less, */
#define TURN_HUNG_MOST (5 * TURN_HUNG_STEP) /* at most this */
#define TURN_MARGIN_NS 15000ull		    /* by which a predicted end may be wrong */
#define TURN_SLOW_NS   500000ull   /* a chosen successor that does not act is passed over */
#define TURN_LAG_NS    10000000ull /* how far behind the present a group may start, per weight 100 */
#define TURN_REFUND_NS 500000000ull /* and how far what it was overcharged may take it back */

struct turns {
	const struct ledger *ledger;
	struct ledger_file *file; /* ledger->file */
	unsigned slot;
	_Atomic uint64_t *
		clean; /* the owner word of our last turn that began on an idle device; may be NULL */
};

enum turn_state {
	TURN_HELD, /* the device is ours; ret word is the owner word to compare with */
	TURN_WAIT, /* not ours: look again at *ret_look_ns or when woken */
};

/*
 * Takes the turn if that is right now, or says when to look again. Sets and clears our want flag.
 * *ret_word: the owner word when held. *ret_wake: slot + 1 of a waiter that the caller should wake
 * (FUTEX_WAKE on its turn_futex after bumping it), or 0.
 */
enum turn_state turn_try(const struct turns *turns, uint64_t now_ns, uint64_t *ret_word,
			 uint64_t *ret_look_ns, unsigned *ret_wake);

/* The holder looks: 1 when its lease is over and somebody else comes first. Renews it otherwise. */
int turn_must_yield(const struct turns *turns, uint64_t now_ns, unsigned *ret_wake);

int turn_is_ours(const struct turns *turns);

/* 1 when the device is another's who comes no higher than we, and keeps it filled. */
int turn_holder_is_deep(const struct turns *turns);
/* The owner word while the turn is ours and began when its last holder was done, else 0: nobody else's kernels run. */
uint64_t turn_alone(const struct turns *turns);

/* How far ahead of the device we may queue: the whole lease, or little next to a higher priority. */
uint64_t turn_ahead_ns(const struct turns *turns, uint64_t now_ns);

/* 1 when some other process wants the device or holds it. */
int turn_contended(const struct turns *turns);

/*
 * The holder asks before it queues more: 0 = go on, else when to ask again. Work is queued up to the end of the lease
 * when what exceeds it can stand at a gate; a holder that waits on the host keeps TURN_AHEAD_NS under way.
 */
uint64_t turn_room_at(const struct turns *turns, uint64_t now_ns, int can_gate);

/*
 * The group waits for its cap: whoever is next may come as soon as our work is done. *ret_wake: the first in line, who
 * should look again, when the turn is ours. turn_resume() ends it.
 */
void turn_rest(const struct turns *turns, unsigned *ret_wake);
void turn_resume(const struct turns *turns);

/*
 * A request is served: slot + 1 of who should look, when that is somebody of lower priority (who would else sleep until
 * we are late); 0 otherwise, since a loop that launches and waits would wake its neighbours at every turn.
 */
unsigned turn_done(const struct turns *turns);

/* Takes back our want flag (a waiter gave up). */
void turn_forget(const struct turns *turns);

/* Charges busy time (negative: a correction) against the virtual clocks of group and member. */
void turn_charge(const struct turns *turns, int64_t busy_ns);

#endif
