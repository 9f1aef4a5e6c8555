/*
 * Linear copies and fills. They take device time by their size and take effect at its end. A copy
 * from pageable host memory is staged at the call, one to pageable memory is waited for, as the
 * driver does; a synchronous one waits in any case.
 */
#include "memory.h"
#include "entries.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Fills of more than this write only their first part: the host's memory is not the device's. */
#define FILL_MOST (1024ull * MIB)

#define BYTES_PER_NS_HOST   50ull
#define BYTES_PER_NS_DEVICE 2000ull
#define COPY_COST_NS	    1200ull

/* One effect: a box of rows. Fills repeat `value` (1, 2 or 4 bytes wide). */
struct transfer {
	char *to;
	const char *from;
	void *staged; /* malloc'ed copy of the source, or NULL */
	uint64_t to_pitch, from_pitch, width, height;
	uint64_t to_slice, from_slice, depth;
	uint32_t value;
	unsigned value_bytes;
};

static void fill_row(char *to, uint64_t bytes, uint32_t value, unsigned width)
{
	if (bytes > FILL_MOST)
		bytes = FILL_MOST;
	if (!value && bytes >= 4 * MIB) {
		/* fresh pages read as zero and cost nothing */
		char *first = (char *)round_up((uint64_t)to, 4096);
		char *last = (char *)((uint64_t)(to + bytes) & ~4095ull);
		memset(to, 0, (size_t)(first - to));
		memset(last, 0, (size_t)(to + bytes - last));
		if (madvise(first, (size_t)(last - first), MADV_DONTNEED) == 0)
			return;
	}
	if (width == 1)
		memset(to, (int)value, bytes);
	else
		for (uint64_t i = 0; i + width <= bytes; i += width)
			memcpy(to + i, &value, width);
}

static void run_row(const struct transfer *t, uint64_t slice, uint64_t row)
{
	char *to = t->to + slice * t->to_slice + row * t->to_pitch;
	if (!t->from)
		fill_row(to, t->width, t->value, t->value_bytes);
	else
		memmove(to, t->from + slice * t->from_slice + row * t->from_pitch, t->width);
}

static void run_transfer(void *data)
{
	struct transfer *t = data;
	for (uint64_t slice = 0; slice < t->depth; slice++)
		for (uint64_t row = 0; row < t->height; row++)
			run_row(t, slice, row);
	free(t->staged);
	free(t);
}

static bool is_pageable(uint64_t address)
{
	return !range_at(address);
}

static bool is_host(uint64_t address)
{
	struct range *range = range_at(address);
	return !range || range->kind == RANGE_HOST || range->kind == RANGE_REGISTERED;
}

static bool in_bounds(uint64_t address, uint64_t bytes)
{
	struct range *range = range_at(address);
	if (!range)
		return true; /* pageable host memory: not ours to judge */
	if (range->kind == RANGE_RESERVED || range->freed)
		return false;
	if (range->kind == RANGE_MAPPED)
		return range->access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
		       range->device == CU_DEVICE_CPU;
	return bytes <= range->size - (address - range->base);
}

static uint64_t cost_of(uint64_t bytes, bool over_bus)
{
	return COPY_COST_NS + bytes / (over_bus ? BYTES_PER_NS_HOST : BYTES_PER_NS_DEVICE);
}

static uint64_t extent(uint64_t pitch, uint64_t width, uint64_t height)
{
	return height ? pitch * (height - 1) + width : 0;
}

static void touch(uint64_t address)
{
	struct range *range = range_at(address);
	if (range)
		managed_touch(range);
}

/* Takes over a malloc'ed transfer that core_lock was held for to prepare. */
static CUresult enqueue(struct stream *stream, struct transfer *t, uint64_t cost_ns, bool wait)
{
	struct op *op = op_new(OP_DEVICE, cost_ns);
	op->effect = run_transfer;
	op->data = t;
	uint64_t seq = queue_add(stream, op);
	if (wait)
		queue_wait(stream, seq);
	return CUDA_SUCCESS;
}

