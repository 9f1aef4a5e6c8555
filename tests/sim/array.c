/*
 * Arrays, 1D to 3D, layered, mipmapped, sparse. Rows are padded to 512 bytes as in the linear
 * layout that gives the sizes the card takes (64 MiB for 4096 x 4096 floats, 60 MiB for
 * 5000 x 3000 of 4 bytes); small arrays share 2 MiB pages. Sparse arrays and those with deferred
 * mapping take no memory of their own.
 */
#include "array.h"
#include "entries.h"

#include <stdlib.h>
#include <string.h>

#define WIDEST	131072u
#define HIGHEST 65536u
#define DEEPEST 16384u

unsigned array_channel_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
	case CU_AD_FORMAT_UNORM_INT8X1:
	case CU_AD_FORMAT_SNORM_INT8X1: return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
	case CU_AD_FORMAT_UNORM_INT16X1:
	case CU_AD_FORMAT_SNORM_INT16X1: return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT: return 4;
	default: return 1;
	}
}

static bool shape_valid(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	if (!d->Width || (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4))
		return false;
	if (d->Width > WIDEST || d->Height > HIGHEST || d->Depth > DEEPEST)
		return false;
	if ((d->Flags & CUDA_ARRAY3D_CUBEMAP) && (d->Depth % 6 || d->Width != d->Height))
		return false;
	return d->Height || !d->Depth || (d->Flags & CUDA_ARRAY3D_LAYERED);
}

static void measure(struct array *array)
{
	const CUDA_ARRAY3D_DESCRIPTOR *d = &array->desc;
	uint64_t element = (uint64_t)array_channel_bytes(d->Format) * d->NumChannels;
	array->pitch = round_up(d->Width * element, 512);
	array->slice = array->pitch * (d->Height ? d->Height : 1);
	array->bytes = array->slice * (d->Depth ? d->Depth : 1);
}

CUresult array_new(const CUDA_ARRAY3D_DESCRIPTOR *desc, struct array **ret_array)
{
	if (!shape_valid(desc))
		return CUDA_ERROR_INVALID_VALUE;
	struct array *array = object_new(OBJECT_ARRAY, sizeof(*array));
	array->desc = *desc;
	measure(array);
	array->context = context_current()->host;
	if (!(desc->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))) {
		CUresult result = linear_alloc(array->context, array->bytes, false, &array->range);
		if (result != CUDA_SUCCESS) {
			object_destroy(array);
			return result;
		}
		array->range->kind = RANGE_ARRAY;
		array->base = array->range->base;
	}
	array->next = array->context->arrays;
	array->context->arrays = array;
	*ret_array = array;
	return CUDA_SUCCESS;
}

void array_delete(struct array *array)
{
	sparse_release(array);
	if (array->range)
		linear_free(array->range);
	for (struct array **at = &array->context->arrays; *at; at = &(*at)->next) {
		if (*at != array)
			continue;
		*at = array->next;
		break;
	}
	object_destroy(array);
}

void arrays_release_context(struct context *context)
{
	/* Levels are among the arrays, and go with their mipmap. */
	while (context->mipmaps)
		mipmap_delete(context->mipmaps);
	while (context->arrays)
		array_delete(context->arrays);
}

struct array *array_of(CUarray handle)
{
	return object_check(handle, OBJECT_ARRAY);
}

static CUresult create(CUarray *ret_array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	CUresult result = capture_forbids();
	if (result != CUDA_SUCCESS)
		return result;
	struct array *array;
	pthread_mutex_lock(&core_lock);
	result = array_new(desc, &array);
	pthread_mutex_unlock(&core_lock);
	if (result == CUDA_SUCCESS)
		*ret_array = (CUarray)array;
	return result;
}

