/*
 * Contexts: real bytes of the device (526 MiB on the H200), charged before they are taken, at what this device's
 * contexts were measured to take. What lives in a context goes with it.
 */
#include "hooks/context.h"

#include <errno.h>

#include "base/log.h"
#include "hooks/books.h"
#include "hooks/launch.h"
#include "hooks/local_memory.h"
#include "hooks/mem_pool.h"
#include "hooks/mem_virtual.h"
#include "hooks/measure.h"

/* Until one was measured on the device; and what is believed of a ledger that anybody may write. */
#define CONTEXT_BYTES (526ull << 20)
#define CONTEXT_MOST  (4ull << 30)

_Atomic uint64_t context_primaries[TENANT_DEVICES];
static _Atomic uint32_t green_contexts;

CUcontext context_owner(struct memory *memory, CUcontext current)
{
	struct charge entry;

	if (!atomic_load_explicit(&green_contexts, memory_order_relaxed) ||
	    charges_get(memory->charges, AT_GREEN, (uint64_t)(uintptr_t)current, &entry))
		return current;
	return (CUcontext)(uintptr_t)entry.owner;
}

static uint64_t estimate(const struct device_tenant *tenant, int *ret_measured)
{
	uint64_t bytes = atomic_load(&tenant->ledger.file->header.context_bytes);

	*ret_measured = bytes && bytes <= CONTEXT_MOST;
	return *ret_measured ? bytes : CONTEXT_BYTES;
}

/* One line that says why nothing works, once per process: the cap is below a context. */
static void tell_cap_is_small(const struct device_tenant *tenant, uint64_t bytes)
{
	static _Atomic int told;
	uint64_t cap = ledger_group_cap(&tenant->member);

	if (cap >= bytes || atomic_exchange(&told, 1))
		return;
	log_line(LOG_WARN,
		 "the memory cap on %.8s… (%llu MiB) is smaller than a context (%llu MiB)",
		 tenant->uuid, (unsigned long long)(cap >> 20), (unsigned long long)(bytes >> 20));
}

enum mem_begin context_begin(struct context_call *c, CUdevice device)
{
	struct device_tenant *tenant = mem_of_process() ? tenant_of_device(device) : NULL;
	enum mem_begin begin;
	uint64_t bytes, room;
	int measured;

	if (!tenant)
		return mem_of_process() && tenant_refused(device) ? MEM_REFUSED : MEM_PASS;
	c->first = !driver_bytes_known();
	if (c->first)
		driver_bytes_look(tenant, &c->before);
	if (c->first || driver_bytes_of_process(tenant, &c->before_bytes))
		c->before_bytes = books_less(ledger_process_used(&tenant->member),
					     tenant->member.kind_bytes[CHARGE_CONTEXT]);
	bytes = estimate(tenant, &measured);
	room = ledger_room(&tenant->member);
	/* Nobody has measured one here: what the cap leaves is held, and the measured one decides. */
	if (!measured && room < bytes && (!c->first || c->before.count <= LISTED_MOST))
		bytes = room;
	begin = mem_begin_on(&c->call, device, CHARGE_CONTEXT, bytes);
	if (begin == MEM_REFUSED)
		tell_cap_is_small(tenant, bytes);
	return begin;
}

/*
 * It will take more with its first stream, allocation and code: contexts of this device are known to grow to
 * `known`. The rest of the hold that was for that stays charged, as overhead, so that nobody else takes it.
 */
static uint64_t to_grow(const struct context_call *c, uint64_t bytes, uint64_t known)
{
	uint64_t held = c->call.hold.bytes, most = known < held ? known : held;

	if (known < bytes + BLOCK_BYTES || known - bytes >= BOOKS_CERTAIN)
		return 0; /* not even a page, or what is believed is of something else */
	return books_less(most, bytes);
}

/* A figure that is far from what was believed is new; one a little below is of a context that has not grown. */
static void remember_size(struct device_tenant *tenant, uint64_t bytes, uint64_t ahead)
{
	_Atomic uint64_t *known = &tenant->ledger.file->header.context_bytes;
	uint64_t before = atomic_load(known);

	if (bytes <= CONTEXT_MOST && (!before || before < bytes || before - bytes >= BOOKS_CERTAIN))
		atomic_store(known, bytes + ahead ? bytes + ahead : 1);
}

