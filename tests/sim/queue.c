/*
 * Operations in streams. A stream is a list in order; operations leave it in three steps:
 *  submit: device work gets a place in its context's ring (shared state), where the timeline
 *          decides when it runs. Waits, host functions and joins hold back what is behind them.
 *  note:   the owner sees that a place is over, in ring order, and applies its effect (copies,
 *          event times, written values): all of a context's effects happen in device order.
 *  retire: operations at the head of their stream that are over are removed.
 * Whoever enters the driver does all three as far as the present allows (queue_progress); the
 * pump does so while nobody else would.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

enum { STREAM_ROOM = 1021 }; /* operations in one stream before launches wait (measured) */

#define POLL_NS 15000ull

static struct op *free_ops;
pthread_cond_t queue_changed = PTHREAD_COND_INITIALIZER;

struct op *op_new(enum op_kind kind, uint64_t cost_ns)
{
	pthread_mutex_lock(&core_lock);
	struct op *op = free_ops;
	if (op)
		free_ops = op->next;
	pthread_mutex_unlock(&core_lock);
	if (!op)
		op = malloc(sizeof(*op));
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->cost_ns = cost_ns;
	return op;
}

static void op_free(struct op *op)
{
	op->next = free_ops;
	free_ops = op;
}

/* ---- submit ---- */

bool op_takes_device(const struct op *op)
{
	return op->kind == OP_DEVICE || op->kind == OP_EVENT || op->kind == OP_WRITE_VALUE;
}

static void set_at_wait(struct stream *stream, bool at_wait)
{
	if (stream->at_wait == at_wait)
		return;
	stream->at_wait = at_wait;
	uint32_t *blocked = &sim_shared->context[stream->context->host->shared].blocked;
	*blocked += at_wait ? 1u : (*blocked ? UINT32_MAX : 0u);
}

/* Has the other stream come so far? It may have been destroyed since, when it was done. */
static bool other_reached(const struct op *op, bool retired)
{
	const struct stream *other = op->other;
	if (other->id != op->other_id)
		return true;
	return (retired ? other->retired : other->submitted) >= op->other_seq;
}

/* Kinds without device time: may what is behind them go on? */
static bool may_pass(struct stream *stream, struct op *op, uint64_t now)
{
	switch (op->kind) {
	case OP_WAIT_EVENT:
		if (event_done(op->event, op->generation))
			return true;
		return op->event->context->host == stream->context->host && op->other &&
		       other_reached(op, false);
	case OP_JOIN: return other_reached(op, false);
	case OP_WAIT_VALUE:
		if (stream->head != op || !wait_value_open(op))
			return false;
		op->done_ns = now;
		return true;
	case OP_HOST:
		if (op->finished)
			op->done_ns = now;
		return op->finished;
	default: return true;
	}
}

/* Needs the shared lock too. True when something moved. */
static bool submit(struct stream *stream, uint64_t now)
{
	struct context *host = stream->context->host;
	bool moved = false;
	for (struct op *op = stream->unsubmitted; op; op = op->next) {
		if (op_takes_device(op)) {
			if (sim_shared->context[host->shared].tail - host->noted >= SIM_RING)
				break;
			uint64_t arrive = now > op->arrive_ns ? now : op->arrive_ns;
			op->place = time_push(host->shared, arrive, op->cost_ns);
			host->in_ring[op->place % SIM_RING] = op;
		} else if (!may_pass(stream, op, now)) {
			set_at_wait(stream, op->kind == OP_WAIT_VALUE && stream->head == op);
			break;
		}
		if (op->kind == OP_WAIT_VALUE)
			set_at_wait(stream, false);
		op->submitted = true;
		stream->unsubmitted = op->next;
		stream->submitted++;
		moved = true;
	}
	return moved;
}

/* ---- note ---- */

static void apply(struct op *op)
{
	if (op->kind == OP_EVENT)
		event_retire(op);
	else if (op->kind == OP_WRITE_VALUE)
		wait_value_write(op);
	else if (op->effect)
		op->effect(op->data);
}

/* What ended since last time, in device order. Needs the shared lock too. */
static struct op *note(struct context *host)
{
	uint64_t next = sim_shared->cursor[host->shared].next;
	struct op *first = NULL, **last = &first;
	for (; host->noted < next; host->noted++) {
		struct op *op = host->in_ring[host->noted % SIM_RING];
		op->done_ns = sim_shared->context[host->shared].ring[op->place % SIM_RING].done_ns;
		*last = op;
		last = &op->next_done;
	}
	*last = NULL;
	return first;
}

