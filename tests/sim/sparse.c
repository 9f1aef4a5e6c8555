/*
 * Physical memory behind parts of sparse arrays. A mapping keeps its handle alive, until it is
 * unmapped or the array is destroyed.
 */
#include "array.h"
#include "entries.h"
#include "vmm.h"

#include <stdlib.h>
#include <string.h>

struct sparse_map {
	struct sparse_map *next;
	const void *owner;   /* struct array or struct mipmap */
	CUarrayMapInfo info; /* which part; the handle fields are zero */
	struct handle *handle;
};

static struct sparse_map *maps;

static CUarrayMapInfo part_of(const CUarrayMapInfo *info)
{
	CUarrayMapInfo part;
	memset(&part, 0, sizeof(part));
	part.resourceType = info->resourceType;
	part.subresourceType = info->subresourceType;
	if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
		part.subresource.miptail.layer = info->subresource.miptail.layer;
		part.subresource.miptail.offset = info->subresource.miptail.offset;
	} else {
		part.subresource.sparseLevel = info->subresource.sparseLevel;
	}
	return part;
}

static void drop(struct sparse_map **at)
{
	struct sparse_map *map = *at;
	*at = map->next;
	handle_let_go(map->handle);
	free(map);
}

static void unmap_part(const void *owner, const CUarrayMapInfo *part)
{
	for (struct sparse_map **at = &maps; *at;) {
		if ((*at)->owner == owner && memcmp(&(*at)->info, part, sizeof(*part)) == 0)
			drop(at);
		else
			at = &(*at)->next;
	}
}

void sparse_release(const void *owner)
{
	for (struct sparse_map **at = &maps; *at;) {
		if ((*at)->owner == owner)
			drop(at);
		else
			at = &(*at)->next;
	}
}

static const void *owner_of(const CUarrayMapInfo *info)
{
	const struct array *array = NULL;
	const struct mipmap *mipmap = NULL;
	if (info->resourceType == CU_RESOURCE_TYPE_ARRAY)
		array = array_of(info->resource.array);
	else if (info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
		mipmap = mipmap_of(info->resource.mipmap);
	const CUDA_ARRAY3D_DESCRIPTOR *desc = array ? &array->desc : mipmap ? &mipmap->desc : NULL;
	if (!desc || !(desc->Flags & CUDA_ARRAY3D_SPARSE))
		return NULL;
	return array ? (const void *)array : (const void *)mipmap;
}

static CUresult map_one(const CUarrayMapInfo *info)
{
	const void *owner = owner_of(info);
	CUarrayMapInfo part = part_of(info);
	if (!owner || info->flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP) {
		unmap_part(owner, &part);
		return CUDA_SUCCESS;
	}
	struct handle *handle = handle_of(info->memHandle.memHandle);
	if (info->memOperationType != CU_MEM_OPERATION_TYPE_MAP || !handle ||
	    info->memHandleType != CU_MEM_HANDLE_TYPE_GENERIC || info->offset >= handle->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	unmap_part(owner, &part);
	struct sparse_map *map = calloc(1, sizeof(*map));
	map->owner = owner;
	map->info = part;
	map->handle = handle;
	map->next = maps;
	maps = map;
	handle->maps++;
	return CUDA_SUCCESS;
}

CUresult sim_cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream stream_handle)
{
	struct stream *stream;
	if (!list || !count)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = stream_resolve(stream_handle, &stream);
	pthread_mutex_lock(&core_lock);
	for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = map_one(&list[i]);
	pthread_mutex_unlock(&core_lock);
	return result;
}
