/*
 * Texture and surface objects: handles that remember what they were made of.
 */
#include "sim.h"
#include "entries.h"

#include <string.h>

struct texture {
	struct object object;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUDA_RESOURCE_VIEW_DESC view;
};

static struct texture *texture_of(unsigned long long handle)
{
	return object_check((void *)(uintptr_t)handle, OBJECT_TEXTURE);
}

static struct texture *texture_new(const CUDA_RESOURCE_DESC *resource)
{
	pthread_mutex_lock(&core_lock);
	struct texture *texture = object_new(OBJECT_TEXTURE, sizeof(*texture));
	pthread_mutex_unlock(&core_lock);
	texture->resource = *resource;
	return texture;
}

static CUresult destroy(unsigned long long handle)
{
	struct texture *texture = texture_of(handle);
	if (!texture)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	object_destroy(texture);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

static CUresult get_resource(CUDA_RESOURCE_DESC *ret, unsigned long long handle)
{
	struct texture *texture = texture_of(handle);
	if (!texture || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = texture->resource;
	return CUDA_SUCCESS;
}

CUresult sim_cuTexObjectCreate(CUtexObject *ret_object, const CUDA_RESOURCE_DESC *resource,
			       const CUDA_TEXTURE_DESC *desc, const CUDA_RESOURCE_VIEW_DESC *view)
{
	if (!ret_object || !resource || !desc)
		return CUDA_ERROR_INVALID_VALUE;
	struct texture *texture = texture_new(resource);
	texture->texture = *desc;
	if (view)
		texture->view = *view;
	*ret_object = (CUtexObject)(uintptr_t)texture;
	return CUDA_SUCCESS;
}

CUresult sim_cuTexObjectDestroy(CUtexObject handle)
{
	return destroy(handle);
}

CUresult sim_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *ret, CUtexObject handle)
{
	return get_resource(ret, handle);
}

CUresult sim_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *ret, CUtexObject handle)
{
	struct texture *texture = texture_of(handle);
	if (!texture || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = texture->texture;
	return CUDA_SUCCESS;
}

CUresult sim_cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *ret, CUtexObject handle)
{
	struct texture *texture = texture_of(handle);
	if (!texture || !ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = texture->view;
	return CUDA_SUCCESS;
}

CUresult sim_cuSurfObjectCreate(CUsurfObject *ret_object, const CUDA_RESOURCE_DESC *resource)
{
	if (!ret_object || !resource)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_object = (CUsurfObject)(uintptr_t)texture_new(resource);
	return CUDA_SUCCESS;
}

CUresult sim_cuSurfObjectDestroy(CUsurfObject handle)
{
	return destroy(handle);
}

CUresult sim_cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *ret, CUsurfObject handle)
{
	return get_resource(ret, handle);
}
