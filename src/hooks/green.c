/*
 * Green contexts: a share of the multiprocessors, on top of the device's primary context. They make that one
 * active, and what is made in them lives in it.
 */
#include "hooks/context.h"
#include "hooks/launch.h"
#include "hooks/measure.h"

#if CUDA_VERSION >= 12040

static struct charge green_entry(uint64_t key, CUdevice device, uint64_t bytes)
{
	return (struct charge){.key = key,
			       .bytes = bytes,
			       .owner = context_primary(device),
			       .refs = 1,
			       .space = AT_GREEN,
			       .kind = CHARGE_CONTEXT,
			       .device = (uint8_t)device};
}

/* What the green context itself takes is known when it is there; too much is undone. */
static CUresult enter_green(CUgreenCtx green, CUdevice device)
{
	struct mem_call call;
	struct charge entry;
	uint64_t bytes;

	if (mem_begin_on(&call, device, CHARGE_CONTEXT, 0) != MEM_HELD)
		return CUDA_SUCCESS;
	context_saw_green();
	if (!measure_call(&call, &bytes) && hold_settle(&call.hold, bytes, &call.refusal))
		return mem_refuse(&call);
	entry = green_entry((uint64_t)(uintptr_t)green, device, call.hold.bytes);
	return memory_enter(call.memory, &call.hold, &entry) ? mem_refuse(&call) : CUDA_SUCCESS;
}

/* The primary context came with it: its handle is learnt by a retain and release of our own. Where that fails, it
 * cannot be charged, and the green context is not to be had. */
static CUresult enter_primary(struct context_call *c, CUdevice device)
{
	CUcontext context;
	CUresult result = real.cuDevicePrimaryCtxRetain(&context, device);
	int refused;

	if (result != CUDA_SUCCESS)
		return mem_drop(&c->call, result);
	refused = context_primary_made(c, device, context);
	real.cuDevicePrimaryCtxRelease_v2(device);
	return refused ? mem_refuse(&c->call) : CUDA_SUCCESS;
}

/* With the last of them the primary context may end: `device` is its, -1 where nothing of ours is. */
static CUresult destroy_green(CUgreenCtx green, CUdevice device)
{
	CUcontext context = NULL;
	CUresult result;

	if (tenant_state() == TENANT_ON &&
	    (!real.cuCtxFromGreenCtx || real.cuCtxFromGreenCtx(&context, green) != CUDA_SUCCESS))
		context = NULL;
	launch_pause();
	result = real.cuGreenCtxDestroy(green);
	if (result != CUDA_SUCCESS)
		context = NULL;
	if (result != CUDA_SUCCESS || (device >= 0 && context_primary_is_active(device) > 0))
		device = -1;
	launch_resume(context, device);
	return result;
}

CUresult cuGreenCtxCreate(CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
			  unsigned int flags)
{
	struct context_call c;
	enum mem_begin begin = phCtx ? context_begin_primary(&c, dev) : MEM_PASS;
	CUgreenCtx green = NULL;
	CUresult result;

	if (begin == MEM_REFUSED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (begin == MEM_PASS && (!phCtx || !mem_of_process()))
		return real.cuGreenCtxCreate(phCtx, desc, dev, flags);
	result = real.cuGreenCtxCreate(&green, desc, dev, flags);
	if (result != CUDA_SUCCESS)
		return begin == MEM_HELD ? mem_drop(&c.call, result) : result;
	if (begin == MEM_HELD)
		result = enter_primary(&c, dev);
	if (result == CUDA_SUCCESS)
		result = enter_green(green, dev);
	if (result != CUDA_SUCCESS) {
		destroy_green(green, dev);
		context_primary_ended(dev);
		return result;
	}
	*phCtx = green;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx)
{
	struct memory *memory = mem_of_process();
	struct charge entry;
	CUresult result;

	if (!memory || charges_take(memory->charges, AT_GREEN, (uint64_t)(uintptr_t)hCtx, &entry))
		return destroy_green(hCtx, -1);
	result = destroy_green(hCtx, entry.device);
	if (result != CUDA_SUCCESS) {
		memory_put_back(memory, &entry);
		return result;
	}
	mem_leave(memory, &entry);
	context_primary_ended(entry.device);
	return result;
}

CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
	struct memory *memory = mem_of_process();
	CUresult result = real.cuCtxFromGreenCtx(pContext, hCtx);
	struct charge entry, old;

	if (!memory || result != CUDA_SUCCESS ||
	    charges_get(memory->charges, AT_GREEN, (uint64_t)(uintptr_t)hCtx, &entry))
		return result;
	/* One handle for both: it is entered already. */
	if ((uint64_t)(uintptr_t)*pContext == entry.key)
		return result;
	entry = green_entry((uint64_t)(uintptr_t)*pContext, entry.device, 0);
	charges_put(memory->charges, &entry, &old);
	return result;
}

#endif
