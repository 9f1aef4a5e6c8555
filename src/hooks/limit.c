/*
 * Limits of a context that are memory: the device heap, the printf buffer, and the stack, which every thread that
 * the device can hold at once gets. Charged when they are set, at the most that was ever set; the driver may take
 * the memory later (first launch), so it is committed, and goes back with the context.
 */
#include "hooks/limit.h"

#include "hooks/capture.h"
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

/* What is charged for this limit of this context so far beyond its default; *ret_base: the default. */
static uint64_t charged_for(struct memory *memory, CUcontext context, CUlimit limit,
			    uint64_t *ret_base)
{
	struct charge entry;
	size_t now = 0;

	if (!charges_get(memory->charges, AT_LIMIT, limit_key(context, limit), &entry)) {
		*ret_base = entry.within;
		return entry.bytes;
	}
	if (!real.cuCtxGetLimit || real.cuCtxGetLimit(&now, limit) != CUDA_SUCCESS)
		now = 0;
	*ret_base = now;
	return 0;
}

enum mem_begin limit_begin(struct limit_call *c, CUlimit limit, uint64_t value)
{
	struct memory *memory = mem_of_process();
	uint64_t needed = 0;
	CUcontext context;
	CUdevice device;

	if (!memory || !is_memory(limit) || !real.cuCtxGetCurrent ||
	    real.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context ||
	    real.cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return MEM_PASS;
	c->limit = limit;
	c->charged = charged_for(memory, context, limit, &c->base);
	if (value > c->base &&
	    __builtin_mul_overflow(value - c->base, units(limit, device), &needed))
		needed = UINT64_MAX;
	if (needed <= c->charged)
		return MEM_PASS;
	return mem_begin(&c->call, CHARGE_CONTEXT, needed - c->charged);
}

void limit_raised(struct limit_call *c)
{
	struct mem_call *call = &c->call;
	struct charge old, entry = mem_entry(call, AT_LIMIT, limit_key(call->context, c->limit),
					     c->charged + call->hold.bytes);

	entry.within = c->base;
	charges_put(call->memory->charges, &entry, &old);
	atomic_fetch_add(&call->memory->committed_bytes[call->tenant->ordinal], call->hold.bytes);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct limit_call c;
	CUresult result;

	switch (limit_begin(&c, limit, value)) {
	case MEM_PASS: return real.cuCtxSetLimit(limit, value);
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
	for (unsigned i = 0; i < LOCAL_MEMORY_SEEN; i++)
		atomic_store_explicit(&local_memory_seen[i], NULL, memory_order_relaxed);
}

CUresult local_memory_check(CUfunction function)
{
	struct limit_call c;
	int frame = 0;

	if (!mem_of_process() || captures_active || !function)
		return CUDA_SUCCESS;
	if (library_use_kernel((CUkernel)function) != CUDA_SUCCESS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!real.cuFuncGetAttribute ||
	    real.cuFuncGetAttribute(&frame, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function) !=
		    CUDA_SUCCESS)
		return CUDA_SUCCESS;
	switch (frame > 0 ? limit_begin(&c, CU_LIMIT_STACK_SIZE, (uint64_t)frame) : MEM_PASS) {
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: limit_raised(&c); break;
	case MEM_PASS: break;
	}
	atomic_store_explicit(&local_memory_seen[local_memory_place(function)], function,
			      memory_order_relaxed);
	return CUDA_SUCCESS;
}
