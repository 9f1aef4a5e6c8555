/*
 * Device time, computed instead of spent: no thread executes anything. Whoever enters the driver
 * moves the devices' timelines up to the present (time_advance); as work can only be added in the
 * present, what has been computed stays true.
 *
 * The rules, all measured on the card:
 *  - work of one context runs in order, one operation at a time;
 *  - contexts alternate round robin; a slice ends after slice_ns if another context has work, at
 *    once if the runner has none; a switch costs switch_ns, a tenth less when the runner was dry;
 *  - an idle context costs nothing; one whose streams stand at a closed wait costs the runner
 *    5.5 % of each slice;
 *  - with MPS, contexts do not see each other at all.
 */
#include "shared_state.h"

#include <string.h>
#include <time.h>

#define NEVER		 UINT64_MAX
#define BUCKET_NS	 166666667ull
#define LOOK_AHEAD_STEPS 4096

/* A timeline and the cursors it moves: the shared ones, or copies that look ahead. */
struct run {
	struct sim_device *device;
	struct sim_line *line;
	struct sim_cursor *cursor;
	uint64_t *active;
	bool real; /* write completion times and busy time */
};

uint64_t time_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static struct sim_item *item_at(uint32_t context, uint64_t place)
{
	return &sim_shared->context[context].ring[place % SIM_RING];
}

static uint64_t arrival(const struct run *r, uint32_t context)
{
	return item_at(context, r->cursor[context].next)->arrive_ns;
}

static bool is_active(const struct run *r, uint32_t context)
{
	return (r->active[context / 64] >> (context % 64)) & 1;
}

/* The next context after `from`, round robin and itself left out, whose work has arrived. */
static uint32_t next_runnable(const struct run *r, uint32_t from, uint64_t now,
			      uint64_t *ret_arrival)
{
	uint32_t words = (sim_shared->context_top + 63) / 64;
	uint32_t best = 0, best_turn = UINT32_MAX;
	*ret_arrival = NEVER;
	for (uint32_t w = 0; w < words; w++) {
		for (uint64_t bits = r->active[w]; bits; bits &= bits - 1) {
			uint32_t c = w * 64 + (uint32_t)__builtin_ctzll(bits);
			if (c + 1 == from)
				continue;
			uint64_t when = arrival(r, c);
			uint32_t turn = (c + 1 + SIM_MAX_CONTEXTS - from) % SIM_MAX_CONTEXTS;
			if (when > now) {
				if (when < *ret_arrival)
					*ret_arrival = when;
			} else if (turn < best_turn) {
				best_turn = turn;
				best = c + 1;
			}
		}
	}
	return best;
}

static void finish_item(struct run *r, uint32_t context, uint64_t now)
{
	struct sim_cursor *cursor = &r->cursor[context];
	if (r->real)
		item_at(context, cursor->next)->done_ns = now;
	cursor->next++;
	cursor->free_ns = now;
	if (cursor->next == sim_shared->context[context].tail)
		r->active[context / 64] &= ~(1ull << (context % 64));
	else
		cursor->left_ns = item_at(context, cursor->next)->cost_ns;
}

static void account(struct run *r, uint32_t context, uint64_t ran_ns)
{
	if (!r->real)
		return;
	uint32_t process = sim_shared->context[context].process;
	uint32_t device = sim_shared->context[context].device;
	r->device->busy_ns += ran_ns;
	if (process)
		sim_shared->process[process - 1].usage[device].busy_ns += ran_ns;
}

static bool others_blocked(const struct run *r, uint32_t context)
{
	uint32_t device = (uint32_t)(r->device - sim_shared->device);
	for (uint32_t c = 0; c < sim_shared->context_top; c++)
		if (c != context && sim_shared->context[c].process &&
		    sim_shared->context[c].device == device && sim_shared->context[c].blocked)
			return true;
	return false;
}

static void begin_switch(struct run *r, uint32_t incoming, uint64_t cost_ns)
{
	r->line->incoming = incoming;
	r->line->switch_end_ns = r->line->now_ns + cost_ns;
}

/* The slice is over and nobody else wants the device: polling a closed wait may still take some. */
static void renew_slice(struct run *r, uint32_t context)
{
	uint64_t slice = sim_shared->machine.slice_ns;
	if (r->line->now_ns < r->line->slice_end_ns + slice && others_blocked(r, context))
		begin_switch(r, context + 1, slice * 55 / 1000);
	else
		r->line->slice_end_ns = r->line->now_ns + slice;
}

/* Runs the current context's first item until it ends, or until something else may happen. */
static void run_current(struct run *r, uint32_t context, uint64_t stop)
{
	struct sim_line *line = r->line;
	struct sim_cursor *cursor = &r->cursor[context];
	uint64_t end = line->now_ns + cursor->left_ns;
	uint64_t to = end < stop ? end : stop;
	account(r, context, to - line->now_ns);
	cursor->left_ns -= to - line->now_ns;
	line->now_ns = to;
	if (!cursor->left_ns)
		finish_item(r, context, to);
}

