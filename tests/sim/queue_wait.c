/*
 * Waiting for what stands in streams. While it is up to the device, the look-ahead of its timeline
 * says how long at least: sleep most of that, spin the rest. While it is up to a closed wait or a
 * host function, sleep until something moves.
 */
#include "sim.h"

#include <sched.h>
#include <time.h>

#define REAP_EVERY_NS 1000000ull

void queue_nap(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000ull), (long)(ns % 1000000000ull)};
	nanosleep(&t, NULL);
}

uint64_t queue_estimate(struct stream *stream, uint64_t seq)
{
	uint64_t number = stream->retired;
	const struct op *last = NULL;
	for (const struct op *op = stream->head; op && number < seq; op = op->next, number++) {
		if (!op->submitted)
			return QUEUE_UNKNOWN;
		if (op_takes_device(op) && !op->done_ns)
			last = op;
	}
	if (!last)
		return QUEUE_UNKNOWN;
	state_lock();
	uint64_t when = time_look_ahead(stream->context->host->shared, last->place);
	state_unlock();
	return when;
}

/* A dead neighbour's work must not keep the device busy. */
static void reap_now_and_then(uint64_t now)
{
	static __thread uint64_t last_ns;
	if (now - last_ns < REAP_EVERY_NS)
		return;
	last_ns = now;
	state_lock();
	state_reap();
	state_unlock();
}

/* Waits until something moves; the pump looks after what must move by itself. */
static void wait_for_change(void)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(REAP_EVERY_NS / 2);
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_clockwait(&queue_changed, &core_lock, CLOCK_MONOTONIC, &until);
}

/* Sleeps coarsely, then spins. */
static void sleep_until(uint64_t when_ns)
{
	uint64_t now = time_now_ns();
	if (when_ns > now + 2 * REAP_EVERY_NS)
		when_ns = now + 2 * REAP_EVERY_NS;
	if (when_ns > now + 120000)
		queue_nap(when_ns - now - 70000);
	while (time_now_ns() < when_ns)
		sched_yield();
}

void queue_wait(struct stream *stream, uint64_t seq)
{
	pthread_mutex_lock(&core_lock);
	for (;;) {
		queue_progress(stream->context);
		if (stream->retired >= seq)
			break;
		queue_pause(queue_estimate(stream, seq));
	}
	pthread_mutex_unlock(&core_lock);
	pools_settle();
}

void queue_pause(uint64_t when_ns)
{
	if (when_ns == QUEUE_UNKNOWN) {
		wait_for_change();
	} else {
		pthread_mutex_unlock(&core_lock);
		sleep_until(when_ns);
		pthread_mutex_lock(&core_lock);
	}
	reap_now_and_then(time_now_ns());
}

/* The first stream that still has something, and how much: NULL when all is done. */
static struct stream *busy_stream(struct context *context, const uint64_t *ids, uint64_t *seqs,
				  size_t count)
{
	for (struct stream *s = context->host->streams; s; s = s->next)
		for (size_t i = 0; i < count; i++)
			if (s->id == ids[i] && s->retired < seqs[i])
				return s;
	return NULL;
}

void queue_wait_context(struct context *context)
{
	enum { MOST = 512 };
	uint64_t ids[MOST], seqs[MOST];
	size_t count = 0;
	pthread_mutex_lock(&core_lock);
	queue_progress(context);
	for (struct stream *s = context->host->streams; s && count < MOST; s = s->next) {
		if (!s->head || (context->green && s->context != context))
			continue;
		ids[count] = s->id;
		seqs[count++] = s->enqueued;
	}
	struct stream *s;
	while ((s = busy_stream(context, ids, seqs, count))) {
		queue_pause(queue_estimate(s, s->enqueued));
		queue_progress(context);
	}
	pthread_mutex_unlock(&core_lock);
	pools_settle();
}
