/*
 * Modules: loading, and the device memory their code and variables take, at load or (lazily, the
 * default) when first used.
 */
#define _GNU_SOURCE
#include "memory.h"
#include "entries.h"
#include "module.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool loads_lazily(void)
{
	const char *text = getenv("CUDA_MODULE_LOADING");
	return !text || strcmp(text, "EAGER") != 0;
}

CUresult module_new(struct context *context, struct image *image, struct module **ret_module)
{
	struct module *module = object_new(OBJECT_MODULE, sizeof(*module));
	module->context = context;
	module->image = image;
	module->global = calloc(image->global_count + 1, sizeof(struct range *));
	module->next = context->modules;
	context->modules = module;
	if (!loads_lazily()) {
		CUresult result = module_make_resident(module);
		if (result != CUDA_SUCCESS) {
			module->image = NULL;
			module_delete(module);
			return result;
		}
	}
	*ret_module = module;
	return CUDA_SUCCESS;
}

static void release_memory(struct module *module)
{
	if (module->code)
		linear_free(module->code);
	module->code = NULL;
	for (size_t i = 0; module->image && i < module->image->global_count; i++) {
		if (module->global[i])
			linear_free(module->global[i]);
		module->global[i] = NULL;
	}
	module->resident = false;
}

void module_delete(struct module *module)
{
	release_memory(module);
	for (struct module **at = &module->context->modules; *at; at = &(*at)->next) {
		if (*at != module)
			continue;
		*at = module->next;
		break;
	}
	while (module->functions) {
		struct function *function = module->functions;
		module->functions = function->next;
		free(function->info.name);
		object_destroy(function);
	}
	free(module->global);
	if (module->image && !module->library)
		image_free(module->image);
	object_destroy(module);
}

CUresult module_make_resident(struct module *module)
{
	if (module->resident)
		return CUDA_SUCCESS;
	CUresult result = linear_alloc(module->context, module->image->code_bytes + 1, false,
				       &module->code);
	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; i < module->image->global_count; i++) {
		const struct global_info *g = &module->image->globals[i];
		result = linear_alloc(module->context, g->bytes ? g->bytes : 1, false,
				      &module->global[i]);
		if (result != CUDA_SUCCESS) {
			module->global[i] = NULL;
			release_memory(module);
			return result;
		}
		module->global[i]->kind = RANGE_GLOBAL;
	}
	module->code->kind = RANGE_GLOBAL;
	module->resident = true;
	return CUDA_SUCCESS;
}

static const struct function_info *find_info(const struct image *image, const char *name)
{
	for (size_t i = 0; i < image->function_count; i++)
		if (strcmp(image->functions[i].name, name) == 0)
			return &image->functions[i];
	return NULL;
}

CUresult module_function(struct module *module, const char *name, struct function **ret_function)
{
	for (struct function *f = module->functions; f; f = f->next) {
		if (strcmp(f->info.name, name) != 0)
			continue;
		*ret_function = f;
		return CUDA_SUCCESS;
	}
	const struct function_info *info = find_info(module->image, name);
	if (!info && module->image->is_ptx)
		return CUDA_ERROR_NOT_FOUND;
	CUresult result = module_make_resident(module);
	if (result != CUDA_SUCCESS)
		return result;
	struct function *f = object_new(OBJECT_FUNCTION, sizeof(*f));
	if (info)
		f->info = *info;
	else
		f->info = (struct function_info){
			.ns = 1000, .spins = strcmp(name, "sim_spin") == 0,
		};
	f->info.name = strdup(name);
	f->module = module;
	f->loaded = !loads_lazily();
	f->block[0] = f->block[1] = f->block[2] = 1;
	f->next = module->functions;
	module->functions = f;
	*ret_function = f;
	return CUDA_SUCCESS;
}

