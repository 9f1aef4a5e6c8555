/*
 * cuMemAlloc and its family. Device memory is taken in large pages of 2 MiB; allocations of up to
 * half of one share a page, as on the card, where a hundred small ones cost 2 MiB together.
 */
#include "memory.h"
#include "entries.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GRAIN = 512, GRAINS = 4096, PITCH_GRAIN = 512 };

#define SMALL_MOST (LARGE_PAGE / 2)

/* One large page that small allocations share. */
struct slab {
	struct slab *next;
	struct context *context;
	uint64_t base;
	bool low;
	int share;     /* index + 1 */
	unsigned used; /* grains */
	uint8_t taken[GRAINS];
};

static struct slab *slabs;

static int find_grains(const struct slab *slab, unsigned want)
{
	unsigned run = 0;
	if (GRAINS - slab->used < want)
		return -1;
	for (unsigned i = 0; i < GRAINS; i++) {
		run = slab->taken[i] ? 0 : run + 1;
		if (run == want)
			return (int)(i + 1 - want);
	}
	return -1;
}

static struct slab *slab_new(struct context *context, bool low)
{
	if (!device_take(context->device, LARGE_PAGE))
		return NULL;
	struct slab *slab = calloc(1, sizeof(*slab));
	uint64_t base = slab ? space_map(LARGE_PAGE, low) : 0;
	if (!base) {
		free(slab);
		device_give(context->device, LARGE_PAGE);
		return NULL;
	}
	slab->base = base;
	slab->low = low;
	slab->context = context;
	slab->next = slabs;
	slabs = slab;
	return slab;
}

static struct range *small_alloc(struct context *context, uint64_t bytes, bool low)
{
	unsigned want = (unsigned)((bytes + GRAIN - 1) / GRAIN);
	struct slab *slab;
	int at = -1;
	for (slab = slabs; slab; slab = slab->next) {
		if (slab->context != context || slab->low != low)
			continue;
		at = find_grains(slab, want);
		if (at >= 0)
			break;
	}
	if (!slab) {
		slab = slab_new(context, low);
		at = 0;
	}
	if (!slab)
		return NULL;
	memset(&slab->taken[at], 1, want);
	slab->used += want;
	struct range *range = range_new(RANGE_DEVICE, slab->base + (uint64_t)at * GRAIN, bytes);
	range->slab = slab;
	return range;
}

static void give_back(CUdevice device, uint64_t bytes, int share)
{
	if (!share) {
		device_give(device, bytes);
		return;
	}
	state_lock();
	state_share_put((uint32_t)share - 1, sim.slot);
	state_unlock();
}

static void small_free(struct range *range)
{
	struct slab *slab = range->slab;
	unsigned want = (unsigned)((range->size + GRAIN - 1) / GRAIN);
	memset(&slab->taken[(range->base - slab->base) / GRAIN], 0, want);
	slab->used -= want;
	if (slab->used)
		return;
	for (struct slab **at = &slabs; *at; at = &(*at)->next) {
		if (*at != slab)
			continue;
		*at = slab->next;
		break;
	}
	space_unmap(slab->base, LARGE_PAGE);
	give_back(slab->context->device, LARGE_PAGE, slab->share);
	free(slab);
}

static struct range *large_alloc(struct context *context, uint64_t bytes, bool low)
{
	uint64_t span = round_up(bytes, LARGE_PAGE);
	if (span < bytes || !device_take(context->device, span))
		return NULL;
	uint64_t base = space_map(span, low);
	struct range *range = base ? range_new(RANGE_DEVICE, base, bytes) : NULL;
	if (!range) {
		device_give(context->device, span);
		return NULL;
	}
	range->span = span;
	range->charged = span;
	return range;
}

CUresult linear_alloc(struct context *context, uint64_t bytes, bool low, struct range **ret_range)
{
	struct range *range = NULL;
	for (int try = 0; !range && try < 2; try++) {
		/* what pools keep for later is given up before an allocation fails */
		if (try && !pools_trim_device(context->device))
			break;
		range = bytes <= SMALL_MOST ? small_alloc(context, bytes, low)
					    : large_alloc(context, bytes, low);
	}
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	range->device = context->device;
	range->context = context;
	*ret_range = range;
	return CUDA_SUCCESS;
}

void linear_free(struct range *range)
{
	if (range->slab)
		small_free(range);
	if (range->span)
		space_unmap(range->map_base ? range->map_base : range->base, range->span);
	if (range->charged || range->share)
		give_back(range->device, range->charged, range->share);
	range_delete(range);
}

