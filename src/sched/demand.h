/*
 * How much of the device a process would use if it had it for itself; demand.c tells what it is for.
 */
#ifndef CUOTA_SCHED_DEMAND_H
#define CUOTA_SCHED_DEMAND_H

#include <stdatomic.h>
#include <stdint.h>

struct sched;

struct demand { /* Written by the service thread: the window that is being looked at. */
	uint64_t at_ns, seen_paid_ns, owed_ns;
	/* Threads that wait for the device, or for cap or turn: since when there are any, and in all in this window. */
	_Atomic uint64_t paid_ns; /* busy time as it was charged, later corrections left out */
	_Atomic uint32_t waiters;
	_Atomic uint64_t wait_since_ns, waited_ns;
	/* What follows. */
	_Atomic uint32_t free;	 /* all together need less than there is: no turns */
	_Atomic uint32_t light;	 /* our group needs less than its part */
	_Atomic uint32_t others; /* processes beside this one that use the device */
	_Atomic uint32_t above;	 /* and some are of a lower priority */
	_Atomic uint32_t seats;	 /* and that could begin to at any moment */
};

/* A thread begins to wait for the device, or is made to wait; it ends. */
void demand_wait_begins(struct sched *sched, uint64_t now_ns);
void demand_wait_ends(struct sched *sched, uint64_t now_ns);

/* Work goes to the device. After a rest nothing is known of the others: turns until the next look. */
void demand_works(struct sched *sched, uint64_t now_ns);

/* Service thread: looks at what the window says; returns when to be called again, 0 = not soon. */
uint64_t demand_look(struct sched *sched, uint64_t now_ns);

#endif
