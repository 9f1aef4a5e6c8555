/*
 * Mipmapped arrays: one allocation for all levels; a level is an array inside it.
 */
#include "array.h"
#include "entries.h"

struct mipmap *mipmap_of(CUmipmappedArray handle)
{
	return object_check(handle, OBJECT_MIPMAP);
}

void mipmap_delete(struct mipmap *mipmap)
{
	sparse_release(mipmap);
	for (unsigned i = 0; i < mipmap->levels; i++)
		if (mipmap->level[i])
			array_delete(mipmap->level[i]);
	if (mipmap->range)
		linear_free(mipmap->range);
	for (struct mipmap **at = &mipmap->context->mipmaps; *at; at = &(*at)->next) {
		if (*at != mipmap)
			continue;
		*at = mipmap->next;
		break;
	}
	object_destroy(mipmap);
}

static size_t shrink(size_t extent, unsigned level)
{
	return !extent ? 0 : extent >> level ? extent >> level : 1;
}

/* Levels are arrays without memory of their own; their base comes with the whole. */
static CUresult add_levels(struct mipmap *mipmap)
{
	for (unsigned i = 0; i < mipmap->levels; i++) {
		CUDA_ARRAY3D_DESCRIPTOR d = mipmap->desc;
		bool layered = d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
		d.Width = shrink(d.Width, i);
		d.Height = shrink(d.Height, i);
		d.Depth = layered ? d.Depth : shrink(d.Depth, i);
		d.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
		CUresult result = array_new(&d, &mipmap->level[i]);
		if (result != CUDA_SUCCESS)
			return result;
		mipmap->level[i]->mipmap = mipmap;
		mipmap->level[i]->desc.Flags = mipmap->desc.Flags;
		mipmap->bytes += mipmap->level[i]->bytes;
	}
	return CUDA_SUCCESS;
}

static CUresult take_memory(struct mipmap *mipmap)
{
	if (mipmap->desc.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
		return CUDA_SUCCESS;
	CUresult result = linear_alloc(mipmap->context, mipmap->bytes, false, &mipmap->range);
	if (result != CUDA_SUCCESS)
		return result;
	mipmap->range->kind = RANGE_ARRAY;
	uint64_t at = mipmap->range->base;
	for (unsigned i = 0; i < mipmap->levels; i++) {
		mipmap->level[i]->base = at;
		at += mipmap->level[i]->bytes;
	}
	return CUDA_SUCCESS;
}

CUresult sim_cuMipmappedArrayCreate(CUmipmappedArray *ret_mipmap,
				    const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels)
{
	CUresult result = capture_forbids();
	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_mipmap || !desc || !levels)
		return CUDA_ERROR_INVALID_VALUE;
	size_t longest = desc->Width > desc->Height ? desc->Width : desc->Height;
	unsigned most = 1;
	while (longest >> most)
		most++;
	pthread_mutex_lock(&core_lock);
	struct mipmap *mipmap = object_new(OBJECT_MIPMAP, sizeof(*mipmap));
	mipmap->context = context_current()->host;
	mipmap->desc = *desc;
	mipmap->levels = levels < most ? levels : most;
	mipmap->next = mipmap->context->mipmaps;
	mipmap->context->mipmaps = mipmap;
	result = add_levels(mipmap);
	if (result == CUDA_SUCCESS)
		result = take_memory(mipmap);
	if (result == CUDA_SUCCESS)
		*ret_mipmap = (CUmipmappedArray)mipmap;
	else
		mipmap_delete(mipmap);
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuMipmappedArrayDestroy(CUmipmappedArray handle)
{
	struct mipmap *mipmap = mipmap_of(handle);
	if (!mipmap)
		return CUDA_ERROR_INVALID_HANDLE;
	queue_wait_context(mipmap->context);
	pthread_mutex_lock(&core_lock);
	mipmap_delete(mipmap);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuMipmappedArrayGetLevel(CUarray *ret_array, CUmipmappedArray handle,
				      unsigned int level)
{
	struct mipmap *mipmap = mipmap_of(handle);
	if (!ret_array)
		return CUDA_ERROR_INVALID_VALUE;
	if (!mipmap)
		return CUDA_ERROR_INVALID_HANDLE;
	if (level >= mipmap->levels)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_array = (CUarray)mipmap->level[level];
	return CUDA_SUCCESS;
}