static void step(struct run *r, uint64_t until)
{
	struct sim_line *line = r->line;
	if (line->incoming) {
		if (line->switch_end_ns > until) {
			line->now_ns = until;
			return;
		}
		if (line->switch_end_ns > line->now_ns)
			line->now_ns = line->switch_end_ns;
		line->current = line->incoming;
		line->incoming = 0;
		line->slice_end_ns = line->now_ns + sim_shared->machine.slice_ns;
		return;
	}

	uint64_t soonest;
	uint32_t other = next_runnable(r, line->current, line->now_ns, &soonest);
	uint32_t current = line->current ? line->current - 1 : 0;
	bool have = line->current && is_active(r, current);
	if (have && arrival(r, current) > line->now_ns) {
		if (arrival(r, current) < soonest)
			soonest = arrival(r, current);
		have = false;
	}
	if (!have) {
		if (other)
			begin_switch(r, other,
				     !line->current ? 0 : sim_shared->machine.switch_ns * 9 / 10);
		else
			line->now_ns = soonest < until ? soonest : until;
		return;
	}
	if (line->now_ns >= line->slice_end_ns) {
		if (other)
			begin_switch(r, other, sim_shared->machine.switch_ns);
		else
			renew_slice(r, current);
		return;
	}
	uint64_t stop = until < line->slice_end_ns ? until : line->slice_end_ns;
	if (!other && soonest < stop)
		stop = soonest;
	run_current(r, current, stop);
}

/* Under MPS every context has the device to itself. */
static void run_apart(struct run *r, uint64_t until)
{
	uint32_t words = (sim_shared->context_top + 63) / 64;
	for (uint32_t w = 0; w < words; w++) {
		for (uint64_t bits = r->active[w]; bits; bits &= bits - 1) {
			uint32_t c = w * 64 + (uint32_t)__builtin_ctzll(bits);
			while (is_active(r, c)) {
				struct sim_cursor *cursor = &r->cursor[c];
				uint64_t start = arrival(r, c);
				if (start < cursor->free_ns)
					start = cursor->free_ns;
				uint64_t cost = item_at(c, cursor->next)->cost_ns;
				if (start + cost > until)
					break;
				account(r, c, cost);
				finish_item(r, c, start + cost);
			}
		}
	}
	r->line->now_ns = until;
}

static void fill_buckets(uint32_t device, uint64_t now)
{
	struct sim_device *d = &sim_shared->device[device];
	if (now < d->bucket_start_ns + BUCKET_NS)
		return;
	uint64_t span = now - d->bucket_start_ns;
	uint64_t pct = (d->busy_ns - d->bucket_busy_ns) * 100 / span;
	d->last_busy_pct = pct > 100 ? 100 : (uint32_t)pct;
	d->bucket_busy_ns = d->busy_ns;
	for (uint32_t p = 0; p < sim_shared->process_top; p++) {
		struct sim_usage *usage = &sim_shared->process[p].usage[device];
		pct = (usage->busy_ns - usage->bucket_busy_ns) * 100 / span;
		usage->last_busy_pct = pct > 100 ? 100 : (uint32_t)pct;
		usage->bucket_busy_ns = usage->busy_ns;
	}
	d->bucket_start_ns = now;
}

void time_advance(uint32_t device, uint64_t now_ns)
{
	struct sim_device *d = &sim_shared->device[device];
	struct run r = {d, &d->line, sim_shared->cursor, d->active, true};
	if (sim_shared->machine.mps)
		run_apart(&r, now_ns);
	while (d->line.now_ns < now_ns)
		step(&r, now_ns);
	fill_buckets(device, now_ns);
}

uint64_t time_push(uint32_t context, uint64_t arrive_ns, uint64_t cost_ns)
{
	struct sim_context *c = &sim_shared->context[context];
	struct sim_device *d = &sim_shared->device[c->device];
	uint64_t place = c->tail;
	struct sim_item *item = item_at(context, place);
	*item = (struct sim_item){arrive_ns, cost_ns, 0};
	if (sim_shared->cursor[context].next == place)
		sim_shared->cursor[context].left_ns = cost_ns;
	c->tail = place + 1;
	d->active[context / 64] |= 1ull << (context % 64);
	return place;
}

uint64_t time_look_ahead(uint32_t context, uint64_t place)
{
	static __thread struct sim_cursor cursors[SIM_MAX_CONTEXTS];
	static __thread uint64_t active[SIM_ACTIVE_WORDS];
	struct sim_device *d = &sim_shared->device[sim_shared->context[context].device];
	struct sim_line line = d->line;
	struct run r = {d, &line, cursors, active, false};

	if (sim_shared->cursor[context].next > place)
		return line.now_ns;
	memcpy(active, d->active, sizeof(active));
	memcpy(cursors, sim_shared->cursor, sizeof(cursors[0]) * sim_shared->context_top);
	if (sim_shared->machine.mps) {
		uint64_t when = cursors[context].free_ns;
		for (uint64_t i = cursors[context].next; i <= place; i++) {
			const struct sim_item *item = item_at(context, i);
			when = (when > item->arrive_ns ? when : item->arrive_ns) + item->cost_ns;
		}
		return when;
	}
	for (int i = 0; i < LOOK_AHEAD_STEPS && cursors[context].next <= place; i++)
		step(&r, NEVER);
	return line.now_ns;
}

void time_forget(uint32_t context)
{
	struct sim_context *c = &sim_shared->context[context];
	struct sim_device *d = &sim_shared->device[c->device];
	c->tail = 0;
	c->blocked = 0;
	sim_shared->cursor[context] = (struct sim_cursor){0};
	d->active[context / 64] &= ~(1ull << (context % 64));
	if (d->line.current == context + 1)
		d->line.current = 0;
	if (d->line.incoming == context + 1)
		d->line.incoming = 0;
}
