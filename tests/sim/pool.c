/*
 * Stream-ordered allocation. A freed block can be used again at once in the stream it was freed
 * in, elsewhere when the stream has come so far.
 */
#include "pool.h"
#include "entries.h"

#include <stdlib.h>

struct pool *pools;

struct pool *pool_of(CUmemoryPool handle)
{
	struct pool *pool = object_check(handle, OBJECT_POOL);
	return pool && !pool->destroyed ? pool : NULL;
}

struct pool *pool_new(CUdevice device)
{
	struct pool *pool = object_new(OBJECT_POOL, sizeof(*pool));
	pool->device = device;
	pool->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	pool->props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	pool->props.location.id = device;
	for (int i = 0; i < 3; i++)
		pool->reuse[i] = 1;
	pool->next = pools;
	pools = pool;
	return pool;
}

struct pool *pool_current(CUdevice device)
{
	struct device *d = &sim.device[device];
	if (!d->default_pool) {
		d->default_pool = pool_new(device);
		d->default_pool->is_default = true;
	}
	if (!d->current_pool)
		d->current_pool = d->default_pool;
	return d->current_pool;
}

/* ---- chunks ---- */

static struct chunk *chunk_new(struct pool *pool, uint64_t bytes)
{
	uint64_t span = round_up(bytes, POOL_CHUNK);
	if (span < bytes)
		return NULL;
	if (pool->props.maxSize && pool->reserved + span > pool->props.maxSize)
		return NULL;
	if (pool->device >= 0 && !device_take(pool->device, span)) {
		if (!pools_trim_device(pool->device) || !device_take(pool->device, span))
			return NULL;
	}
	uint64_t base = space_map(span, false);
	if (!base) {
		if (pool->device >= 0)
			device_give(pool->device, span);
		return NULL;
	}
	struct chunk *chunk = calloc(1, sizeof(*chunk));
	chunk->base = base;
	chunk->bytes = span;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->reserved += span;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	return chunk;
}

uint64_t pool_trim(struct pool *pool, uint64_t keep)
{
	uint64_t released = 0;
	for (struct chunk **at = &pool->chunks; *at;) {
		struct chunk *chunk = *at;
		if (chunk->blocks || pool->reserved <= keep) {
			at = &chunk->next;
			continue;
		}
		*at = chunk->next;
		space_unmap(chunk->base, chunk->bytes);
		if (pool->device >= 0)
			device_give(pool->device, chunk->bytes);
		pool->reserved -= chunk->bytes;
		released += chunk->bytes;
		free(chunk);
	}
	return released;
}

static void pool_bury(struct pool *pool)
{
	for (struct pool **at = &pools; *at; at = &(*at)->next) {
		if (*at != pool)
			continue;
		*at = pool->next;
		break;
	}
	pool_share_drop(pool);
	object_destroy(pool);
}

bool pools_trim_device(CUdevice device)
{
	uint64_t released = 0;
	for (struct pool *pool = pools; pool; pool = pool->next)
		if (pool->device == device)
			released += pool_trim(pool, 0);
	return released > 0;
}

void pools_settle(void)
{
	if (!pools)
		return;
	pthread_mutex_lock(&core_lock);
	struct pool *next;
	for (struct pool *pool = pools; pool; pool = next) {
		next = pool->next;
		pool_trim(pool, pool->destroyed ? 0 : pool->threshold);
		if (pool->destroyed && !pool->chunks)
			pool_bury(pool);
	}
	pthread_mutex_unlock(&core_lock);
}

/* ---- blocks ---- */

static bool may_reuse(const struct block *block, const struct stream *stream)
{
	return block->freed && block->freed_in == stream && stream &&
	       block->freed_stream_id == stream->id;
}

/* A gap, or blocks that this stream freed: where `bytes` fit into the chunk. */
static bool find_gap(const struct chunk *chunk, uint64_t bytes, const struct stream *stream,
		     uint64_t *ret_offset)
{
	uint64_t start = 0;
	for (const struct block *block = chunk->blocks; block; block = block->next) {
		if (may_reuse(block, stream))
			continue;
		if (block->offset - start >= bytes && block->offset >= start)
			break;
		if (block->offset + block->bytes > start)
			start = block->offset + block->bytes;
	}
	for (const struct block *block = chunk->blocks; block; block = block->next)
		if (!may_reuse(block, stream) && block->offset < start + bytes &&
		    start < block->offset + block->bytes)
			return false;
	*ret_offset = start;
	return chunk->bytes - start >= bytes;
}

static void block_remove(struct chunk *chunk, struct block *block)
{
	for (struct block **at = &chunk->blocks; *at; at = &(*at)->next) {
		if (*at != block)
			continue;
		*at = block->next;
		free(block);
		return;
	}
}

static void block_insert(struct chunk *chunk, struct block *block)
{
	struct block **at = &chunk->blocks;
	while (*at && (*at)->offset < block->offset)
		at = &(*at)->next;
	block->next = *at;
	*at = block;
}

CUresult pool_alloc(struct pool *pool, uint64_t bytes, struct stream *stream,
		    struct range **ret_range)
{
	uint64_t span = round_up(bytes ? bytes : 1, 512), offset = 0;
	struct chunk *chunk = pool->chunks;
	if (pool->imported)
		return CUDA_ERROR_INVALID_VALUE;
	while (chunk && !find_gap(chunk, span, stream, &offset))
		chunk = chunk->next;
	if (!chunk) {
		chunk = chunk_new(pool, span);
		offset = 0;
	}
	if (!chunk)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct block *block = calloc(1, sizeof(*block));
	block->offset = offset;
	block->bytes = span;
	block_insert(chunk, block);
	struct range *range = range_new(RANGE_POOL, chunk->base + offset, bytes ? bytes : 1);
	range->pool = pool;
	range->device = pool->device;
	range->context = stream ? stream->context->host : NULL;
	block->range = range;
	pool->used += range->size;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	*ret_range = range;
	return CUDA_SUCCESS;
}