/* ---- retire ---- */

static bool is_over(const struct op *op)
{
	switch (op->kind) {
	case OP_WAIT_EVENT: return event_done(op->event, op->generation);
	case OP_JOIN: return other_reached(op, true);
	default: return op->done_ns != 0;
	}
}

static bool retire(struct stream *stream)
{
	bool moved = false;
	while (stream->head && stream->head->submitted && is_over(stream->head)) {
		struct op *op = stream->head;
		stream->head = op->next;
		if (!stream->head)
			stream->tail = NULL;
		if (op->done_ns)
			stream->last_done_ns = op->done_ns;
		if (op->kind == OP_WAIT_EVENT)
			event_unpin(op->event);
		stream->retired++;
		op_free(op);
		moved = true;
	}
	return moved;
}

static void bury_streams(struct context *host)
{
	for (struct stream **at = &host->streams; *at;) {
		struct stream *s = *at;
		if (s->destroyed && !s->head) {
			*at = s->next;
			object_destroy(s);
		} else {
			at = &s->next;
		}
	}
}

void queue_progress(struct context *context)
{
	struct context *host = context->host;
	uint64_t now = time_now_ns();
	bool moved = true, any = false;
	for (; moved; any |= moved) {
		moved = false;
		state_lock();
		time_advance(sim_shared->context[host->shared].device, now);
		struct op *done = note(host);
		for (struct stream *s = host->streams; s; s = s->next)
			moved |= s->unsubmitted && submit(s, now);
		state_unlock();
		for (; done; done = done->next_done)
			apply(done);
		for (struct stream *s = host->streams; s; s = s->next)
			moved |= s->head && retire(s);
	}
	if (any)
		pthread_cond_broadcast(&queue_changed);
	bury_streams(host);
}

/* ---- adding ---- */

static void append(struct stream *stream, struct op *op)
{
	op->next = NULL;
	if (stream->tail)
		stream->tail->next = op;
	else
		stream->head = op;
	stream->tail = op;
	if (!stream->unsubmitted)
		stream->unsubmitted = op;
	stream->enqueued++;
	if (op_needs_pump(op))
		pump_wake();
}

static void join(struct stream *stream, struct stream *other)
{
	if (!other->unsubmitted)
		return;
	struct op *op = free_ops;
	if (op)
		free_ops = op->next;
	else
		op = malloc(sizeof(*op));
	memset(op, 0, sizeof(*op));
	op->kind = OP_JOIN;
	op->other = other;
	op->other_id = other->id;
	op->other_seq = other->enqueued;
	append(stream, op);
}

/* The legacy default stream and blocking streams wait for each other. */
static void join_default(struct stream *stream)
{
	struct context *context = stream->context;
	if (stream->is_legacy) {
		for (struct stream *s = context->host->streams; s; s = s->next)
			if (s != stream && s->context == context &&
			    !(s->flags & CU_STREAM_NON_BLOCKING))
				join(stream, s);
	} else if (!(stream->flags & CU_STREAM_NON_BLOCKING)) {
		join(stream, context->legacy);
	}
}

uint64_t queue_add(struct stream *stream, struct op *op)
{
	pthread_rwlock_rdlock(&driver_lock);
	pthread_mutex_lock(&stream->lock);
	for (;;) {
		pthread_mutex_lock(&core_lock);
		if (stream->enqueued - stream->retired < STREAM_ROOM)
			break;
		queue_progress(stream->context);
		if (stream->enqueued - stream->retired < STREAM_ROOM)
			break;
		pthread_mutex_unlock(&core_lock);
		queue_nap(POLL_NS);
	}
	join_default(stream);
	append(stream, op);
	uint64_t seq = stream->enqueued;
	queue_progress(stream->context);
	if (stream->unsubmitted)
		pump_wake();
	pthread_mutex_unlock(&core_lock);
	pthread_mutex_unlock(&stream->lock);
	pthread_rwlock_unlock(&driver_lock);
	return seq;
}

void queue_discard(struct context *context)
{
	for (struct stream *s = context->streams; s; s = s->next) {
		state_lock();
		set_at_wait(s, false);
		state_unlock();
		while (s->head) {
			struct op *op = s->head;
			s->head = op->next;
			if (op->kind == OP_EVENT && !op->done_ns)
				event_retire(op);
			if (op->kind == OP_WAIT_EVENT)
				event_unpin(op->event);
			op_free(op);
		}
		s->tail = s->unsubmitted = NULL;
	}
}
