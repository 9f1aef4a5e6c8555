/*
 * Arrays and mipmapped arrays, each ABI, and mappings of sparse ones.
 *
 * The driver tells an array's size only for those it gives no memory (deferred mapping), so it is worked out:
 * padded rows, all levels, whole pages. Where a layout takes more, the books show it as overhead.
 */
#include "hooks/mem_call.h"
#include "hooks/mem_virtual.h"

/* Rows are padded to this; with it the sizes of large arrays are the driver's (H200, driver 580). */
#define ROW_BYTES 512u

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b ? b : 1, &product) ? UINT64_MAX : product;
}

/* Bytes of one channel. Packed and planar video formats: four, which is at least what they take. */
static unsigned channel_bytes(CUarray_format format)
{
	switch ((unsigned)format) {
	case 0x01: /* 8 bits, signed or not, normalized or not */
	case 0x08:
	case 0xc0:
	case 0xc1:
	case 0xc2:
	case 0xc6:
	case 0xc7:
	case 0xc8: return 1;
	case 0x02: /* 16 bits */
	case 0x09:
	case 0x10:
	case 0xc3:
	case 0xc4:
	case 0xc5:
	case 0xc9:
	case 0xca:
	case 0xcb: return 2;
	default: return 4;
	}
}

/* Block compression: bytes of 4 x 4 texels, 0 for other formats. */
static unsigned compressed_bytes(CUarray_format format)
{
	unsigned code = (unsigned)format;

	if (code < 0x91 || code > 0x9e)
		return 0;
	return code <= 0x92 || code == 0x97 || code == 0x98 ? 8 : 16; /* BC1 and BC4 */
}

/* Small arrays share pages, as small linear memory does. */
static uint64_t array_round(uint64_t bytes)
{
	return bytes <= BLOCK_BYTES / 2 ? bytes : blocks_round(bytes);
}

/* Of one level, before rounding. */
static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned level)
{
	int layered = d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	uint64_t width = d->Width >> level, height = d->Height >> level;
	uint64_t depth = layered ? d->Depth : d->Depth >> level, row;
	unsigned compressed = compressed_bytes(d->Format);

	width = width ? width : 1;
	if (compressed) {
		row = times((width + 3) / 4, compressed);
		height = (height + 3) / 4;
	} else {
		row = times(width,
			    channel_bytes(d->Format) * (d->NumChannels ? d->NumChannels : 1));
	}
	if (row < UINT64_MAX - ROW_BYTES)
		row = (row + ROW_BYTES - 1) / ROW_BYTES * ROW_BYTES;
	return times(times(row, height), depth);
}

/* Sparse arrays and those with deferred mapping take nothing by themselves. */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	uint64_t bytes = 0;

	if (d->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
		return 0;
	for (unsigned level = 0; level < levels && level < 32; level++)
		if (__builtin_add_overflow(bytes, level_bytes(d, level), &bytes))
			return UINT64_MAX;
	return array_round(bytes);
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

/* Gives back the array, and what was mapped into it. */
static void destroyed(struct memory *memory, const struct charge *entry, CUresult result)
{
	if (result != CUDA_SUCCESS) {
		memory_put_back(memory, entry);
		return;
	}
	mem_leave(memory, entry);
	mem_sparse_ended(memory, entry);
}

static CUresult destroy_array(CUarray hArray)
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

static CUresult destroy_mipmap(CUmipmappedArray hMipmappedArray)
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

static CUresult array_end(struct mem_call *call, CUresult result, CUarray array, CUarray *ret)
{
	struct charge entry;

	if (result != CUDA_SUCCESS)
		return mem_drop(call, result);
	entry = mem_entry(call, AT_ARRAY, (uint64_t)(uintptr_t)array, 0);
	if (memory_enter(call->memory, &call->hold, &entry)) {
		real.cuArrayDestroy(array);
		return mem_refuse(call);
	}
	if (mem_outgrown(call)) {
		destroy_array(array);
		return mem_refuse_made(call);
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
	switch (mem_begin(&call, CHARGE_ARRAY, array_bytes(&d, 1))) {
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
	switch (mem_begin(&call, CHARGE_ARRAY, array_bytes(&d, 1))) {
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
	switch (mem_begin(&call, CHARGE_ARRAY, array_bytes(pAllocateArray, 1))) {
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
	switch (mem_begin(&call, CHARGE_ARRAY, array_bytes(&d, 1))) {
	case MEM_PASS: return real.cuArray3DCreate(pHandle, pAllocateArray);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuArray3DCreate(&array, pAllocateArray);
	return array_end(&call, result, array, pHandle);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
				const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
				unsigned int numMipmapLevels)
{
	struct mem_call call;
	CUmipmappedArray array = NULL;
	struct charge entry;
	CUresult result;

	if (!pHandle || !pMipmappedArrayDesc)
		return real.cuMipmappedArrayCreate(pHandle, pMipmappedArrayDesc, numMipmapLevels);
	switch (mem_begin(&call, CHARGE_ARRAY, array_bytes(pMipmappedArrayDesc, numMipmapLevels))) {
	case MEM_PASS:
		return real.cuMipmappedArrayCreate(pHandle, pMipmappedArrayDesc, numMipmapLevels);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuMipmappedArrayCreate(&array, pMipmappedArrayDesc, numMipmapLevels);
	if (result != CUDA_SUCCESS)
		return mem_drop(&call, result);
	entry = mem_entry(&call, AT_MIPMAP, (uint64_t)(uintptr_t)array, 0);
	if (memory_enter(call.memory, &call.hold, &entry)) {
		real.cuMipmappedArrayDestroy(array);
		return mem_refuse(&call);
	}
	if (mem_outgrown(&call)) {
		destroy_mipmap(array);
		return mem_refuse_made(&call);
	}
	*pHandle = array;
	return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray hArray)
{
	return destroy_array(hArray);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	return destroy_mipmap(hMipmappedArray);
}