CUresult copy_rows(CUstream handle, const struct copy_rows *c, bool synchronous)
{
	struct stream *stream;
	CUresult result = stream_resolve(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!c->width || !c->height)
		return CUDA_SUCCESS;
	if ((result = capture_forbids_legacy(stream)) != CUDA_SUCCESS)
		return result;
	if (stream->capture)
		return synchronous ? capture_unsupported(stream) : capture_copy(stream, c);
	if (synchronous)
		entry_pass_alone();
	uint64_t depth = c->depth ? c->depth : 1;
	struct transfer *t = calloc(1, sizeof(*t));
	*t = (struct transfer){
		.to = (char *)c->to,
		.from = (const char *)c->from,
		.to_pitch = c->to_pitch,
		.from_pitch = c->from_pitch,
		.width = c->width,
		.height = c->height,
		.to_slice = c->to_slice,
		.from_slice = c->from_slice,
		.depth = depth,
	};
	pthread_mutex_lock(&core_lock);
	uint64_t from_bytes =
		c->from_slice * (depth - 1) + extent(c->from_pitch, c->width, c->height);
	uint64_t to_bytes = c->to_slice * (depth - 1) + extent(c->to_pitch, c->width, c->height);
	bool ok = c->to && c->from && (!c->to_device || range_at(c->to)) &&
		  (!c->from_device || range_at(c->from)) &&
		  (c->from_array || in_bounds(c->from, from_bytes)) &&
		  (c->to_array || in_bounds(c->to, to_bytes));
	bool over_bus = is_host(c->from) || is_host(c->to);
	bool wait = synchronous || is_pageable(c->to);
	bool stage = !wait && is_pageable(c->from);
	touch(c->to);
	touch(c->from);
	pthread_mutex_unlock(&core_lock);
	if (!ok) {
		free(t);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (stage) {
		t->staged = malloc(from_bytes);
		memcpy(t->staged, t->from, from_bytes);
		t->from = t->staged;
	}
	return enqueue(stream, t, cost_of(c->width * c->height * depth, over_bus), wait);
}

CUresult fill_rows(CUstream handle, const struct fill_rows *f, bool synchronous)
{
	struct stream *stream;
	CUresult result = stream_resolve(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!f->width || !f->height)
		return CUDA_SUCCESS;
	if (f->to % f->value_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if ((result = capture_forbids_legacy(stream)) != CUDA_SUCCESS)
		return result;
	if (stream->capture)
		return synchronous ? capture_unsupported(stream) : capture_fill(stream, f);
	if (synchronous)
		entry_pass_alone();
	pthread_mutex_lock(&core_lock);
	bool ok = range_at(f->to) && in_bounds(f->to, extent(f->to_pitch, f->width, f->height));
	bool over_bus = is_host(f->to);
	touch(f->to);
	pthread_mutex_unlock(&core_lock);
	if (!ok)
		return CUDA_ERROR_INVALID_VALUE;
	struct transfer *t = calloc(1, sizeof(*t));
	*t = (struct transfer){
		.to = (char *)f->to,
		.to_pitch = f->to_pitch,
		.width = f->width,
		.height = f->height,
		.depth = 1,
		.value = f->value,
		.value_bytes = f->value_bytes,
	};
	return enqueue(stream, t, cost_of(f->width * f->height, over_bus), synchronous);
}

/* Which ends must be device (or mapped) memory. */
enum ends { EITHER = 0, TO_DEVICE = 1, FROM_DEVICE = 2 };

static CUresult copy(CUdeviceptr to, CUdeviceptr from, uint64_t bytes, enum ends ends,
		     CUstream stream, bool synchronous)
{
	struct copy_rows c = {
		.to = to,
		.from = from,
		.width = bytes,
		.height = 1,
		.to_device = ends & TO_DEVICE,
		.from_device = ends & FROM_DEVICE,
	};
	return copy_rows(stream, &c, synchronous);
}

#define ADDRESS(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

CUresult sim_cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return copy(to, from, bytes, EITHER, NULL, true);
}

CUresult sim_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy(to, from, bytes, EITHER, stream, false);
}

CUresult sim_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	return copy(to, ADDRESS(from), bytes, TO_DEVICE, NULL, true);
}

CUresult sim_cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	return copy(ADDRESS(to), from, bytes, FROM_DEVICE, NULL, true);
}

CUresult sim_cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return copy(to, from, bytes, TO_DEVICE | FROM_DEVICE, NULL, true);
}

CUresult sim_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	return copy(to, ADDRESS(from), bytes, TO_DEVICE, stream, false);
}

CUresult sim_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy(ADDRESS(to), from, bytes, FROM_DEVICE, stream, false);
}

CUresult sim_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	return copy(to, from, bytes, TO_DEVICE | FROM_DEVICE, stream, false);
}

CUresult sim_cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
			  CUcontext from_context, size_t bytes)
{
	if (!context_of(to_context) || !context_of(from_context))
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy(to, from, bytes, TO_DEVICE | FROM_DEVICE, NULL, true);
}

CUresult sim_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
			       CUcontext from_context, size_t bytes, CUstream stream)
{
	if (!context_of(to_context) || !context_of(from_context))
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy(to, from, bytes, TO_DEVICE | FROM_DEVICE, stream, false);
}
