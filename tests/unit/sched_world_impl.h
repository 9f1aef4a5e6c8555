/* The model's moving parts; sched_world.h tells what is modelled. Included by one test file. */
#ifndef CUOTA_TESTS_SCHED_WORLD_IMPL_H
#define CUOTA_TESTS_SCHED_WORLD_IMPL_H

#define NEVER	   UINT64_MAX
#define SYNC_NS	   2500u  /* a wait's return after the last kernel */
#define WAKE_NS	   50000u /* a futex wake-up on a virtual machine */
#define SLICE_NS   2090000u
#define SWITCH_NS  140000u

void world_begin(struct world *w)
{
	struct error err;

	memset(w, 0, sizeof(*w));
	w->now = NS_PER_S;
	w->slice_ns = SLICE_NS;
	w->switch_ns = SWITCH_NS;
	w->current = -1;
	ck_assert_int_eq(ledger_open_private("GPU-00000000-0000-0000-0000-000000000000", &w->ledger, &err),
			 0);
	w->ledger.private_copy = 0; /* turns are wanted among the members of this process */
}

void world_end(struct world *w)
{
	for (unsigned i = 0; i < w->count; i++)
		ledger_leave(&w->p[i].member);
	ledger_close(&w->ledger);
}

struct process_model *world_add(struct world *w, const char *group, uint32_t cap_bp, uint32_t weight,
				enum quota_priority priority, enum sched_mode mode)
{
	struct process_model *p = &w->p[w->count++];
	struct quota asked = {0, 0, cap_bp, weight, priority};
	struct error err = {""};

	ck_assert_msg(ledger_join(&w->ledger, group, NULL, &asked, &p->member, &err) == 0, "%s", err.text);
	sched_init(&p->sched, &p->member, mode, 0);
	p->can_gate = 1;
	p->host_at = w->now + w->count;
	p->service_at = NEVER;
	return p;
}

void world_reset(struct world *w)
{
	for (unsigned i = 0; i < w->count; i++)
		w->p[i].busy_ns = w->p[i].launches = w->p[i].waited_ns = 0;
}

static int runnable(const struct process_model *p)
{
	const struct kernel *k = &p->queue[p->head % WORLD_QUEUE];

	return p->head != p->tail &&
	       (k->chunk == 0 || (int32_t)(atomic_load(p->sched.open) - k->chunk) >= 0);
}

static unsigned outstanding(const struct process_model *p)
{
	return p->tail - p->head;
}

/* The context that the device works for from now: round robin when the current is dry or its slice over. */
static void choose_context(struct world *w)
{
	int next = -1;

	if (w->now < w->switch_until)
		return;
	for (unsigned i = 1; i <= w->count; i++) {
		int at = (int)(((unsigned)(w->current < 0 ? 0 : w->current) + i) % w->count);

		if (at != w->current && runnable(&w->p[at])) {
			next = at;
			break;
		}
	}
	if (next < 0) {
		if (w->current < 0 && w->count && runnable(&w->p[0]))
			next = 0;
		else
			return;
	}
	if (w->current >= 0 && runnable(&w->p[w->current]) && w->now < w->slice_end)
		return;
	w->switch_until = w->current < 0 ? w->now : w->now + w->switch_ns;
	w->current = next;
	w->slice_end = w->switch_until + w->slice_ns;
}

/* When the device next finishes something or must choose again. */
static uint64_t device_next(const struct world *w)
{
	uint64_t end;

	if (w->current < 0)
		return NEVER;
	if (w->now < w->switch_until)
		return w->switch_until;
	if (!runnable(&w->p[w->current]))
		return NEVER;
	end = w->now + w->p[w->current].queue[w->p[w->current].head % WORLD_QUEUE].ns;
	if (w->slice_end > w->now && w->slice_end < end)
		end = w->slice_end;
	return end;
}

static void wake(struct world *w, unsigned slot_plus_one);

static void device_advance(struct world *w, uint64_t to)
{
	struct process_model *p;

	if (w->current < 0 || w->now < w->switch_until || !runnable(&w->p[w->current]))
		return;
	p = &w->p[w->current];
	p->busy_ns += to - w->now;
	p->queue[p->head % WORLD_QUEUE].ns -= to - w->now;
	if (p->queue[p->head % WORLD_QUEUE].ns == 0) {
		if (p->queue[p->head % WORLD_QUEUE].mark)
			atomic_store(&p->sched.lanes[0], p->queue[p->head % WORLD_QUEUE].mark);
		p->head++;
		if (p->host_at == NEVER && (p->depth ? outstanding(p) < p->depth : outstanding(p) == 0))
			p->host_at = to + SYNC_NS;
		if (p->host_at == to + SYNC_NS)
			wake(w, sched_sync_end(&p->sched, to, outstanding(p) == 0));
	}
}

