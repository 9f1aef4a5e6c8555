/* The model's moving parts; sched_world.h tells what is modelled. Included by one test file. */
#ifndef CUOTA_TESTS_SCHED_WORLD_IMPL_H
#define CUOTA_TESTS_SCHED_WORLD_IMPL_H

#define NEVER	 UINT64_MAX
#define SYNC_NS	 2500u	/* a wait's return after the last kernel */
#define WAKE_NS	 50000u /* a futex wake-up on a virtual machine */
#define ROUND_NS 2000u	/* of the service thread */
#ifndef READ_SHORT_NS
#define READ_SHORT_NS 0u /* by which a pair of events reads too little */
#endif
#define SLICE_NS       2090000u
#define SWITCH_NS      140000u
#define STOPPED	       (NEVER - 1)
#define SPIN_NS	       20000u	       /* how often a collective looks for its peer */
#define SAMPLE_WAIT_NS (3 * NS_PER_MS) /* as in hooks/sample.h */

void world_begin(struct world *w)
{
	struct error err;

	memset(w, 0, sizeof(*w));
	w->now = NS_PER_S;
	w->slice_ns = SLICE_NS;
	w->switch_ns = SWITCH_NS;
	w->current = -1;
	ck_assert_int_eq(
		ledger_open_private("GPU-00000000-0000-0000-0000-000000000000", &w->ledger, &err),
		0);
	w->ledger.private_copy = 0; /* turns are wanted among the members of this process */
}

void world_end(struct world *w)
{
	for (unsigned i = 0; i < w->count; i++)
		if (!w->p[i].dead)
			ledger_leave(&w->p[i].member);
	ledger_close(&w->ledger);
}

struct process_model *world_add(struct world *w, const char *group, uint32_t cap_bp,
				uint32_t weight, enum quota_priority priority, enum sched_mode mode)
{
	struct process_model *p = &w->p[w->count++];
	struct quota asked = {0, 0, cap_bp, weight, priority};
	struct error err = {""};

	ck_assert_msg(ledger_join(&w->ledger, group, NULL, &asked, &p->member, &err) == 0, "%s",
		      err.text);
	sched_init(&p->sched, &p->member, mode, 0);
	p->can_gate = 1;
	p->host_at = w->now + w->count;
	p->service_at = w->now + 100 * NS_PER_MS; /* housekeeping */
	return p;
}

void world_reset(struct world *w)
{
	for (unsigned i = 0; i < w->count; i++)
		w->p[i].busy_ns = w->p[i].launches = w->p[i].waited_ns = w->p[i].pause_ns =
			w->p[i].looks = w->p[i].bursts = 0;
}

/* The first kernel of a stream; NULL when there is none or it may not run. */
static struct kernel *head_of(const struct process_model *p, unsigned stream)
{
	const struct stream_model *s = &p->stream[stream];
	const struct kernel *k = &s->queue[s->head % WORLD_QUEUE];

	if (s->head == s->tail ||
	    (k->chunk && (int32_t)(atomic_load(p->sched.open) - k->chunk) < 0))
		return NULL;
	return (struct kernel *)k;
}

/* The next kernel of a context, round its streams; NULL when none may run. */
static struct kernel *next_kernel(const struct process_model *p, unsigned *ret_stream)
{
	for (unsigned i = 0; i < WORLD_STREAMS; i++) {
		unsigned at = (p->at + i) % WORLD_STREAMS;
		struct kernel *k = head_of(p, at);

		if (!k)
			continue;
		*ret_stream = at;
		return k;
	}
	return NULL;
}

/* Small kernels of several streams run side by side: when the first of them is done. */
static uint64_t soonest(const struct process_model *p)
{
	uint64_t least = NEVER;

	for (unsigned i = 0; i < WORLD_STREAMS; i++) {
		const struct kernel *k = head_of(p, i);

		if (k && k->ns < least)
			least = k->ns;
	}
	return least;
}

static int runnable(const struct process_model *p)
{
	unsigned stream;

	return next_kernel(p, &stream) != NULL;
}

static unsigned outstanding(const struct process_model *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WORLD_STREAMS; i++)
		n += p->stream[i].tail - p->stream[i].head;
	return n;
}

/* Since the beginning, whatever world_reset() forgot. */
static uint64_t launched(const struct process_model *p)
{
	return p->finished + outstanding(p);
}

