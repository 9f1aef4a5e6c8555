/* Gates; gate.h tells what they are. Only the program's own threads call the driver here. */
#include <errno.h>

#include "base/clock.h"
#include "base/spin.h"
#include "hooks/context.h"
#include "hooks/gate.h"
#include "hooks/hooks.h"
#include "hooks/mem_call.h"
#include "sched/sched.h"

#define WORDS_BYTES 4096u
#define SAMPLE_WORD 16u
#define MARK_WORD   32u

#define SAMPLE_CLOSED_MAX_NS (2 * NS_PER_MS) /* a launch call takes some 5 us */

enum { GATE_UNTRIED, GATE_MAKING, GATE_USABLE, GATE_ABSENT, GATE_PAUSED };

/* Which context's memory serves a stream of this one: that of green contexts is the primary one's. */
static CUcontext owner_of(CUcontext context)
{
	struct memory *memory = mem_of_process();

	return memory ? context_owner(memory, context) : context;
}

static CUcontext current_owner(void)
{
	CUcontext context = NULL;

	return real.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? owner_of(context) : NULL;
}

static CUcontext stream_owner(CUstream stream)
{
	CUcontext context = NULL;

	if (!real.cuStreamGetCtx || real.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS)
		return current_owner();
	return owner_of(context);
}

static int make_words(struct gate *gate, struct sched *sched)
{
	void *host = NULL;

	if (!real.cuStreamWaitValue32_v2 || !real.cuStreamWriteValue32_v2 || !real.cuMemHostAlloc ||
	    !real.cuMemHostGetDevicePointer_v2)
		return -ENOSYS;
	if (real.cuMemHostAlloc(&host, WORDS_BYTES,
				CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) !=
	    CUDA_SUCCESS)
		return -ENOMEM;
	if (real.cuMemHostGetDevicePointer_v2(&gate->device_words, host, 0) != CUDA_SUCCESS) {
		real.cuMemFreeHost(host);
		return -ENOSYS;
	}
	gate->words = host;
	atomic_store(&gate->words[SAMPLE_WORD], gate->sample_next);
	sched_move_words(sched, &gate->words[0], &gate->words[MARK_WORD]);
	return 0;
}

int gate_usable(struct gate *gate, struct sched *sched, CUstream stream)
{
	uint32_t state = atomic_load_explicit(&gate->state, memory_order_acquire);
	CUcontext owner;

	if (state != GATE_USABLE && state != GATE_UNTRIED)
		return 0;
	owner = stream_owner(stream);
	if (state == GATE_USABLE)
		return owner == gate->context;
	if (!owner || owner != current_owner() ||
	    !atomic_compare_exchange_strong(&gate->state, &state, GATE_MAKING))
		return 0;
	gate->context = owner;
	state = make_words(gate, sched) == 0 ? GATE_USABLE : GATE_ABSENT;
	atomic_store_explicit(&gate->state, state, memory_order_release);
	return state == GATE_USABLE;
}

void gate_pause(struct gate *gate, struct sched *sched)
{
	uint32_t usable = GATE_USABLE;

	spin_lock(&gate->lock);
	if (atomic_compare_exchange_strong(&gate->state, &usable, GATE_PAUSED)) {
		atomic_store(&gate->words[SAMPLE_WORD], gate->sample_next);
		sched_own_words(sched);
	}
	spin_unlock(&gate->lock);
}

void gate_resume(struct gate *gate, struct sched *sched, int gone)
{
	if (atomic_load(&gate->state) != GATE_PAUSED)
		return;
	if (!gone)
		sched_move_words(sched, &gate->words[0], &gate->words[MARK_WORD]);
	for (unsigned i = 0; gone && i < GATE_STREAMS; i++)
		atomic_store(&gate->waited[i], 0);
	atomic_store_explicit(&gate->state, gone ? GATE_UNTRIED : GATE_USABLE,
			      memory_order_release);
}

/* The per-thread default stream is one handle for many streams: told apart by the thread's errno. */
static uint32_t stream_hash(CUstream stream)
{
	uintptr_t id = (uintptr_t)stream;

	if (stream == CU_STREAM_PER_THREAD)
		id ^= (uintptr_t)&errno;
	id *= 0x9e3779b97f4a7c15ull;
	return (uint32_t)(id >> 32) | 1;
}

int gate_wait_turn(struct gate *gate, CUstream stream, uint32_t chunk)
{
	uint32_t hash = stream_hash(stream);
	_Atomic uint64_t *entry = &gate->waited[hash / 2 % GATE_STREAMS];
	uint64_t mark = (uint64_t)hash << 32 | chunk;
	CUresult rc;

	if (atomic_load_explicit(entry, memory_order_relaxed) == mark)
		return 0;
	rc = real.cuStreamWaitValue32_v2(stream, gate->device_words, chunk,
					 CU_STREAM_WAIT_VALUE_GEQ);
	if (rc != CUDA_SUCCESS)
		return -1;
	atomic_store_explicit(entry, mark, memory_order_relaxed);
	return 0;
}

unsigned gate_lane(CUstream stream)
{
	return stream_hash(stream) / 2 % SCHED_LANES;
}

int gate_write_mark(struct gate *gate, CUstream stream, uint32_t mark)
{
	CUdeviceptr lane = gate->device_words + (MARK_WORD + gate_lane(stream)) * 4;

	return real.cuStreamWriteValue32_v2(stream, lane, mark, CU_STREAM_WRITE_VALUE_DEFAULT) ==
			       CUDA_SUCCESS
		       ? 0
		       : -1;
}

int gate_close_sample(struct gate *gate, CUstream stream, uint32_t *ret_ticket)
{
	*ret_ticket = ++gate->sample_next;
	atomic_store_explicit(&gate->sample_closed_ns, clock_now_ns(), memory_order_release);
	return real.cuStreamWaitValue32_v2(stream, gate->device_words + SAMPLE_WORD * 4,
					   *ret_ticket, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS
		       ? 0
		       : -1;
}

void gate_open_sample(struct gate *gate, uint32_t ticket)
{
	atomic_store_explicit(&gate->words[SAMPLE_WORD], ticket, memory_order_release);
	atomic_store_explicit(&gate->sample_closed_ns, 0, memory_order_release);
}

void gate_watch(struct gate *gate, uint64_t now_ns)
{
	uint64_t since = atomic_load_explicit(&gate->sample_closed_ns, memory_order_acquire);

	if (since == 0 || now_ns < since + SAMPLE_CLOSED_MAX_NS)
		return;
	spin_lock(&gate->lock);
	if (atomic_load(&gate->state) == GATE_USABLE)
		atomic_store_explicit(&gate->words[SAMPLE_WORD], gate->sample_next,
				      memory_order_release);
	spin_unlock(&gate->lock);
}
