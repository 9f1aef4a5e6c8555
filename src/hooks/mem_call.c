#include "hooks/mem_call.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/size.h"
#include "hooks/books.h"
#include "hooks/context.h"
#include "hooks/ipc.h"
#include "hooks/process.h"

struct memory *_Atomic mem_process_memory;

/* The mapping is made once and comes up empty in a forked child (memory/arena.h). */
struct memory *mem_of_process_first(void)
{
	struct memory *memory = atomic_load(&mem_process_memory), *none = NULL;

	if (!memory) {
		memory = memory_new();
		hooks_load();
		if (memory && !atomic_compare_exchange_strong(&mem_process_memory, &none, memory)) {
			memory_destroy(memory);
			memory = none;
		}
	}
	return memory && memory_ready(memory) ? memory : NULL;
}

struct member *mem_member_of(unsigned device)
{
	struct device_tenant *tenant = tenant_of_device((CUdevice)device);

	return tenant ? &tenant->member : NULL;
}

/* Memory that others hold stays charged to us as long as they do (ipc.c). */
void mem_leave(struct memory *memory, const struct charge *entry)
{
	int is_block = entry->space == AT_ADDRESS && entry->kind == CHARGE_POOL;

	if (entry->space == AT_IMPORT) {
		share_import_ended(memory, entry);
		return;
	}
	if (entry->flags & CHARGE_EXPORTED)
		share_own_ended(memory, entry);
	/* A pool's account knows whose it is. */
	memory_leave(memory, is_block ? NULL : mem_member_of(entry->device), entry);
}

/* One line with the numbers, at most one a second: a program may try its luck in a loop. */
static void tell_refusal(const struct mem_call *call)
{
	static uint64_t last_ns;
	char text[REFUSAL_TEXT_BYTES];

	if (log_allowed(&last_ns, clock_now_ns(), NS_PER_S))
		log_line(LOG_WARN, "%s", refusal_text(&call->refusal, call->tenant->uuid, text));
}

static void tell_card_full(const struct mem_call *call)
{
	static uint64_t last_ns;
	char asked[16], used[16], cap[16];

	if (!log_allowed(&last_ns, clock_now_ns(), NS_PER_S))
		return;
	size_format(call->asked_bytes, asked, sizeof(asked));
	size_format(ledger_group_used(&call->tenant->member), used, sizeof(used));
	size_format(ledger_group_cap(&call->tenant->member), cap, sizeof(cap));
	log_line(LOG_WARN, "card full, not your quota: %.8s… has no %s left; used %s of %s",
		 call->tenant->uuid, asked, used, cap);
}

static uint64_t look_near(void *arg, uint64_t left)
{
	struct mem_want *want = arg;
	struct memory *memory = mem_of_process();
	uint64_t others = 0;
	int looked = 0;

	if (memory)
		others = books_look_before(memory, want->tenant, left, &looked);
	want->looked |= looked;
	return others;
}

struct relief mem_relief(struct memory *memory, struct mem_want *want)
{
	return (struct relief){mem_give_up, look_near, want,
			       &memory->devices[want->tenant->ordinal].books};
}

/* Near the cap, or past it. */
static __attribute__((noinline)) enum mem_begin begin_near(struct mem_call *call, uint64_t held)
{
	struct mem_want want = {call->tenant, held, 0};
	struct relief relief = mem_relief(call->memory, &want);
	int refused = hold_take_near(&call->hold, &relief, held, &call->refusal);

	call->looked = want.looked;
	if (!refused)
		return MEM_HELD;
	call->refusal.asked_bytes = call->asked_bytes;
	tell_refusal(call);
	return MEM_REFUSED;
}

static inline enum mem_begin begin(struct mem_call *call, enum charge_kind kind, uint64_t held)
{
	const struct books *books = &call->memory->devices[call->tenant->ordinal].books;

	call->hold = (struct hold){.member = &call->tenant->member, .kind = kind};
	call->looked = 0;
	if (!held || hold_take_far(&call->hold, books, held))
		return MEM_HELD;
	return begin_near(call, held);
}

