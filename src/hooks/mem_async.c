/*
 * Stream-ordered allocation: cuMemAllocAsync, from pools, and its free, each ABI.
 *
 * The way that matters is short: the pool has room (two loads), the driver's call, one look-up. The driver
 * is asked what the pool reserves only when that may have changed. On a capturing stream the call makes a
 * graph node and takes nothing (graph_mem.c).
 */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "hooks/capture.h"
#include "hooks/mem_pool.h"
#include "hooks/process.h"

enum { GRAIN_BYTES = 512 };

struct pool_call {
	struct mem_call call;
	struct pool *pool;
	CUstream stream; /* explicit: the per-thread default stream by its own handle */
	uint64_t held;
};

static CUstream explicit_stream(CUstream stream, int per_thread)
{
	return per_thread && !stream ? CU_STREAM_PER_THREAD : stream;
}

/* With several seats the stream's device decides, not the current context's. */
static struct device_tenant *device_of(CUstream stream)
{
	struct process *process = atomic_load_explicit(&tenant_process, memory_order_relaxed);
	struct device_tenant *only = atomic_load_explicit(&process->only, memory_order_acquire);

	if (only)
		return only;
	if ((uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD)
		return tenant_of_current();
	return tenant_of_stream(stream);
}

static __attribute__((noinline)) enum mem_begin hold_growth(struct pool_call *c, uint64_t growth)
{
	struct mem_want want = {c->call.tenant, growth, 0};
	struct relief relief = mem_relief(c->call.memory, &want);
	unsigned attempt = 0;
	uint64_t others;

	/* What it may really have to grow by may be less, after the trim: ask again. */
	while (hold_is_short(c->pool->member, growth, &relief, &others) &&
	       mem_give_up(&want, attempt++))
		want.bytes = growth = pool_growth(c->pool, c->call.asked_bytes);
	c->call.looked = want.looked;
	c->call.hold = (struct hold){.member = c->pool->member, .kind = CHARGE_POOL};
	c->call.refusal = (struct refusal){0};
	if (growth && pool_hold(c->pool, growth, others, &c->call.refusal)) {
		mem_refuse(&c->call);
		return MEM_REFUSED;
	}
	c->held = growth;
	return MEM_HELD;
}

/* handle NULL: the device's current pool. */
static inline __attribute__((always_inline)) enum mem_begin
pool_begin(struct pool_call *c, CUmemoryPool handle, uint64_t bytes, CUstream stream,
	   int per_thread)
{
	uint64_t growth;
	int unknown = 0;

	c->call.memory = mem_of_process();
	if (!c->call.memory)
		return MEM_PASS;
	c->stream = explicit_stream(stream, per_thread);
	if (capture_is_on(c->stream))
		return MEM_PASS;
	c->call.tenant = device_of(c->stream);
	if (!c->call.tenant)
		return MEM_PASS;
	c->pool = handle ? mem_pool_named(c->call.memory, handle, c->call.tenant, &unknown)
			 : mem_pool_current(c->call.memory, c->call.tenant);
	if (!c->pool) /* a device without pools, or no account is left for this one */
		return !unknown && pools_full(&c->call.memory->pools) ? MEM_REFUSED : MEM_PASS;
	if (!c->pool->member)
		return MEM_PASS;
	/* The pool's device is the one that is charged, and trimmed before a refusal, not the stream's. */
	if (__builtin_expect(c->pool->device != c->call.tenant->ordinal, 0))
		c->call.tenant = tenant_of_device(c->pool->device);
	c->held = 0;
	c->call.looked = 0;
	c->call.asked_bytes = bytes;
	if (__builtin_expect(pool_has_room(c->pool, bytes), 1))
		return MEM_HELD;
	growth = pool_growth(c->pool, bytes);
	return growth == 0 ? MEM_HELD : hold_growth(c, growth);
}

/* The growth does not fit. The block is given back; when it is (streams run in their time) the pool shrinks. */
static CUresult pool_undo(struct pool_call *c, CUdeviceptr address)
{
	uint64_t end = clock_now_ns() + 100 * NS_PER_MS;
	const struct timespec nap = {0, 200000};

	real.cuMemFreeAsync(address, c->stream);
	while (real.cuStreamQuery && real.cuStreamQuery(c->stream) == CUDA_ERROR_NOT_READY &&
	       clock_now_ns() < end)
		nanosleep(&nap, NULL);
	mem_pools_trim(c->call.memory, c->pool->device);
	c->call.hold.bytes = 0;
	return mem_refuse(&c->call);
}

/* The driver said no. */
static CUresult pool_drop(struct pool_call *c, CUresult result)
{
	if (c->held)
		mem_pool_drop(c->pool, c->held);
	c->call.hold.bytes = 0;
	return mem_drop(&c->call, result);
}

/* Enters the block. 0, or -ENOMEM without memory of our own. */
static int enter_block(struct pool_call *c, uint64_t address, uint64_t live, uint64_t number)
{
	struct charge old, entry = {.key = address,
				    .bytes = live,
				    .owner = number,
				    .refs = 1,
				    .space = AT_ADDRESS,
				    .kind = CHARGE_POOL,
				    .device = c->pool->device};
	int before = charges_put(c->call.memory->charges, &entry, &old);

	if (before == 1 && !(old.flags & CHARGE_FREED))
		mem_leave(c->call.memory, &old);
	return before < 0 ? before : 0;
}

/* Its memory may be new: what the pool reserves is to be read. `again`: the block has its entry. */
static __attribute__((noinline)) CUresult pool_end_new(struct pool_call *c, CUdeviceptr address,
						       CUdeviceptr *ret_address, uint64_t live,
						       uint64_t number, int again)
{
	int failed = again ? 0 : enter_block(c, address, live, number);
	struct charge gone;

	if (failed)
		c->call.refusal = (struct refusal){0};
	if (failed || mem_pool_refresh(c->pool, c->held, &c->call.refusal)) {
		charges_take(c->call.memory->charges, AT_ADDRESS, address, &gone);
		if (failed)
			mem_pool_refresh(c->pool, c->held, NULL);
		return pool_undo(c, address);
	}
	if (mem_outgrown(&c->call)) {
		charges_take(c->call.memory->charges, AT_ADDRESS, address, &gone);
		return pool_undo(c, address);
	}
	pool_live(c->pool, (int64_t)live);
	*ret_address = address;
	return CUDA_SUCCESS;
}

static CUresult pool_end_call(struct pool_call *c, CUresult result, CUdeviceptr address,
			      CUdeviceptr *ret_address)
{
	uint64_t live = (c->call.asked_bytes + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES;
	uint64_t number = pools_number(&c->call.memory->pools, c->pool);
	int again;

	if (__builtin_expect(result != CUDA_SUCCESS, 0))
		return pool_drop(c, result);
	again = charges_renew(c->call.memory->charges, address, number, live);
	/* Backed already, and the pool never gives memory back by itself: nothing can have changed. */
	if (__builtin_expect(!again || c->held ||
				     atomic_load_explicit(&c->pool->release_threshold,
							  memory_order_relaxed) != UINT64_MAX,
			     0))
		return pool_end_new(c, address, ret_address, live, number, again);
	pool_live(c->pool, (int64_t)live);
	*ret_address = address;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	struct pool_call c;
	CUdeviceptr address = 0;
	CUresult result;

	switch (dptr ? pool_begin(&c, NULL, bytesize, hStream, 0) : MEM_PASS) {
	case MEM_PASS: return real.cuMemAllocAsync(dptr, bytesize, hStream);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuMemAllocAsync(&address, bytesize, hStream);
	return pool_end_call(&c, result, address, dptr);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	struct pool_call c;
	CUdeviceptr address = 0;
	CUresult result;

	switch (dptr ? pool_begin(&c, NULL, bytesize, hStream, 1) : MEM_PASS) {
	case MEM_PASS: return real.cuMemAllocAsync_ptsz(dptr, bytesize, hStream);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuMemAllocAsync_ptsz(&address, bytesize, hStream);
	return pool_end_call(&c, result, address, dptr);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
				 CUstream hStream)
{
	struct pool_call c;
	CUdeviceptr address = 0;
	CUresult result;

	switch (dptr && pool ? pool_begin(&c, pool, bytesize, hStream, 0) : MEM_PASS) {
	case MEM_PASS: return real.cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuMemAllocFromPoolAsync(&address, bytesize, pool, hStream);
	return pool_end_call(&c, result, address, dptr);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
				      CUstream hStream)
{
	struct pool_call c;
	CUdeviceptr address = 0;
	CUresult result;

	switch (dptr && pool ? pool_begin(&c, pool, bytesize, hStream, 1) : MEM_PASS) {
	case MEM_PASS: return real.cuMemAllocFromPoolAsync_ptsz(dptr, bytesize, pool, hStream);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuMemAllocFromPoolAsync_ptsz(&address, bytesize, pool, hStream);
	return pool_end_call(&c, result, address, dptr);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	struct memory *memory = mem_of_process();
	struct charge entry;
	CUresult result;

	if (!memory || mem_take_address(memory, dptr, &entry))
		return real.cuMemFreeAsync(dptr, hStream);
	result = real.cuMemFreeAsync(dptr, hStream);
	mem_freed_address(memory, &entry, result);
	return result;
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
	struct memory *memory = mem_of_process();
	struct charge entry;
	CUresult result;

	if (!memory || mem_take_address(memory, dptr, &entry))
		return real.cuMemFreeAsync_ptsz(dptr, hStream);
	result = real.cuMemFreeAsync_ptsz(dptr, hStream);
	mem_freed_address(memory, &entry, result);
	return result;
}
