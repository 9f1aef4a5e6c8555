/*
 * SM time of one process on one device: meter, cap and turn behind the launch path.
 *
 * A launch is charged its cost (sched/costs.h) with one atomic add. Every SCHED_FLUSH_NS of charged time the
 * launching thread looks at the clock, pays into the group's bucket and checks the turn; in between it only
 * compares two words. The decision is returned, not acted upon: the hook waits on the host, or puts a gate
 * into the stream, and tests do neither.
 *
 * The gate. Launches are numbered in chunks of some SCHED_CHUNK_NS of predicted work. While the device is not ours
 * a launch is told its chunk, and the hook makes its stream wait until the word `open` (host memory that the
 * device can read) has reached it. sched_tick(), called by the service thread, takes the turn and opens as many
 * chunks as fit the lease, with plain stores: no driver call, hence no deadlock with a program thread that holds
 * a driver lock. docs/sm-time.md has the measurements.
 *
 * Threads: sched_flows() and sched_admit() on any thread, sched_tick() on the service thread. The lock (rank SCHED,
 * inside no other, never across a driver call) guards the chunk ring.
 */
#ifndef CUOTA_SCHED_SCHED_H
#define CUOTA_SCHED_SCHED_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/config.h"
#include "ledger/ledger.h"
#include "sched/costs.h"
#include "sched/demand.h"
#include "sched/turns.h"

#define SCHED_FLUSH_NS	    50000u  /* charged time between looks at the clock, */
#define SCHED_FLUSH_FREE_NS 200000u /* while nobody else is there and the cap is far away */
#define SCHED_NS_BITS	    44u	    /* 4.8 hours of charged time between two payments */
#define SCHED_NS_MASK	    ((1ull << SCHED_NS_BITS) - 1)
#define SCHED_CHUNK_NS	    250000u /* predicted work per gate chunk */
#define SCHED_CHUNKS	    1024u   /* closed chunks that can be told apart */
#define SCHED_LANES	    32u	    /* marks are ordered within a stream only */
#define SCHED_MARKS	    256u    /* marks under way that can be told apart */
#define SCHED_LATE_NS	    50000u  /* a mark later than this moves the predicted end */
#define SCHED_EARLY_NS \
	1000000u /* marks due later than this are looked at once in it all the same */
#define SCHED_STUCK_NS \
	1000000u /* late by so much, and SCHED_HANG_TIMES as long as the work: it hangs */
#define SCHED_HANG_NS \
	50000000u /* what is later than this, and than many times its length, waits for */
#define SCHED_HANG_TIMES   8u /* something else: perhaps for what the program has still to launch */
#define SCHED_POLL_NS	   40000u   /* how often the last mark is looked for */
#define SCHED_SYNC_LOOK_NS 1000000u /* and so much later when the program itself waits for it */
#define SCHED_QUEUE_MAX	   600u /* launches behind closed gates: the driver queues about 1,000 */
#define SCHED_LAUNCH_NS \
	900u /* from what a pair of events reads to the next kernel of the stream (H200): part of the cost, */
#define SCHED_GAP_NS \
	600u /* and of that, what no profiler counts as the kernel's: not of what the meter shows */
#define SCHED_BATCH_NS 3000000u /* saved up before a capped group competes for a turn again */
#define SCHED_MANY     64u
#define SCHED_BATCH_AGE_NS \
	2000000u /* a light program's launches are collected for so long at most, */
#define SCHED_BATCH_QUIET_NS \
	300000u /* or until none came for so long: the host waits in some way of its own */
#define SCHED_BATCH_WORK_NS 1000000u /* or until they are so much work */
#define SCHED_BATCH_MOST    400u     /* or so many */
#define SCHED_ONE	    65536u
#define SCHED_SEEN_NS	    2500000u /* a shorter stretch of work tells too little about its length */
#define SCHED_PROBE_NS \
	200000000u /* of every SCHED_PROBE_GAP_NS a capped program's streams may run together */
#define SCHED_PROBE_GAP_NS 2000000000u
enum { SCHED_STRETCH_NONE, SCHED_STRETCH_BEGUN, SCHED_STRETCH_ENDED };
#define SCHED_LUMPS_NS 10000000u /* several streams under a cap: work comes at least that often */
#define SCHED_OVERDUE_NS \
	10000000u /* since a launch came the long way: what its kind takes is looked at again */
#define SCHED_IDLE_FLUSH_NS 2000000u /* a charge left pending is paid after this */