/*
 * What the context took. 0, or -EAGAIN when that is not sure: then it is what to believe. A call of another thread that
 * is charged and has not taken its memory yet (a second context, a large allocation), or managed memory that nobody has
 * used yet, makes it look like less; all that came since the call began bounds it, and no more than is usual is believed.
 */
static int measure(const struct context_call *c, uint64_t known, uint64_t *ret_bytes)
{
	uint64_t driver, since;

	if (measure_call(&c->call, ret_bytes) || driver_bytes_of_process(c->call.tenant, &driver)) {
		*ret_bytes = known;
		return -EAGAIN;
	}
	since = books_less(driver, c->before_bytes);
	if (*ret_bytes + BLOCK_BYTES >= since)
		return 0;
	*ret_bytes = since < known ? since : known;
	return -EAGAIN;
}

/* 0 when it is charged; -ENOMEM when it is larger than what is left: the caller destroys it. */
static int context_made(struct context_call *c, uint64_t handle, uint8_t flags)
{
	struct mem_call *call = &c->call;
	struct charge entry;
	uint64_t bytes, ahead = 0, known;
	int measured;

	local_memory_forget();
	if (c->first)
		driver_bytes_learn(call->tenant, &c->before);
	known = estimate(call->tenant, &measured);
	if (!measure(c, known, &bytes)) {
		ahead = to_grow(c, bytes, known);
		if (c->first)
			remember_size(call->tenant, bytes, ahead);
	}
	books_context_made(call->memory, call->tenant, ahead);
	if (hold_settle(&call->hold, bytes, &call->refusal)) {
		tell_cap_is_small(call->tenant, bytes);
		return -ENOMEM;
	}
	call->tenant->context_bytes = bytes;
	entry = mem_entry(call, AT_CONTEXT, handle, bytes);
	entry.flags = flags;
	return memory_enter(call->memory, &call->hold, &entry);
}

