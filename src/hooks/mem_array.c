/*
 * Arrays and mipmapped arrays, each ABI, and mappings of sparse ones.
 *
 * What an array takes is known when it exists (cuArrayGetMemoryRequirements); before, its texels rounded to
 * pages are held. Sparse and deferred ones take nothing until memory is mapped into them.
 */
#include "hooks/mem_call.h"
#include "hooks/mem_virtual.h"

static unsigned texel_bytes(CUarray_format format, unsigned channels)
{
	switch ((unsigned)format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8: return channels;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF: return 2 * channels;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT: return 4 * channels;
	default:
		return 4 *
		       (channels ? channels : 4); /* packed and block formats: at least as much */
	}
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b ? b : 1, &product) ? UINT64_MAX : product;
}

/* Small arrays share pages, as small linear memory does. */
static uint64_t array_round(uint64_t bytes)
{
	return bytes <= BLOCK_BYTES / 2 ? (bytes + 0xffff) & ~0xffffull : blocks_round(bytes);
}

static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	uint64_t row = times(d->Width, texel_bytes(d->Format, d->NumChannels));

	if (d->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
		return 0;
	return array_round(times(times(row, d->Height), d->Depth));
}

static CUDA_ARRAY3D_DESCRIPTOR from_2d(const CUDA_ARRAY_DESCRIPTOR *d)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){.Width = d->Width,
					 .Height = d->Height,
					 .Format = d->Format,
					 .NumChannels = d->NumChannels};
}

static CUDA_ARRAY3D_DESCRIPTOR from_2d_v1(const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){.Width = d->Width,
					 .Height = d->Height,
					 .Format = d->Format,
					 .NumChannels = d->NumChannels};
}

static CUDA_ARRAY3D_DESCRIPTOR from_3d_v1(const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){.Width = d->Width,
					 .Height = d->Height,
					 .Depth = d->Depth,
					 .Format = d->Format,
					 .NumChannels = d->NumChannels,
					 .Flags = d->Flags};
}

/* After the driver's call: at what it really takes, or undone. */
static CUresult array_end(struct mem_call *call, CUresult result, CUarray array, CUarray *ret)
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	struct charge entry;
	int refused = 0;

	if (result != CUDA_SUCCESS)
		return mem_drop(call, result);
	entry = mem_entry(call, AT_ARRAY, (uint64_t)(uintptr_t)array, 0);
	if (call->hold.bytes && real.cuArrayGetMemoryRequirements &&
	    real.cuArrayGetMemoryRequirements(&needs, array, call->tenant->device) == CUDA_SUCCESS)
		refused = hold_settle(&call->hold, array_round(needs.size), &call->refusal);
	if (refused || memory_enter(call->memory, &call->hold, &entry)) {
		real.cuArrayDestroy(array);
		return mem_refuse(call);
	}
	*ret = array;
	return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	struct mem_call call;
	CUarray array = NULL;
	CUresult result;

	if (!pHandle || !pAllocateArray)
		return real.cuArrayCreate_v2(pHandle, pAllocateArray);
	d = from_2d(pAllocateArray);
	switch (mem_begin(&call, CHARGE_ARRAY, array_bytes(&d))) {
	case MEM_PASS: return real.cuArrayCreate_v2(pHandle, pAllocateArray);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuArrayCreate_v2(&array, pAllocateArray);
	return array_end(&call, result, array, pHandle);
}

CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	struct mem_call call;
	CUarray array = NULL;
	CUresult result;

	if (!pHandle || !pAllocateArray)
		return real.cuArrayCreate(pHandle, pAllocateArray);
	d = from_2d_v1(pAllocateArray);
	switch (mem_begin(&call, CHARGE_ARRAY, array_bytes(&d))) {
	case MEM_PASS: return real.cuArrayCreate(pHandle, pAllocateArray);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuArrayCreate(&array, pAllocateArray);
	return array_end(&call, result, array, pHandle);
}

CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	struct mem_call call;
	CUarray array = NULL;
	CUresult result;

	if (!pHandle || !pAllocateArray)
		return real.cuArray3DCreate_v2(pHandle, pAllocateArray);
	switch (mem_begin(&call, CHARGE_ARRAY, array_bytes(pAllocateArray))) {
	case MEM_PASS: return real.cuArray3DCreate_v2(pHandle, pAllocateArray);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuArray3DCreate_v2(&array, pAllocateArray);
	return array_end(&call, result, array, pHandle);
}

CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	struct mem_call call;
	CUarray array = NULL;
	CUresult result;

	if (!pHandle || !pAllocateArray)
		return real.cuArray3DCreate(pHandle, pAllocateArray);
	d = from_3d_v1(pAllocateArray);
	switch (mem_begin(&call, CHARGE_ARRAY, array_bytes(&d))) {
	case MEM_PASS: return real.cuArray3DCreate(pHandle, pAllocateArray);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuArray3DCreate(&array, pAllocateArray);
	return array_end(&call, result, array, pHandle);
}

/* All levels together are at most 4/3 (2D) or 8/7 (3D) of the first, each rounded: half more is enough. */
static uint64_t mipmap_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	uint64_t first = array_bytes(d);

	if (levels <= 1 || first > UINT64_MAX / 2)
		return first;
	return array_round(first + first / 2);
}

static CUresult mipmap_end(struct mem_call *call, CUmipmappedArray array, CUmipmappedArray *ret)
{
	struct charge entry = mem_entry(call, AT_MIPMAP, (uint64_t)(uintptr_t)array, 0);
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	int refused = 0;

	if (call->hold.bytes && real.cuMipmappedArrayGetMemoryRequirements &&
	    real.cuMipmappedArrayGetMemoryRequirements(&needs, array, call->tenant->device) ==
		    CUDA_SUCCESS)
		refused = hold_settle(&call->hold, array_round(needs.size), &call->refusal);
	if (refused || memory_enter(call->memory, &call->hold, &entry)) {
		real.cuMipmappedArrayDestroy(array);
		return mem_refuse(call);
	}
	*ret = array;
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
				const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
				unsigned int numMipmapLevels)
{
	struct mem_call call;
	CUmipmappedArray array = NULL;
	CUresult result;

	if (!pHandle || !pMipmappedArrayDesc)
		return real.cuMipmappedArrayCreate(pHandle, pMipmappedArrayDesc, numMipmapLevels);
	switch (mem_begin(&call, CHARGE_ARRAY,
			  mipmap_bytes(pMipmappedArrayDesc, numMipmapLevels))) {
	case MEM_PASS:
		return real.cuMipmappedArrayCreate(pHandle, pMipmappedArrayDesc, numMipmapLevels);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuMipmappedArrayCreate(&array, pMipmappedArrayDesc, numMipmapLevels);
	if (result != CUDA_SUCCESS)
		return mem_drop(&call, result);
	return mipmap_end(&call, array, pHandle);
}

/* Gives back the array, and what was mapped into it. */
static void destroyed(struct memory *memory, const struct charge *entry, CUresult result)
{
	if (result != CUDA_SUCCESS) {
		memory_put_back(memory, entry);
		return;
	}
	mem_leave(memory, entry);
	mem_sparse_ended(memory, entry->key);
}

CUresult cuArrayDestroy(CUarray hArray)
{
	struct memory *memory = mem_of_process();
	struct charge entry;
	CUresult result;

	if (!memory || charges_take(memory->charges, AT_ARRAY, (uint64_t)(uintptr_t)hArray, &entry))
		return real.cuArrayDestroy(hArray);
	result = real.cuArrayDestroy(hArray);
	destroyed(memory, &entry, result);
	return result;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	struct memory *memory = mem_of_process();
	struct charge entry;
	CUresult result;

	if (!memory ||
	    charges_take(memory->charges, AT_MIPMAP, (uint64_t)(uintptr_t)hMipmappedArray, &entry))
		return real.cuMipmappedArrayDestroy(hMipmappedArray);
	result = real.cuMipmappedArrayDestroy(hMipmappedArray);
	destroyed(memory, &entry, result);
	return result;
}