struct sched {
	/* One cache line, which is all that most launches touch here. */
	_Alignas(64) _Atomic uint64_t
		pending; /* charged, not yet paid: ns, and the number of launches above SCHED_NS_BITS */
	_Atomic uint64_t *owner; /* the ledger's turn word, or `nobody` when there are no turns */
	_Atomic uint64_t
		flowing; /* what *owner reads while launches may flow; never a valid word else */
	_Atomic uint32_t flush_ns; /* SCHED_FLUSH_NS, or SCHED_FLUSH_FREE_NS */
	/* Does waiting for one stream wait for all? Hints, written without a lock by launching threads. */
	const void *_Atomic last_stream;
	_Atomic uint32_t
		many_streams; /* counts down from SCHED_MANY while all launches go to one stream */
	_Atomic uint32_t several; /* the same, but for one that has changed its stream once */
	_Atomic uint32_t
		scale; /* SCHED_ONE: a launch costs what it takes; less: several run side by side */

	struct member *member;
	struct group_sm *group_sm;
	struct slot_sm *slot_sm;
	struct turns turns;
	int use_turns;	      /* else caps by rate only */
	int capping;	      /* 0: CUOTA_SCHED=off, metering only */
	uint32_t cap_seen_bp; /* what the cap was at the last tick */

	_Atomic uint32_t
		waiting; /* a charged launch waits on the host: what is pending is not on the device */
	_Atomic uint64_t last_flush_ns;
	_Atomic uint64_t admitted_ns; /* when a launch last came the long way, and went */
	_Atomic uint32_t
		waits_for_all;	 /* when it last waited for the device, nothing was left on it */
	_Atomic uint64_t nobody; /* stays 0 */
	_Atomic uint64_t clean;	 /* see struct turns */

	/* The gate. */
	_Atomic uint32_t lock;
	_Atomic uint32_t *
		open; /* chunks up to this one may run; own word until the hook gives a pinned one */
	_Atomic uint32_t open_word;
	uint32_t chunk;				  /* being filled */
	uint64_t chunk_ns;			  /* predicted work in it */
	_Atomic uint32_t closed_launches;	  /* behind the gate; read without the lock */
	uint64_t closed_since_ns, closed_last_ns; /* when the first of them came, and the last */
	uint32_t ring_launches[SCHED_CHUNKS];
	uint64_t ring_ns[SCHED_CHUNKS];
	uint64_t closed_ns; /* predicted work behind the gate */

	/* Marks: while others compete, the stream writes a number after every SCHED_CHUNK_NS of work, so that
	 * late work is known to be late (predictions alone never notice that the device was shared). */
	_Atomic uint32_t
		*lanes; /* per lane of streams, the last mark passed: pinned memory, like `open` */
	_Atomic uint32_t lane_words[SCHED_LANES];
	uint32_t mark;			/* last one issued */
	uint32_t done;			/* all marks up to this one have been seen */
	uint8_t mark_lane[SCHED_MARKS]; /* SCHED_LANES: it is in none */
	_Atomic uint32_t ticking;	/* the service thread looks at marks */
	uint64_t issued_ns;		/* all predicted work ever handed to the driver */
	uint64_t marked_ns;		/* of it, up to the last mark */
	uint64_t late_ns;		/* how late the next mark is by now, in turns of ours */
	_Atomic uint32_t hangs;		/* so late that nothing more is held back for it */
	int stuck; /* the next mark is late enough to have been counted in slot_sm.hung */
	uint64_t mark_ns[SCHED_MARKS], mark_work_ns[SCHED_MARKS];

	/* Several streams: a stretch of work since when and since how much; how long it took, of what was charged (overlap.c). */
	uint64_t seen_at_ns, seen_ns;
	uint32_t seen_percent;
	_Atomic uint32_t alone_chances;

	/* A stretch that is timed as a whole (stretch.c). */
	_Atomic uint32_t stretch_state;
	_Atomic uint32_t stretch_tail; /* each launch of several streams is told about */
	uint64_t stretch_from_ns, stretch_ns;
	uint64_t stretch_began_ns,
		stretch_host_ns; /* the host's clock: since when, and how long it took to launch */
	uint64_t stretch_word;
	_Atomic uint64_t stretch_due_ns;
	uint64_t stretch_gap_ns;
	uint32_t stretch_good;

