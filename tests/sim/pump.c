/*
 * One helper thread per process, started by the first operation that needs it and asleep while
 * none is pending: it opens waits whose value was stored without a driver call, applies writes and
 * copies at their time, and runs host functions. Kernels and events alone do not need it.
 */
#include "sim.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static bool started, wanted;

#define STEP_NS	   10000ull
#define LONGEST_NS 1000000ull

bool op_needs_pump(const struct op *op)
{
	return op->kind != OP_EVENT && (op->kind != OP_DEVICE || op->effect);
}

static bool stream_needs_pump(const struct stream *stream)
{
	if (stream->unsubmitted)
		return true;
	for (const struct op *op = stream->head; op; op = op->next)
		if (op_needs_pump(op) && !op->done_ns)
			return true;
	return false;
}

/* A host function whose turn has come: everything before it in its stream is over. */
static struct op *next_host_function(struct stream **ret_stream)
{
	for (struct context *c = sim.contexts; c; c = c->next) {
		for (struct stream *s = c->streams; s; s = s->next) {
			if (!s->head || s->head->kind != OP_HOST || s->head->running)
				continue;
			*ret_stream = s;
			return s->head;
		}
	}
	return NULL;
}

/* Needs core_lock, which it leaves and retakes around each call. */
static void run_host_functions(void)
{
	struct stream *stream;
	struct op *op;
	while ((op = next_host_function(&stream))) {
		op->running = true;
		pthread_mutex_unlock(&core_lock);
		if (op->callback)
			op->callback((CUstream)stream, CUDA_SUCCESS, op->user);
		else
			op->host(op->user);
		pthread_mutex_lock(&core_lock);
		op->finished = true;
		queue_progress(stream->context);
	}
}

/*
 * How long to leave a closed wait alone: what was just closed may open any moment; what has been
 * closed for long costs less attention, and a hundredth of its time in delay.
 */
static uint64_t poll_interval(uint64_t now)
{
	static uint64_t closed_at, moved;
	uint64_t retired = 0;
	for (struct context *c = sim.contexts; c; c = c->next)
		for (struct stream *s = c->streams; s; s = s->next)
			retired += s->retired + s->submitted + s->enqueued;
	if (retired != moved) {
		moved = retired;
		closed_at = now;
	}
	uint64_t interval = (now - closed_at) / 100;
	return interval < STEP_NS ? STEP_NS : interval > 5 * STEP_NS ? 5 * STEP_NS : interval;
}

/* Moves everything; says when to look again, or 0 when nothing is pending. */
static uint64_t look(void)
{
	uint64_t now = time_now_ns();
	uint64_t when = 0;
	for (struct context *c = sim.contexts; c; c = c->next)
		if (c->host == c)
			queue_progress(c);
	run_host_functions();
	for (struct context *c = sim.contexts; c; c = c->next) {
		for (struct stream *s = c->streams; s; s = s->next) {
			if (!stream_needs_pump(s))
				continue;
			uint64_t then = queue_estimate(s, s->enqueued);
			if (then == QUEUE_UNKNOWN)
				then = now + poll_interval(now);
			if (then < now + STEP_NS / 2)
				then = now + STEP_NS / 2;
			if (!when || then < when)
				when = then;
		}
	}
	return when;
}

static void *pump(void *unused)
{
	(void)unused;
	prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
	prctl(PR_SET_NAME, "cuota-sim-pump", 0ul, 0ul, 0ul);
	pthread_mutex_lock(&core_lock);
	for (;;) {
		uint64_t when = look();
		if (!when) {
			wanted = false;
			while (!wanted)
				pthread_cond_wait(&wake, &core_lock);
			continue;
		}
		pthread_mutex_unlock(&core_lock);
		uint64_t now = time_now_ns();
		uint64_t sleep_ns = when > now ? when - now : 1000;
		if (sleep_ns > LONGEST_NS)
			sleep_ns = LONGEST_NS;
		struct timespec t = {0, (long)sleep_ns};
		nanosleep(&t, NULL);
		pthread_mutex_lock(&core_lock);
	}
	return NULL;
}

void pump_wake(void)
{
	if (!started) {
		pthread_t thread;
		pthread_attr_t attr;
		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		/* the program's signals are not for this thread */
		sigset_t all, old;
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		started = pthread_create(&thread, &attr, pump, NULL) == 0;
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		pthread_attr_destroy(&attr);
	}
	if (wanted)
		return;
	wanted = true;
	pthread_cond_signal(&wake);
}