/* The wake-ups that hooks and service threads do with futexes. */
static void wake(struct world *w, unsigned slot_plus_one)
{
	for (unsigned i = 0; slot_plus_one && i < w->count; i++) {
		struct process_model *p = &w->p[i];

		if (p->member.slot != slot_plus_one - 1)
			continue;
		if (p->service_at != NEVER - 1 && p->service_at > w->now + WAKE_NS)
			p->service_at = w->now + WAKE_NS;
		if (p->charged && p->host_at < NEVER - 1 && p->host_at > w->now + WAKE_NS)
			p->host_at = w->now + WAKE_NS;
	}
}

static void push(struct world *w, struct process_model *p, uint32_t chunk, uint32_t mark)
{
	ck_assert_uint_lt(outstanding(p), WORLD_QUEUE);
	p->queue[p->tail++ % WORLD_QUEUE] = (struct kernel){p->kernel_ns, chunk, mark};
	p->waited_ns += w->now - p->asked_at;
	p->launches++;
	p->in_burst++;
	p->charged = 0;
	p->host_at = w->now + p->launch_ns;
	if (!p->depth && p->in_burst >= p->burst) {
		p->in_burst = 0;
		p->thought = 0;
		p->host_at = NEVER; /* waits for the burst */
	} else if (p->depth && outstanding(p) >= p->depth) {
		p->host_at = NEVER;
	}
	if (p->host_at == NEVER)
		sched_sync_begin(&p->sched);
}

/* The launch hook: charge, then go, wait or gate. */
static void host_step(struct world *w, struct process_model *p)
{
	struct admit_result r;
	int sample;

	if (!p->charged) {
		struct cost *cost = costs_find(&p->sched.costs, 77);

		if (!p->depth && p->in_burst == 0 && p->think_ns && !p->thought) {
			p->thought = 1;
			p->host_at = w->now + p->think_ns;
			return;
		}
		p->asked_at = w->now;
		p->cost = cost_launch(cost, &sample);
		if (sample)
			sched_correct(&p->sched, cost_sampled(cost, p->kernel_ns, p->cost, 0), w->now);
		p->cost = atomic_load(&cost->mean_ns) ? atomic_load(&cost->mean_ns) : p->cost;
		p->charged = 1;
		if (sched_flows(&p->sched, p->cost)) {
			push(w, p, 0, 0);
			return;
		}
	}
	switch (sched_admit(&p->sched, p->cost, 0, w->now, p->can_gate && !sched_is_dense(&p->sched), &r)) {
	case ADMIT_GO: push(w, p, 0, r.mark); break;
	case ADMIT_GATE: push(w, p, r.chunk, r.mark); break;
	case ADMIT_WAIT:
		p->host_at = (r.until_ns > w->now ? r.until_ns : w->now + TURN_GRACE_NS) + WAKE_NS;
		break;
	}
	wake(w, r.wake);
	if (r.kick && p->service_at > w->now + WAKE_NS)
		p->service_at = w->now + WAKE_NS;
}

static void service_step(struct world *w, struct process_model *p)
{
	unsigned who;
	uint64_t next = sched_tick(&p->sched, w->now, &who);

	wake(w, who);
	p->service_at = next ? (next > w->now ? next : w->now + 1) + WAKE_NS : w->now + 100 * NS_PER_MS;
}

void world_run(struct world *w, uint64_t ns)
{
	uint64_t end = w->now + ns;

	while (w->now < end) {
		uint64_t next = end, at = device_next(w);

		if (at < next)
			next = at;
		for (unsigned i = 0; i < w->count; i++) {
			if (w->p[i].host_at < next)
				next = w->p[i].host_at;
			if (w->p[i].service_at < next)
				next = w->p[i].service_at;
		}
		if (next < w->now)
			next = w->now;
		device_advance(w, next);
		w->now = next;
		for (unsigned i = 0; i < w->count; i++) {
			struct process_model *p = &w->p[i];

			if (p->service_at <= w->now)
				service_step(w, p);
			if (p->host_at <= w->now)
				host_step(w, p);
		}
		choose_context(w);
	}
}

#endif