	/* The burst under way, and what others were like (burst.c). */
	_Atomic uint64_t burst_began_ns; /* 0: none */
	uint64_t burst_issued_ns, burst_wall_ns, burst_work_ns;
	_Atomic uint32_t
		burst_runs; /* the turn was asked for ahead of the wait, and is kept until then */

	/* How busy the program itself keeps the device while it is ours and no backlog helps: decides between
	 * gate and host wait. */
	_Atomic uint64_t flow_busy_ns, flow_began_ns;
	_Atomic uint32_t density_bp;
	uint32_t dry_share; /* launches that found the device idle, of 256 */

	struct demand demand;
	struct costs costs;
};

/* A stretch of work is timed as a whole (stretch.c): what to do around this launch. */
enum stretch {
	STRETCH_NOT,	      /* nothing */
	STRETCH_BEGINS,	      /* an event before it, */
	STRETCH_BEGINS_AFTER, /* or after it */
	STRETCH_ENDS,	      /* an event after it, in each stream the last one counts */
};

enum admission {
	ADMIT_GO, /* launch now */
	ADMIT_WAIT, /* host: sleep until ret->until_ns or a wake on slot_sm->turn_futex, then ask again */
	ADMIT_GATE, /* make the stream wait for chunk ret->chunk, then launch */
};

struct admit_result {
	uint64_t until_ns;
	uint32_t chunk;
	unsigned wake; /* slot + 1 of a process whose turn_futex to wake, or 0 */
	int kick;      /* wake our own service thread: it has a turn to take for us */
	uint32_t mark; /* make the stream write this to its lane after the launch; 0 = none */
	int dry;       /* ADMIT_GO: nothing of ours was on the device before */
	enum stretch stretch;
	int overdue; /* none has come the long way for a while: time this one */
};

void sched_init(struct sched *sched, struct member *member, enum sched_mode mode,
		int contexts_overlap);

/* After the member's seat may have moved: points at its new one. Service thread. */
void sched_rebind(struct sched *sched);

/* What a launch that takes `ns` on its own is charged: less where several run side by side. */
static inline uint64_t sched_scaled(const struct sched *sched, uint64_t ns)
{
	return ns * atomic_load_explicit(&sched->scale, memory_order_relaxed) / SCHED_ONE;
}

/* A launch goes to the stream of the one before, or to another. Hints: no lock. */
static inline void sched_same_stream(struct sched *sched)
{
	uint32_t many = atomic_load_explicit(&sched->many_streams, memory_order_relaxed);
	uint32_t several = atomic_load_explicit(&sched->several, memory_order_relaxed);

	if (many)
		atomic_store_explicit(&sched->many_streams, many - 1, memory_order_relaxed);
	if (several)
		atomic_store_explicit(&sched->several, several - 1, memory_order_relaxed);
	if (several == 1)
		atomic_store_explicit(&sched->scale, SCHED_ONE, memory_order_relaxed);
}

static inline void sched_other_stream(struct sched *sched)
{
	if (atomic_load_explicit(&sched->many_streams, memory_order_relaxed))
		atomic_store_explicit(&sched->several, SCHED_MANY, memory_order_relaxed);
	atomic_store_explicit(&sched->many_streams, SCHED_MANY, memory_order_relaxed);
}

/* 1 when a launch may go at once, which is then charged; 0: nothing has happened. */
static inline int sched_goes(struct sched *sched, uint64_t cost_ns)
{
	uint64_t pending = atomic_load_explicit(&sched->pending, memory_order_relaxed);

	if ((pending & SCHED_NS_MASK) + cost_ns >=
		    atomic_load_explicit(&sched->flush_ns, memory_order_relaxed) ||
	    atomic_load_explicit(sched->owner, memory_order_relaxed) !=
		    atomic_load_explicit(&sched->flowing, memory_order_relaxed))
		return 0;
	atomic_fetch_add_explicit(&sched->pending, cost_ns + (1ull << SCHED_NS_BITS),
				  memory_order_relaxed);
	return 1;
}

/* Charges a launch; 1 when it may go at once (the common case: an add, two loads). */
static inline int sched_flows(struct sched *sched, uint64_t cost_ns)
{
	uint64_t add = cost_ns + (1ull << SCHED_NS_BITS);
	uint64_t pending =
		atomic_fetch_add_explicit(&sched->pending, add, memory_order_relaxed) + add;

	return (pending & SCHED_NS_MASK) <
		       atomic_load_explicit(&sched->flush_ns, memory_order_relaxed) &&
	       atomic_load_explicit(sched->owner, memory_order_relaxed) ==
		       atomic_load_explicit(&sched->flowing, memory_order_relaxed);
}

