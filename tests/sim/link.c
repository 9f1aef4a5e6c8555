/*
 * The linker: its output is the text of its inputs, one after the other.
 */
#include "entries.h"
#include "module.h"

#include <stdlib.h>
#include <string.h>

struct link {
	struct object object;
	char *text;
	size_t length;
};

static struct link *link_of(CUlinkState handle)
{
	return object_check(handle, OBJECT_LINK);
}

CUresult sim_cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values,
			     CUlinkState *ret_state)
{
	(void)options;
	(void)values;
	(void)count;
	if (!ret_state)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&core_lock);
	*ret_state = object_new(OBJECT_LINK, sizeof(struct link));
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void *data, size_t size,
			      const char *name, unsigned int count, CUjit_option *options,
			      void **values)
{
	struct link *link = link_of(handle);
	(void)type;
	(void)name;
	(void)count;
	(void)options;
	(void)values;
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (((char *)data)[size - 1] == '\0')
		size--;
	link->text = realloc(link->text, link->length + size + 1);
	memcpy(link->text + link->length, data, size);
	link->length += size;
	link->text[link->length] = '\0';
	return CUDA_SUCCESS;
}

CUresult sim_cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char *path,
			      unsigned int count, CUjit_option *options, void **values)
{
	char *text = path ? read_file(path) : NULL;
	if (!text)
		return path ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
	CUresult result = sim_cuLinkAddData_v2(handle, type, text, strlen(text) + 1, path, count,
					       options, values);
	free(text);
	return result;
}

CUresult sim_cuLinkComplete(CUlinkState handle, void **ret_image, size_t *ret_size)
{
	struct link *link = link_of(handle);
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret_image || !link->text)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_image = link->text;
	if (ret_size)
		*ret_size = link->length + 1;
	return CUDA_SUCCESS;
}

CUresult sim_cuLinkDestroy(CUlinkState handle)
{
	struct link *link = link_of(handle);
	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	free(link->text);
	pthread_mutex_lock(&core_lock);
	object_destroy(link);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}