/* Contexts of the program's own. */
static CUresult created(struct context_call *c, CUresult result, CUcontext context,
			CUcontext *ret_context)
{
	if (result != CUDA_SUCCESS)
		return mem_drop(&c->call, result);
	if (context_made(c, (uint64_t)(uintptr_t)context, 0)) {
		real.cuCtxDestroy_v2(context);
		return mem_refuse(&c->call);
	}
	*ret_context = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	struct context_call c;
	CUcontext context = NULL;
	CUresult result;

	switch (pctx ? context_begin(&c, dev) : MEM_PASS) {
	case MEM_PASS: return real.cuCtxCreate(pctx, flags, dev);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuCtxCreate(&context, flags, dev);
	return created(&c, result, context, pctx);
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	struct context_call c;
	CUcontext context = NULL;
	CUresult result;

	switch (pctx ? context_begin(&c, dev) : MEM_PASS) {
	case MEM_PASS: return real.cuCtxCreate_v2(pctx, flags, dev);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuCtxCreate_v2(&context, flags, dev);
	return created(&c, result, context, pctx);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
			unsigned int flags, CUdevice dev)
{
	struct context_call c;
	CUcontext context = NULL;
	CUresult result;

	switch (pctx ? context_begin(&c, dev) : MEM_PASS) {
	case MEM_PASS: return real.cuCtxCreate_v3(pctx, paramsArray, numParams, flags, dev);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuCtxCreate_v3(&context, paramsArray, numParams, flags, dev);
	return created(&c, result, context, pctx);
}

#if CUDA_VERSION >= 12050
CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
			CUdevice dev)
{
	struct context_call c;
	CUcontext context = NULL;
	CUresult result;

	switch (pctx ? context_begin(&c, dev) : MEM_PASS) {
	case MEM_PASS: return real.cuCtxCreate_v4(pctx, ctxCreateParams, flags, dev);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuCtxCreate_v4(&context, ctxCreateParams, flags, dev);
	return created(&c, result, context, pctx);
}
#endif

static void leave(struct memory *memory, const struct charge *entry)
{
	if (entry->space == AT_CONTEXT)
		books_context_ended(memory, entry->device);
	mem_leave(memory, entry);
	if (entry->space == AT_ARRAY || entry->space == AT_MIPMAP)
		mem_sparse_ended(memory, entry);
}

/* All that lived in it is the device's again. */
static void ended(struct memory *memory, CUcontext context)
{
	memory_end_context(memory, (uint64_t)(uintptr_t)context, leave);
	local_memory_forget();
}

static CUresult destroy(CUcontext ctx, CUresult (*call)(CUcontext))
{
	struct memory *memory = mem_of_process();
	CUresult result;

	launch_pause();
	result = call(ctx);
	launch_resume(result == CUDA_SUCCESS ? ctx : NULL, -1);
	if (memory && result == CUDA_SUCCESS)
		ended(memory, ctx);
	return result;
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	return destroy(ctx, real.cuCtxDestroy_v2);
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	return destroy(ctx, real.cuCtxDestroy);
}

/* The last detach destroys: then the driver does not know the handle any more. */
CUresult cuCtxDetach(CUcontext ctx)
{
	struct memory *memory = mem_of_process();
	unsigned int version;
	CUresult result;
	int last;

	launch_pause();
	result = real.cuCtxDetach(ctx);
	last = result == CUDA_SUCCESS && real.cuCtxGetApiVersion &&
	       real.cuCtxGetApiVersion(ctx, &version) != CUDA_SUCCESS;
	launch_resume(last ? ctx : NULL, -1);
	if (memory && last)
		ended(memory, ctx);
	return result;
}

/* ---- the primary context ------------------------------------------------------------------------- */

/* -1 when the driver does not tell. */
int context_primary_is_active(CUdevice device)
{
	unsigned int flags;
	int active = 0;

	if (!real.cuDevicePrimaryCtxGetState ||
	    real.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS)
		return -1;
	return active != 0;
}

static int is_charged(CUdevice device)
{
	return context_primary(device) != 0;
}

enum mem_begin context_begin_primary(struct context_call *c, CUdevice device)
{
	if (is_charged(device) && context_primary_is_active(device) > 0)
		return MEM_PASS;
	return context_begin(c, device);
}

void context_saw_green(void)
{
	atomic_store(&green_contexts, 1);
}

/* It became active in this call, or in another thread's at the same time: charged once. */
int context_primary_made(struct context_call *c, CUdevice device, CUcontext context)
{
	uint64_t none = 0, handle = (uint64_t)(uintptr_t)context;

	if (!atomic_compare_exchange_strong(&context_primaries[device], &none, handle)) {
		hold_drop(&c->call.hold);
		return 0;
	}
	if (!context_made(c, handle, CHARGE_PRIMARY))
		return 0;
	atomic_store(&context_primaries[device], 0);
	return -ENOMEM;
}

/* After a release or reset: inactive means that nothing of it is left. One that may be there stays charged, and the
 * next one takes over its charge. */
void context_primary_ended(CUdevice device)
{
	struct memory *memory = mem_of_process();
	uint64_t handle;

	if (!memory || !is_charged(device) || context_primary_is_active(device))
		return;
	handle = atomic_exchange(&context_primaries[device], 0);
	if (!handle)
		return;
	ended(memory, (CUcontext)(uintptr_t)handle);
	mem_pools_refresh(memory, (unsigned)device);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	struct context_call c;
	CUcontext context = NULL;
	CUresult result;

	switch (pctx ? context_begin_primary(&c, dev) : MEM_PASS) {
	case MEM_PASS: return real.cuDevicePrimaryCtxRetain(pctx, dev);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuDevicePrimaryCtxRetain(&context, dev);
	if (result != CUDA_SUCCESS)
		return mem_drop(&c.call, result);
	if (context_primary_made(&c, dev, context)) {
		real.cuDevicePrimaryCtxRelease_v2(dev);
		return mem_refuse(&c.call);
	}
	*pctx = context;
	return CUDA_SUCCESS;
}

/* Release and reset in both ABIs; a reset ends the context whoever else holds it. */
static CUresult end_primary(CUdevice dev, CUresult (*call)(CUdevice), int is_reset)
{
	CUresult result;

	launch_pause();
	result = call(dev);
	launch_resume(NULL,
		      result == CUDA_SUCCESS && (is_reset || context_primary_is_active(dev) <= 0)
			      ? dev
			      : -1);
	if (result == CUDA_SUCCESS)
		context_primary_ended(dev);
	return result;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	return end_primary(dev, real.cuDevicePrimaryCtxRelease_v2, 0);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return end_primary(dev, real.cuDevicePrimaryCtxRelease, 0);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	return end_primary(dev, real.cuDevicePrimaryCtxReset_v2, 1);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return end_primary(dev, real.cuDevicePrimaryCtxReset, 1);
}