/*
 * The slow path, after sched_flows() said 0: pays what is pending and decides. `cost_ns` is the launch's own
 * (already charged), `lane` its stream's (below SCHED_LANES). can_gate: the stream can take a gate. Ask again
 * after ADMIT_WAIT.
 */
enum admission sched_admit(struct sched *sched, uint64_t cost_ns, unsigned lane, uint64_t now_ns,
			   int can_gate, struct admit_result *ret);

/*
 * Around a host call that waits for the device: others then know that late work is not done work. all_done: when it
 * returned, nothing of this process was left on the device. sched_sync_begin() returns 1 when what is waited for stands
 * behind a gate that sched_open() may open.
 */
int sched_sync_begin(struct sched *sched, uint64_t now_ns);
unsigned sched_sync_end(struct sched *sched, uint64_t now_ns,
			int all_done); /* slot + 1 to wake, or 0 */

/*
 * As the service thread would: takes the turn for what is behind the gate and opens it, if that is right now. 1 when nothing
 * is left closed; else the service thread goes on, and should be kicked. *ret_wake as in struct admit_result.
 */
int sched_open(struct sched *sched, uint64_t now_ns, unsigned *ret_wake);

/* No stream will write this mark after all: it is not waited for. */
void sched_mark_lost(struct sched *sched, uint32_t mark);

/* Moves the words to memory that the device can reach; keeps their values. */
void sched_move_words(struct sched *sched, _Atomic uint32_t *open, _Atomic uint32_t *lanes);

/* Opens all that is closed, in the words used now, and goes on with words of our own. */
void sched_own_words(struct sched *sched);

/*
 * 1 when a launch that can be timed alone should be: the host then waits for it. Seldom where kernels of several streams
 * run side by side, since nothing runs beside it.
 */
int sched_times_alone(struct sched *sched);

/*
 * A stretch came back: its work took took_ns from the first event to the last; 0 = it could not be timed.
 */
void sched_stretch(struct sched *sched, uint64_t took_ns, uint64_t now_ns);
/* Not with this launch, which is timed by itself; another may begin one. */
void sched_stretch_cancel(struct sched *sched);
/* 1 when a stretch that is timed has come to its end: sched_stretch() should follow. */
static inline int sched_stretch_ended(const struct sched *sched)
{
	return atomic_load_explicit(&sched->stretch_state, memory_order_acquire) ==
	       SCHED_STRETCH_ENDED;
}

/* 1 while each launch may be the last of its stream in a stretch that is timed. */
static inline int sched_stretch_tail(const struct sched *sched)
{
	return atomic_load_explicit(&sched->stretch_tail, memory_order_relaxed) != 0;
}

/* A sample came back: corrects the account by delta_ns (as it takes on its own). */
void sched_correct(struct sched *sched, int64_t delta_ns, uint64_t now_ns);

/*
 * Service thread: takes turns for gated work, opens chunks, pays what was left pending. Returns when it wants
 * to be called again (0 = only when kicked). *ret_wake as in struct admit_result.
 */
uint64_t sched_tick(struct sched *sched, uint64_t now_ns, unsigned *ret_wake);

/* 1 when all that was paid for is expected to be done at `at_ns`. */
static inline int sched_done_by(const struct sched *sched, uint64_t at_ns)
{
	return atomic_load_explicit(&sched->slot_sm->busy_until_ns, memory_order_relaxed) <= at_ns;
}

/* 1 when another process may have the device, now or by turns. */
int sched_is_shared(const struct sched *sched);

/* Who has the device when a kernel is timed. */
struct company {
	uint64_t word; /* 0: others may have it; the same later: none had meanwhile but for */
	uint64_t intruded_ns; /* those who went along */
	uint64_t at_ns;
};

struct company sched_company(const struct sched *sched, uint64_t now_ns);
/*
 * A kernel was timed: learns its cost and corrects the account. `then` is what sched_company() said before it was launched, all
 * zero when other streams of this process were on the device.
 */
void sched_sampled(struct sched *sched, struct cost *cost, uint64_t measured_ns,
		   uint64_t charged_ns, const struct company *then, uint64_t now_ns);
/* 1 when the program keeps the device busy on its own: waiting on the host then costs it nothing. */
int sched_is_dense(const struct sched *sched);

#endif
