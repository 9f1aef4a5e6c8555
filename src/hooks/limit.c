/*
 * Limits of a context that are memory: the device heap, the printf buffer, and the stack, which every thread that
 * the device can hold at once gets. Charged when they are set, though the driver takes the heap only when a module
 * uses it (the stack at once, beyond 1 KiB a thread; H200, driver 580): it is committed, and goes back when the
 * limit is lowered or the context ends.
 */
#include "hooks/limit.h"

#include "hooks/capture.h"
#include "hooks/context.h"
#include "hooks/library.h"
#include "hooks/launch.h"
#include "hooks/local_memory.h"

/* Their default sizes are in the context's own bytes. */
static int is_memory(CUlimit limit)
{
	return limit == CU_LIMIT_STACK_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE ||
	       limit == CU_LIMIT_PRINTF_FIFO_SIZE;
}

static uint64_t units(CUlimit limit, CUdevice device)
{
	int sms = 0, threads = 0;

	if (limit != CU_LIMIT_STACK_SIZE)
		return 1;
	if (!real.cuDeviceGetAttribute ||
	    real.cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) ||
	    real.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
				      device))
		return 1;
	return (uint64_t)sms * (uint64_t)threads;
}

static uint64_t limit_key(CUcontext context, CUlimit limit)
{
	return (uint64_t)(uintptr_t)context * 16 + limit; /* addresses are below 2^60 */
}

/*
 * What is charged for this limit of this context so far beyond its default; *ret_base: the default, which is what it
 * was when the first one was set. It is entered then: set to less and raised again, it is no more than it was.
 */
static uint64_t charged_for(struct memory *memory, CUcontext context, CUdevice device,
			    CUlimit limit, uint64_t *ret_base)
{
	struct charge entry = {.key = limit_key(context, limit),
			       .owner = (uint64_t)(uintptr_t)context,
			       .refs = 1,
			       .space = AT_LIMIT,
			       .kind = CHARGE_CONTEXT,
			       .device = (uint8_t)device};
	size_t now = 0;

	if (charges_get(memory->charges, AT_LIMIT, entry.key, &entry)) {
		if (real.cuCtxGetLimit && real.cuCtxGetLimit(&now, limit) == CUDA_SUCCESS)
			entry.within = now;
		charges_ref(memory->charges, &entry);
	}
	*ret_base = entry.within;
	return entry.bytes;
}

/* Whose limits they are, and what `value` takes there. 0, or -1 when there is nothing to charge to. */
static int limit_needs(struct limit_call *c, CUlimit limit, uint64_t value, uint64_t *ret_needed)
{
	struct memory *memory = mem_of_process();
	CUdevice device;
	uint64_t base;

	if (!memory || !is_memory(limit) || !real.cuCtxGetCurrent ||
	    real.cuCtxGetCurrent(&c->call.context) != CUDA_SUCCESS || !c->call.context ||
	    real.cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return -1;
	c->call.context = context_owner(memory, c->call.context);
	c->limit = limit;
	c->charged = charged_for(memory, c->call.context, device, limit, &base);
	*ret_needed = 0;
	if (value > base && __builtin_mul_overflow(value - base, units(limit, device), ret_needed))
		*ret_needed = UINT64_MAX;
	return 0;
}

enum mem_begin limit_begin(struct limit_call *c, CUlimit limit, uint64_t value)
{
	uint64_t needed;

	if (limit_needs(c, limit, value, &needed) || needed <= c->charged)
		return MEM_PASS;
	return mem_begin(&c->call, CHARGE_CONTEXT, needed - c->charged);
}

/* It was set to less than is charged: the rest goes back. Frames of kernels are looked at again. */
static void limit_lowered(CUlimit limit, uint64_t value)
{
	struct memory *memory = mem_of_process();
	struct limit_call c;
	struct charge before;
	uint64_t needed;

	if (limit_needs(&c, limit, value, &needed) || needed >= c.charged ||
	    charges_clamp(memory->charges, AT_LIMIT, limit_key(c.call.context, limit), 0, needed,
			  &before) ||
	    before.bytes <= needed)
		return;
	ledger_refund(mem_member_of(before.device), CHARGE_CONTEXT, before.bytes - needed);
	local_memory_forget();
}

/* Threads that raise it at the same time have each held the whole growth: it is charged once, at the largest. */
void limit_raised(struct limit_call *c)
{
	struct mem_call *call = &c->call;
	uint64_t needed = c->charged + call->hold.bytes;
	struct charge before;

	if (charges_clamp(call->memory->charges, AT_LIMIT, limit_key(call->context, c->limit),
			  needed, UINT64_MAX, &before))
		return hold_drop(&call->hold); /* the context has ended, or there is no memory */
	hold_settle_forced(&call->hold, before.bytes < needed ? needed - before.bytes : 0);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct limit_call c;
	CUresult result;

	switch (limit_begin(&c, limit, value)) {
	case MEM_PASS:
		result = real.cuCtxSetLimit(limit, value);
		if (result == CUDA_SUCCESS)
			limit_lowered(limit, value);
		return result;
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuCtxSetLimit(limit, value);
	if (result != CUDA_SUCCESS)
		return mem_drop(&c.call, result);
	limit_raised(&c);
	return CUDA_SUCCESS;
}

/* ---- local memory: a launch may raise the stack, as a limit does ----------------------------------- */

_Atomic(CUfunction) local_memory_seen[LOCAL_MEMORY_SEEN];

void local_memory_forget(void)
{
	launch_code_changed();
	for (unsigned i = 0; i < LOCAL_MEMORY_SEEN; i++)
		atomic_store_explicit(&local_memory_seen[i], NULL, memory_order_relaxed);
}

/* The frame of a function, or of a library's kernel, whose library comes into the context with it. */
static CUresult frame_of(struct memory *memory, CUfunction function, int *ret_bytes)
{
	CUlibrary library;
	CUdevice device;

	*ret_bytes = 0;
	if (library_of_kernel(memory, function, &library)) {
		if (library_use(library) != CUDA_SUCCESS)
			return CUDA_ERROR_OUT_OF_MEMORY;
		if (real.cuKernelGetAttribute && real.cuCtxGetDevice &&
		    real.cuCtxGetDevice(&device) == CUDA_SUCCESS)
			real.cuKernelGetAttribute(ret_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
						  (CUkernel)function, device);
	} else if (real.cuFuncGetAttribute) {
		real.cuFuncGetAttribute(ret_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
	}
	return CUDA_SUCCESS;
}

CUresult local_memory_check(CUfunction function)
{
	struct memory *memory = mem_of_process();
	CUstreamCaptureMode mode;
	enum mem_begin begin = MEM_PASS;
	struct limit_call c;
	CUresult result;
	int frame;

	if (!memory || !function)
		return CUDA_SUCCESS;
	mode = capture_relax();
	result = frame_of(memory, function, &frame);
	if (result == CUDA_SUCCESS && frame > 0)
		begin = limit_begin(&c, CU_LIMIT_STACK_SIZE, (uint64_t)frame);
	capture_restore(mode);
	if (result != CUDA_SUCCESS || begin == MEM_REFUSED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (begin == MEM_HELD)
		limit_raised(&c);
	atomic_store_explicit(&local_memory_seen[local_memory_place(function)], function,
			      memory_order_relaxed);
	return CUDA_SUCCESS;
}