static struct block *find_block(struct pool *pool, const struct range *range,
				struct chunk **ret_chunk)
{
	for (struct chunk *chunk = pool->chunks; chunk; chunk = chunk->next) {
		if (range->base < chunk->base || range->base >= chunk->base + chunk->bytes)
			continue;
		for (struct block *block = chunk->blocks; block; block = block->next) {
			if (block->range != range)
				continue;
			*ret_chunk = chunk;
			return block;
		}
	}
	return NULL;
}

/* The pointer dies at once; the block when its turn in the stream has come. */
static struct block *kill_range(struct range *range, struct chunk **ret_chunk)
{
	struct pool *pool = range->pool;
	struct block *block = find_block(pool, range, ret_chunk);
	pool->used -= range->size < pool->used ? range->size : pool->used;
	if (block) {
		block->range = NULL;
		block->freed = true;
	}
	range_delete(range);
	return block;
}

void pool_free_now(struct range *range)
{
	struct chunk *chunk;
	struct pool *pool = range->pool;
	struct block *block = kill_range(range, &chunk);
	if (block)
		block_remove(chunk, block);
	if (pool->destroyed)
		pool_trim(pool, 0);
}

struct freeing {
	struct pool *pool;
	uint64_t base;
};

/* The effect of a free operation: with core_lock held by whoever moves the stream. */
static void finish_free(void *data)
{
	struct freeing *f = data;
	for (struct chunk *chunk = f->pool->chunks; chunk; chunk = chunk->next) {
		if (f->base < chunk->base || f->base >= chunk->base + chunk->bytes)
			continue;
		for (struct block *block = chunk->blocks; block; block = block->next) {
			if (chunk->base + block->offset != f->base || !block->freed)
				continue;
			block_remove(chunk, block);
			break;
		}
		break;
	}
	free(f);
}

static CUresult free_in_stream(struct stream *stream, struct range *range)
{
	struct freeing *f = malloc(sizeof(*f));
	f->pool = range->pool;
	f->base = range->base;
	struct chunk *chunk;
	struct block *block = kill_range(range, &chunk);
	if (block) {
		block->freed_in = stream;
		block->freed_stream_id = stream->id;
	}
	pthread_mutex_unlock(&core_lock);
	struct op *op = op_new(OP_DEVICE, 0);
	op->effect = finish_free;
	op->data = f;
	queue_add(stream, op);
	pthread_mutex_lock(&core_lock);
	return CUDA_SUCCESS;
}

/* ---- the calls ---- */

static CUresult alloc_async(CUdeviceptr *ret_address, uint64_t bytes, struct pool *pool,
			    struct stream *stream)
{
	struct range *range;
	pthread_mutex_lock(&core_lock);
	queue_progress(stream->context);
	if (!pool)
		pool = pool_current(stream->context->device);
	CUresult result = pool_alloc(pool, bytes, stream, &range);
	if (result == CUDA_SUCCESS)
		*ret_address = range->base;
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuMemAllocAsync(CUdeviceptr *ret_address, size_t bytes, CUstream handle)
{
	struct stream *stream;
	if (!ret_address)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->capture)
		return capture_alloc(stream, bytes, stream->context->device, ret_address);
	result = capture_forbids();
	return result == CUDA_SUCCESS ? alloc_async(ret_address, bytes, NULL, stream) : result;
}

CUresult sim_cuMemAllocFromPoolAsync(CUdeviceptr *ret_address, size_t bytes, CUmemoryPool pool,
				     CUstream handle)
{
	struct stream *stream;
	if (!ret_address || !pool_of(pool))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->capture)
		return capture_alloc(stream, bytes, pool_of(pool)->device, ret_address);
	result = capture_forbids();
	return result == CUDA_SUCCESS ? alloc_async(ret_address, bytes, pool_of(pool), stream)
				      : result;
}

static void free_effect(void *data)
{
	struct range *range = range_at((uint64_t)(uintptr_t)data);
	if (range)
		memory_free_any(range);
}

CUresult sim_cuMemFreeAsync(CUdeviceptr address, CUstream handle)
{
	struct stream *stream;
	CUresult result = stream_resolve(handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->capture)
		return capture_free(stream, address);
	if ((result = capture_forbids()) != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&core_lock);
	struct range *range = range_at(address);
	bool fits = range && range->base == address && !range->freed;
	if (fits && range->kind == RANGE_POOL) {
		result = free_in_stream(stream, range);
	} else if (fits &&
		   (range->kind == RANGE_DEVICE || range->kind == RANGE_MANAGED ||
		    range->kind == RANGE_GRAPH || (range->kind == RANGE_IMPORTED && range->pool))) {
		range->freed = range->kind != RANGE_GRAPH;
		pthread_mutex_unlock(&core_lock);
		struct op *op = op_new(OP_DEVICE, 0);
		op->effect = free_effect;
		op->data = (void *)(uintptr_t)address;
		queue_add(stream, op);
		pthread_mutex_lock(&core_lock);
	} else {
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}