static int waits_for_peer(const struct process_model *p)
{
	return p->partner && p->partner->started <= p->finished;
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
	const struct process_model *p = w->current < 0 ? NULL : &w->p[w->current];
	const struct kernel *k;
	unsigned stream;
	uint64_t end;

	if (!p)
		return NEVER;
	if (w->now < w->switch_until)
		return w->switch_until;
	k = next_kernel(p, &stream);
	if (!k)
		return NEVER;
	end = w->now + (waits_for_peer(p) ? SPIN_NS : p->small ? soonest(p) : k->ns);
	if (w->slice_end > w->now && w->slice_end < end)
		end = w->slice_end;
	return end;
}

static void wake(struct world *w, unsigned slot_plus_one);

/* The pair of events of a timed kernel is read: all that happened between them is in it. */
static void sample_back(struct process_model *p, const struct kernel *k, uint64_t now)
{
	uint64_t read = now - k->began;

	read -= read > 2 * READ_SHORT_NS ? READ_SHORT_NS : 0;
	read += (uint64_t)((int64_t)read * p->misread / 100);
	p->samples_due--;
	sched_sampled(&p->sched, k->timed, read, k->charged_ns, &k->company, now);
}

static void end_sync(struct world *w, struct process_model *p, uint64_t now)
{
	if (!p->polls)
		wake(w, sched_sync_end(&p->sched, now, outstanding(p) == 0));
}

/* The host no longer waits for a timed kernel. */
static void let_go(struct world *w, struct process_model *p, uint64_t now)
{
	p->holding = 0;
	end_sync(w, p, now);
}

static void kernel_done(struct world *w, struct process_model *p, struct kernel *k, unsigned stream,
			uint64_t now)
{
	if (k->mark)
		atomic_store(&p->sched.lanes[stream % SCHED_LANES], k->mark);
	if (k->timed)
		sample_back(p, k, now);
	if (k->stretch == STRETCH_BEGINS_AFTER)
		p->stretch_began = now;
	if (k->stretch == STRETCH_ENDS) {
		p->stretch_ended = now;
		p->ends_due--;
	}
	if (k->held && p->holding) {
		if (p->host_at < STOPPED)
			p->host_at = now + SYNC_NS;
		let_go(w, p, now);
	}
	p->stream[stream].head++;
	if (!p->depth_first)
		p->at = (stream + 1) % WORLD_STREAMS;
	p->finished++;
	if (p->done_at && now - p->done_at > p->pause_ns)
		p->pause_ns = now - p->done_at;
	p->done_at = now;
	if (p->host_at == NEVER && (p->depth ? outstanding(p) < p->depth : outstanding(p) == 0)) {
		p->host_at = now + SYNC_NS;
		p->burst_ns[p->bursts++ % WORLD_BURSTS] = p->host_at - p->burst_at;
		end_sync(w, p, now);
	}
}

/* The first event of a pair passes when its stream gets there, whether the kernel behind it finds room or not. */
static void pairs_begin(const struct world *w, struct process_model *p)
{
	for (unsigned i = 0; i < WORLD_STREAMS; i++) {
		struct kernel *k = head_of(p, i);

		if (!k || k->began)
			continue;
		k->began = w->now;
		if (k->stretch == STRETCH_BEGINS)
			p->stretch_began = w->now;
	}
}

static void run_for(struct world *w, struct process_model *p, unsigned stream, uint64_t to)
{
	struct kernel *k = head_of(p, stream);

	k->ns -= to - w->now < k->ns ? to - w->now : k->ns;
	if (k->ns == 0)
		kernel_done(w, p, k, stream, to);
}

static void device_advance(struct world *w, uint64_t to)
{
	struct process_model *p = w->current < 0 ? NULL : &w->p[w->current];
	struct kernel *k;
	unsigned stream;

	if (!p || w->now < w->switch_until)
		return;
	k = next_kernel(p, &stream);
	if (!k)
		return;
	p->at = stream;
	if (!k->ran) {
		k->ran = 1;
		p->started++;
	}
	pairs_begin(w, p);
	p->busy_ns += to - w->now;
	if (waits_for_peer(p))
		return;
	for (unsigned i = 0; i < WORLD_STREAMS; i++)
		if (i == stream || (p->small && head_of(p, i)))
			run_for(w, p, i, to);
}