/* Without a seat on the device there is no quota; unless there must be one. */
static enum mem_begin seat_on(struct mem_call *call, CUdevice device)
{
	call->tenant = tenant_of_device(device);
	if (call->tenant)
		return MEM_HELD;
	return tenant_refused(device) ? MEM_REFUSED : MEM_PASS;
}

/* Most programs have one device and its primary context, of which no driver need be asked where it is. */
static inline struct device_tenant *only_seat_of(CUcontext current)
{
	struct process *process = atomic_load_explicit(&tenant_process, memory_order_relaxed);
	struct device_tenant *only = atomic_load_explicit(&process->only, memory_order_acquire);

	return only && context_primary(only->device) == (uint64_t)(uintptr_t)current ? only : NULL;
}

static inline enum mem_begin seat_of_current(struct mem_call *call, uint64_t asked)
{
	CUdevice device;

	call->memory = mem_of_process();
	if (!call->memory || !real.cuCtxGetCurrent || !real.cuCtxGetDevice ||
	    real.cuCtxGetCurrent(&call->context) != CUDA_SUCCESS || !call->context)
		return MEM_PASS;
	call->asked_bytes = asked;
	call->refusal = (struct refusal){.asked_bytes = asked};
	call->tenant = only_seat_of(call->context);
	if (__builtin_expect(call->tenant != NULL, 1))
		return MEM_HELD;
	if (real.cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return MEM_PASS;
	call->context = context_owner(call->memory, call->context);
	return seat_on(call, device);
}

enum mem_begin mem_begin(struct mem_call *call, enum charge_kind kind, uint64_t asked)
{
	enum mem_begin seat = seat_of_current(call, asked);

	return seat == MEM_HELD ? begin(call, kind, asked) : seat;
}

enum mem_begin mem_begin_linear(struct mem_call *call, enum charge_kind kind, uint64_t asked)
{
	enum mem_begin seat = seat_of_current(call, asked);
	_Atomic int64_t *slack;

	if (seat != MEM_HELD)
		return seat;
	slack = &call->memory->devices[call->tenant->ordinal].slack_bytes;
	return begin(call, kind,
		     blocks_foresee(asked, atomic_load_explicit(slack, memory_order_relaxed)));
}

enum mem_begin mem_begin_on(struct mem_call *call, CUdevice device, enum charge_kind kind,
			    uint64_t asked)
{
	enum mem_begin seat;

	call->memory = mem_of_process();
	if (!call->memory)
		return MEM_PASS;
	call->context = NULL;
	call->asked_bytes = asked;
	call->refusal = (struct refusal){.asked_bytes = asked};
	seat = seat_on(call, device);
	return seat == MEM_HELD ? begin(call, kind, asked) : seat;
}

CUresult mem_drop(struct mem_call *call, CUresult result)
{
	hold_drop(&call->hold);
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		tell_card_full(call);
	return result;
}

CUresult mem_refuse(struct mem_call *call)
{
	hold_drop(&call->hold);
	call->refusal.asked_bytes = call->asked_bytes;
	tell_refusal(call);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

int mem_outgrown(struct mem_call *call)
{
	return __builtin_expect(call->looked, 0) &&
	       books_look_after(call->memory, call->tenant, call->hold.kind, &call->refusal);
}

CUresult mem_refuse_made(struct mem_call *call)
{
	call->hold.bytes = 0; /* given back with what was made */
	return mem_refuse(call);
}

struct charge mem_entry(const struct mem_call *call, enum charge_space space, uint64_t key,
			uint64_t bytes)
{
	return (struct charge){.key = key,
			       .bytes = bytes,
			       .owner = (uint64_t)(uintptr_t)call->context,
			       .refs = 1,
			       .space = (uint8_t)space,
			       .kind = (uint8_t)call->hold.kind,
			       .device = (uint8_t)call->tenant->ordinal};
}