/* The memory behind [base, base + bytes) moves into a share and stays where it is. */
static int share_bytes(uint64_t base, uint64_t bytes, CUdevice device)
{
	state_lock();
	int share = state_share_new(sim.slot, sim.device[device].physical, bytes);
	state_unlock();
	int fd = share < 0 ? -1 : state_share_data((uint32_t)share);
	if (fd < 0)
		return 0;
	static const char zeros[4096];
	for (uint64_t at = 0; at < bytes; at += sizeof(zeros))
		if (memcmp((char *)base + at, zeros, sizeof(zeros)) != 0 &&
		    pwrite(fd, (char *)base + at, sizeof(zeros), (off_t)at) < 0)
			break;
	mmap((void *)base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	return share + 1;
}

bool linear_share(struct range *range, int *ret_share, uint64_t *ret_offset)
{
	struct slab *slab = range->slab;
	int *share = slab ? &slab->share : &range->share;
	if (!*share)
		*share = slab ? share_bytes(slab->base, LARGE_PAGE, range->device)
			      : share_bytes(range->base, range->span, range->device);
	*ret_share = *share - 1;
	*ret_offset = slab ? range->base - slab->base : 0;
	return *share != 0;
}

static CUresult alloc(uint64_t bytes, bool low, CUdeviceptr *ret_address)
{
	CUresult result = capture_forbids();
	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_address || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	struct range *range;
	pthread_mutex_lock(&core_lock);
	result = linear_alloc(context_current()->host, bytes, low, &range);
	if (result == CUDA_SUCCESS)
		*ret_address = range->base;
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuMemAlloc_v2(CUdeviceptr *ret_address, size_t bytes)
{
	return alloc(bytes, false, ret_address);
}

CUresult sim_cuMemAlloc(CUdeviceptr_v1 *ret_address, unsigned int bytes)
{
	CUdeviceptr address;
	CUresult result = alloc(bytes, true, ret_address ? &address : NULL);
	if (result == CUDA_SUCCESS)
		*ret_address = (CUdeviceptr_v1)address;
	return result;
}

static CUresult alloc_pitch(uint64_t width, uint64_t height, unsigned element, bool low,
			    CUdeviceptr *ret_address, uint64_t *ret_pitch)
{
	if (!width || !height || (element != 4 && element != 8 && element != 16) ||
	    width > UINT64_MAX / 2 - PITCH_GRAIN)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t pitch = round_up(width, PITCH_GRAIN), bytes;
	if (__builtin_mul_overflow(pitch, height, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = alloc(bytes, low, ret_address);
	if (result == CUDA_SUCCESS)
		*ret_pitch = pitch;
	return result;
}

CUresult sim_cuMemAllocPitch_v2(CUdeviceptr *ret_address, size_t *ret_pitch, size_t width,
				size_t height, unsigned int element)
{
	if (!ret_address || !ret_pitch)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t pitch;
	CUresult result = alloc_pitch(width, height, element, false, ret_address, &pitch);
	if (result == CUDA_SUCCESS)
		*ret_pitch = pitch;
	return result;
}

CUresult sim_cuMemAllocPitch(CUdeviceptr_v1 *ret_address, unsigned int *ret_pitch,
			     unsigned int width, unsigned int height, unsigned int element)
{
	CUdeviceptr address;
	uint64_t pitch;
	if (!ret_address || !ret_pitch)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = alloc_pitch(width, height, element, true, &address, &pitch);
	if (result == CUDA_SUCCESS) {
		*ret_address = (CUdeviceptr_v1)address;
		*ret_pitch = (unsigned)pitch;
	}
	return result;
}

/* Synchronous frees wait for the device, as the driver does. */
CUresult sim_cuMemFree_v2(CUdeviceptr address)
{
	CUresult result = capture_forbids();
	if (result != CUDA_SUCCESS)
		return result;
	if (!address)
		return CUDA_SUCCESS;
	entry_pass_alone();
	pthread_mutex_lock(&core_lock);
	struct range *range = range_at(address);
	struct context *context = range ? range->context : NULL;
	bool ok = range && range->base == address && !range->freed &&
		  (range->kind == RANGE_DEVICE || range->kind == RANGE_MANAGED ||
		   range->kind == RANGE_POOL || range->kind == RANGE_GRAPH ||
		   range->kind == RANGE_EXTERNAL || (range->kind == RANGE_IMPORTED && range->pool));
	pthread_mutex_unlock(&core_lock);
	if (!ok)
		return CUDA_ERROR_INVALID_VALUE;
	if (context)
		queue_wait_context(context);
	pthread_mutex_lock(&core_lock);
	range = range_at(address);
	result =
		range && range->base == address ? memory_free_any(range) : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuMemFree(CUdeviceptr_v1 address)
{
	return sim_cuMemFree_v2(address);
}

CUresult sim_cuMemGetAddressRange_v2(CUdeviceptr *ret_base, size_t *ret_size, CUdeviceptr address)
{
	pthread_mutex_lock(&core_lock);
	struct range *range = range_at(address);
	CUresult result = CUDA_SUCCESS;
	if (!range || range->kind == RANGE_RESERVED || range->freed) {
		result = CUDA_ERROR_NOT_FOUND;
	} else {
		if (ret_base)
			*ret_base = range->base;
		if (ret_size)
			*ret_size = range->size;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuMemGetAddressRange(CUdeviceptr_v1 *ret_base, unsigned int *ret_size,
				  CUdeviceptr_v1 address)
{
	CUdeviceptr base;
	size_t size;
	CUresult result = sim_cuMemGetAddressRange_v2(&base, &size, address);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_base)
		*ret_base = (CUdeviceptr_v1)base;
	if (ret_size)
		*ret_size = (unsigned)size;
	return CUDA_SUCCESS;
}

static bool dies_with_context(const struct range *range, const struct context *context)
{
	if (range->context != context)
		return false;
	return range->kind == RANGE_DEVICE || range->kind == RANGE_MANAGED ||
	       range->kind == RANGE_HOST || range->kind == RANGE_REGISTERED ||
	       range->kind == RANGE_IMPORTED || range->kind == RANGE_EXTERNAL ||
	       range->kind == RANGE_GLOBAL;
}

void memory_release_context(struct context *context)
{
	for (size_t i = range_count(); i; i--) {
		struct range *range = range_number(i - 1);
		if (range && dies_with_context(range, context))
			linear_free(range);
	}
}