CUresult sim_cuArray3DCreate_v2(CUarray *ret_array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return ret_array && desc ? create(ret_array, desc) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuArrayCreate_v2(CUarray *ret_array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	if (!ret_array || !desc)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR full = {
		.Width = desc->Width,
		.Height = desc->Height,
		.Format = desc->Format,
		.NumChannels = desc->NumChannels,
	};
	return create(ret_array, &full);
}

CUresult sim_cuArray3DCreate(CUarray *ret_array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc)
{
	if (!ret_array || !desc)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR full = {
		.Width = desc->Width,
		.Height = desc->Height,
		.Depth = desc->Depth,
		.Format = desc->Format,
		.NumChannels = desc->NumChannels,
		.Flags = desc->Flags,
	};
	return create(ret_array, &full);
}

CUresult sim_cuArrayCreate(CUarray *ret_array, const CUDA_ARRAY_DESCRIPTOR_v1 *desc)
{
	if (!ret_array || !desc)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR full = {
		.Width = desc->Width,
		.Height = desc->Height,
		.Format = desc->Format,
		.NumChannels = desc->NumChannels,
	};
	return create(ret_array, &full);
}

CUresult sim_cuArrayDestroy(CUarray handle)
{
	struct array *array = array_of(handle);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	if (array->mipmap)
		return CUDA_ERROR_INVALID_VALUE;
	queue_wait_context(array->context);
	pthread_mutex_lock(&core_lock);
	array_delete(array);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *ret_desc, CUarray handle)
{
	struct array *array = array_of(handle);
	if (!ret_desc)
		return CUDA_ERROR_INVALID_VALUE;
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_desc = array->desc;
	return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *ret_desc, CUarray handle)
{
	struct array *array = array_of(handle);
	if (!ret_desc)
		return CUDA_ERROR_INVALID_VALUE;
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_desc = (CUDA_ARRAY_DESCRIPTOR){
		.Width = array->desc.Width,
		.Height = array->desc.Height,
		.Format = array->desc.Format,
		.NumChannels = array->desc.NumChannels,
	};
	return CUDA_SUCCESS;
}

CUresult sim_cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *ret_desc, CUarray handle)
{
	struct array *array = array_of(handle);
	if (!ret_desc)
		return CUDA_ERROR_INVALID_VALUE;
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_desc = (CUDA_ARRAY3D_DESCRIPTOR_v1){
		.Width = (unsigned)array->desc.Width,
		.Height = (unsigned)array->desc.Height,
		.Depth = (unsigned)array->desc.Depth,
		.Format = array->desc.Format,
		.NumChannels = array->desc.NumChannels,
		.Flags = array->desc.Flags,
	};
	return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *ret_desc, CUarray handle)
{
	struct array *array = array_of(handle);
	if (!ret_desc)
		return CUDA_ERROR_INVALID_VALUE;
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_desc = (CUDA_ARRAY_DESCRIPTOR_v1){
		.Width = (unsigned)array->desc.Width,
		.Height = (unsigned)array->desc.Height,
		.Format = array->desc.Format,
		.NumChannels = array->desc.NumChannels,
	};
	return CUDA_SUCCESS;
}

static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, uint64_t bytes, unsigned flags,
			     CUdevice device)
{
	if (!ret || !(flags & CUDA_ARRAY3D_DEFERRED_MAPPING))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret = (CUDA_ARRAY_MEMORY_REQUIREMENTS){
		.size = round_up(bytes, 65536),
		.alignment = 65536,
	};
	return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUarray handle,
					  CUdevice device)
{
	struct array *array = array_of(handle);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	return requirements(ret, array->bytes, array->desc.Flags, device);
}

CUresult sim_cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *ret,
						   CUmipmappedArray handle, CUdevice device)
{
	struct mipmap *mipmap = mipmap_of(handle);
	if (!mipmap)
		return CUDA_ERROR_INVALID_HANDLE;
	return requirements(ret, mipmap->bytes, mipmap->desc.Flags, device);
}

/* Tiles of 64 KiB, as square as the element size allows. */
static CUresult sparse(CUDA_ARRAY_SPARSE_PROPERTIES *ret, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	if (!ret || !(d->Flags & CUDA_ARRAY3D_SPARSE))
		return CUDA_ERROR_INVALID_VALUE;
	unsigned element = array_channel_bytes(d->Format) * d->NumChannels;
	unsigned width = 256, height = 256;
	for (unsigned bytes = 1; bytes < element; bytes *= 2) {
		if (width > height)
			width /= 2;
		else
			height /= 2;
	}
	memset(ret, 0, sizeof(*ret));
	ret->tileExtent.width = width > height ? width : height;
	ret->tileExtent.height = width > height ? height : width;
	ret->tileExtent.depth = 1;
	return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *ret, CUarray handle)
{
	struct array *array = array_of(handle);
	return array ? sparse(ret, &array->desc) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *ret,
						 CUmipmappedArray handle)
{
	struct mipmap *mipmap = mipmap_of(handle);
	return mipmap ? sparse(ret, &mipmap->desc) : CUDA_ERROR_INVALID_HANDLE;
}