/* The wake-ups that hooks and service threads do with futexes. */
static void wake(struct world *w, unsigned slot_plus_one)
{
	for (unsigned i = 0; slot_plus_one && i < w->count; i++) {
		struct process_model *p = &w->p[i];

		if (p->member.slot != slot_plus_one - 1)
			continue;
		if (p->service_at != STOPPED && p->service_at > w->now + WAKE_NS)
			p->service_at = w->now + WAKE_NS;
		if (p->charged && p->host_at < STOPPED && p->host_at > w->now + WAKE_NS)
			p->host_at = w->now + WAKE_NS;
	}
}

static uint64_t length_of(const struct process_model *p, unsigned *ret_kind)
{
	unsigned n = 0;

	while (n < WORLD_SHAPES && p->shapes[n])
		n++;
	*ret_kind = n ? (unsigned)(launched(p) % n) : 0;
	return n ? p->shapes[*ret_kind] : p->kernel_ns;
}

static void begin_sync(struct world *w, struct process_model *p)
{
	unsigned who;

	if (p->polls || !sched_sync_begin(&p->sched, w->now))
		return;
	if (!sched_open(&p->sched, w->now, &who) && p->service_at > w->now + WAKE_NS &&
	    p->service_at != STOPPED)
		p->service_at = w->now + WAKE_NS;
	wake(w, who);
}

static void push(struct world *w, struct process_model *p, uint32_t chunk, uint32_t mark)
{
	struct stream_model *s = &p->stream[p->streams ? launched(p) % p->streams : 0];
	int alone = p->streams <= 1 || (p->dry && p->timed && sched_times_alone(&p->sched));
	unsigned kind;

	if (p->timed && p->stretch == STRETCH_BEGINS) {
		if (cost_sample_later(p->timed)) {
			p->timed = NULL;
		} else {
			sched_stretch_cancel(&p->sched);
			p->stretch = STRETCH_NOT;
		}
	}
	if (p->timed && !alone && cost_sample_later(p->timed))
		p->timed = NULL;
	if (s->tail - s->head >= WORLD_QUEUE)
		ck_abort_msg("the queue is full");
	s->queue[s->tail++ % WORLD_QUEUE] =
		(struct kernel){.ns = length_of(p, &kind),
				.chunk = chunk,
				.mark = mark,
				.timed = p->timed,
				.stretch = p->stretch,
				.charged_ns = p->cost,
				.company = alone && !chunk ? sched_company(&p->sched, w->now)
							   : (struct company){0}};
	if (p->timed)
		p->samples_due++;
	p->ends_due += p->stretch == STRETCH_ENDS;
	p->waited_ns += w->now - p->asked_at;
	p->launches++;
	p->in_burst++;
	p->charged = 0;
	p->host_at = w->now + p->launch_ns + p->slower_ns;
	if (!p->depth && p->in_burst >= p->burst) {
		p->in_burst = 0;
		p->thought = 0;
		p->host_at = NEVER; /* waits for the burst */
	} else if (p->depth && outstanding(p) >= p->depth) {
		p->host_at = NEVER;
	}
	/* With several streams a timed kernel has the device for itself: the host waits for it. */
	if (p->timed && alone && p->streams > 1 && p->host_at != NEVER) {
		s->queue[(s->tail - 1) % WORLD_QUEUE].held = p->holding = 1;
		p->host_at = w->now + SAMPLE_WAIT_NS;
		begin_sync(w, p);
	}
	if (p->host_at == NEVER)
		begin_sync(w, p);
}

/* Under a cap or next to others few launches of a kind that nobody has timed may be under way. */
static int waits_for_sample(struct world *w, struct process_model *p, const struct cost *cost)
{
	uint32_t cap = atomic_load(&p->member.sm_cap_bp);

	if (!cost_is_unknown(cost) || !p->samples_due ||
	    ((!cap || cap >= QUOTA_SM_NONE) && !sched_is_shared(&p->sched)))
		return 0;
	if (!p->unknown_since)
		p->unknown_since = w->now;
	return w->now < p->unknown_since + 100 * NS_PER_MS;
}

/* As in hooks/launch.c. */
static int can_gate(const struct process_model *p, const struct cost *cost)
{
	return p->can_gate && !sched_is_dense(&p->sched) && !cost_is_unknown(cost) &&
	       !(p->streams > 1 && cost_is_vague(cost));
}