static CUresult load(CUmodule *ret_module, const void *data)
{
	CUresult result = capture_forbids();
	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_module || !data)
		return CUDA_ERROR_INVALID_VALUE;
	struct image *image = image_parse(data);
	struct module *module;
	pthread_mutex_lock(&core_lock);
	result = module_new(context_current()->host, image, &module);
	pthread_mutex_unlock(&core_lock);
	if (result == CUDA_SUCCESS)
		*ret_module = (CUmodule)module;
	else
		image_free(image);
	return result;
}

CUresult sim_cuModuleLoadData(CUmodule *ret_module, const void *data)
{
	return load(ret_module, data);
}

CUresult sim_cuModuleLoadDataEx(CUmodule *ret_module, const void *data, unsigned int count,
				CUjit_option *options, void **values)
{
	(void)options;
	(void)values;
	(void)count;
	return load(ret_module, data);
}

CUresult sim_cuModuleLoadFatBinary(CUmodule *ret_module, const void *data)
{
	return load(ret_module, data);
}

/* The whole file and a final zero, malloc'ed; NULL when it cannot be read. */
char *read_file(const char *path)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return NULL;
	size_t size = 0, room = 4096;
	char *text = malloc(room + 1);
	size_t n;
	while ((n = fread(text + size, 1, room - size, file)) > 0) {
		size += n;
		if (size < room)
			continue;
		room *= 2;
		text = realloc(text, room + 1);
	}
	fclose(file);
	text[size] = '\0';
	return text;
}

CUresult sim_cuModuleLoad(CUmodule *ret_module, const char *path)
{
	if (!ret_module || !path)
		return CUDA_ERROR_INVALID_VALUE;
	char *text = read_file(path);
	if (!text)
		return CUDA_ERROR_FILE_NOT_FOUND;
	CUresult result = load(ret_module, text);
	free(text);
	return result;
}

CUresult sim_cuModuleUnload(CUmodule handle)
{
	struct module *module = object_check(handle, OBJECT_MODULE);
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	queue_wait_context(module->context);
	pthread_mutex_lock(&core_lock);
	module_delete(module);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetFunction(CUfunction *ret_function, CUmodule handle, const char *name)
{
	struct module *module = object_check(handle, OBJECT_MODULE);
	if (!ret_function || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	struct function *function;
	pthread_mutex_lock(&core_lock);
	CUresult result = module_function(module, name, &function);
	if (result == CUDA_SUCCESS)
		*ret_function = (CUfunction)function;
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuModuleGetGlobal_v2(CUdeviceptr *ret_address, size_t *ret_bytes, CUmodule handle,
				  const char *name)
{
	struct module *module = object_check(handle, OBJECT_MODULE);
	if (!name || (!ret_address && !ret_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&core_lock);
	CUresult result = module_make_resident(module);
	size_t i = 0;
	while (i < module->image->global_count && strcmp(module->image->globals[i].name, name))
		i++;
	if (result == CUDA_SUCCESS && i == module->image->global_count)
		result = CUDA_ERROR_NOT_FOUND;
	if (result == CUDA_SUCCESS) {
		if (ret_address)
			*ret_address = module->global[i]->base;
		if (ret_bytes)
			*ret_bytes = module->global[i]->size;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuModuleGetFunctionCount(unsigned int *ret_count, CUmodule handle)
{
	struct module *module = object_check(handle, OBJECT_MODULE);
	if (!ret_count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_count = (unsigned)module->image->function_count;
	return CUDA_SUCCESS;
}

CUresult sim_cuModuleEnumerateFunctions(CUfunction *ret_functions, unsigned int count,
					CUmodule handle)
{
	struct module *module = object_check(handle, OBJECT_MODULE);
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&core_lock);
	for (size_t i = 0; i < module->image->function_count && i < count; i++) {
		struct function *function;
		result = module_function(module, module->image->functions[i].name, &function);
		if (result != CUDA_SUCCESS)
			break;
		ret_functions[i] = (CUfunction)function;
	}
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuModuleGetLoadingMode(CUmoduleLoadingMode *ret_mode)
{
	if (!ret_mode)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_mode = loads_lazily() ? CU_MODULE_LAZY_LOADING : CU_MODULE_EAGER_LOADING;
	return CUDA_SUCCESS;
}