/* The launch hook's first half; 0 when the program pauses before it launches. */
static int charge(struct world *w, struct process_model *p)
{
	struct cost *cost;
	unsigned kind;
	int sample;

	if (!p->depth && p->in_burst == 0 && p->think_ns && !p->thought) {
		p->thought = 1;
		p->host_at = w->now + p->think_ns;
		return 0;
	}
	length_of(p, &kind);
	cost = costs_find(&p->sched.costs, 77 + kind);
	p->asked_at = w->now;
	if (p->in_burst == 0) {
		p->burst_at = w->now;
		p->dice = p->dice * 1103515245u + 12345u;
		p->slower_ns = p->launch_ns * p->jitter * (p->dice >> 16 & 1023) / 102400;
	}
	atomic_store(&p->sched.many_streams, p->streams > 1 ? SCHED_MANY : 0);
	atomic_store(&p->sched.several, p->streams > 1 ? SCHED_MANY : 0);
	p->cost = cost_launch(cost, &sample);
	p->timed = sample ? cost : NULL;
	p->charged = 1;
	p->unknown_since = 0;
	p->scaled = sched_scaled(&p->sched, p->cost);
	p->flows = sched_flows(&p->sched, p->scaled);
	return 1;
}

/* The launch hook: charge, then go, wait or gate. */
static void host_step(struct world *w, struct process_model *p)
{
	struct admit_result r;
	unsigned kind;

	if (p->holding)
		let_go(w, p, w->now);
	if (p->blocked)
		demand_wait_ends(&p->sched, w->now);
	p->blocked = 0;
	if (p->launches_max && launched(p) >= p->launches_max) {
		p->host_at = NEVER;
		return;
	}
	if (p->leader && launched(p->leader) <= launched(p)) {
		p->host_at = w->now + 5000;
		return;
	}
	if (!p->charged && !charge(w, p))
		return;
	length_of(p, &kind);
	if (waits_for_sample(w, p, costs_find(&p->sched.costs, 77 + kind))) {
		p->host_at = w->now + 50000;
		p->flows = 0;
		return;
	}
	p->dry = 0;
	p->stretch = STRETCH_NOT;
	if ((!p->flows || p->sched.stretch_tail) && sched_stretch_ended(&p->sched) && !p->ends_due)
		sched_stretch(&p->sched, p->stretch_ended - p->stretch_began, w->now);
	if (p->flows) {
		if (p->sched.stretch_tail)
			p->stretch = STRETCH_ENDS;
		push(w, p, 0, 0);
		return;
	}
	switch (sched_admit(&p->sched, p->scaled,
			    p->streams ? (unsigned)(launched(p) % p->streams) : 0, w->now,
			    can_gate(p, costs_find(&p->sched.costs, 77 + kind)), &r)) {
	case ADMIT_GO:
		p->dry = r.dry;
		p->stretch = r.stretch;
		if (r.overdue && !cost_is_vague(costs_find(&p->sched.costs, 77 + kind)))
			p->timed = costs_find(&p->sched.costs, 77 + kind);
		push(w, p, 0, r.mark);
		break;
	case ADMIT_GATE: push(w, p, r.chunk, r.mark); break;
	case ADMIT_WAIT:
		demand_wait_begins(&p->sched, w->now);
		p->blocked = 1;
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

	p->looks++;

	wake(w, who);
	if (!next)
		p->service_at = w->now + 100 * NS_PER_MS;
	else if (next <= w->now + ROUND_NS) /* it does not sleep */
		p->service_at = w->now + ROUND_NS;
	else
		p->service_at = next + WAKE_NS;
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

void world_run_both(struct world *a, struct world *b, uint64_t ns)
{
	for (uint64_t done = 0; done < ns; done += SPIN_NS) {
		world_run(a, SPIN_NS);
		world_run(b, SPIN_NS);
	}
}

void world_stop(struct process_model *p)
{
	p->host_at = p->service_at = STOPPED;
}

void world_continue(struct world *w, struct process_model *p)
{
	p->service_at = w->now;
	p->host_at = (p->depth ? outstanding(p) < p->depth : outstanding(p) == 0) ? w->now : NEVER;
}

void world_kill(struct process_model *p)
{
	world_stop(p);
	for (unsigned i = 0; i < WORLD_STREAMS; i++)
		p->stream[i].head = p->stream[i].tail;
	ledger_leave(&p->member);
	p->dead = 1;
}

#endif
