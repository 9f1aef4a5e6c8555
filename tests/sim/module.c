/*
 * Modules: loading, and the device memory their code and variables take, at load or (lazily, the
 * default) when first used.
 */
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

void function_defaults(int attributes[CU_FUNC_ATTRIBUTE_MAX])
{
	attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
	attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = 16;
	attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION] = 90;
	attributes[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = 90;
	attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
	attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
}

/* Takes the image over, except one of a library. */
struct module *module_new(struct context *context, struct image *image, struct library *library)
{
	struct module *module = object_new(OBJECT_MODULE, sizeof(*module));
	module->context = context;
	module->image = image;
	module->library = library;
	module->global = calloc(image->global_count + 1, sizeof(struct range *));
	module->next = context->modules;
	context->modules = module;
	return module;
}

static void release_memory(struct module *module)
{
	if (module->code)
		linear_free(module->code);
	module->code = NULL;
	for (size_t i = 0; i < module->image->global_count; i++) {
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
	if (!module->library)
		image_free(module->image);
	object_destroy(module);
}

/* The device-side heap comes with the first module that uses it, and stays. */
static CUresult take_heap(struct context *context)
{
	uint64_t want = context->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
	if (context->heap_bytes >= want)
		return CUDA_SUCCESS;
	if (!device_take(context->device, want - context->heap_bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->heap_bytes = want;
	return CUDA_SUCCESS;
}

/* Small code fits into what the context took for itself. */
static CUresult take_code(struct module *module)
{
	if (module->image->code_bytes < LARGE_PAGE)
		return CUDA_SUCCESS;
	CUresult result =
		linear_alloc(module->context, module->image->code_bytes, false, &module->code);
	if (result == CUDA_SUCCESS)
		module->code->kind = RANGE_GLOBAL;
	return result;
}

CUresult module_make_resident(struct module *module)
{
	if (module->resident)
		return CUDA_SUCCESS;
	CUresult result = take_code(module);
	if (result == CUDA_SUCCESS && module->image->uses_malloc)
		result = take_heap(module->context->host);
	for (size_t i = 0; result == CUDA_SUCCESS && i < module->image->global_count; i++) {
		const struct global_info *g = &module->image->globals[i];
		result = linear_alloc(module->context, g->bytes ? g->bytes : 1, false,
				      &module->global[i]);
		if (result == CUDA_SUCCESS)
			module->global[i]->kind = RANGE_GLOBAL;
		else
			module->global[i] = NULL;
	}
	if (result == CUDA_SUCCESS)
		module->resident = true;
	else
		release_memory(module);
	return result;
}

CUresult module_function(struct module *module, const char *name, struct function **ret_function)
{
	for (struct function *f = module->functions; f; f = f->next) {
		if (strcmp(f->info.name, name) != 0)
			continue;
		*ret_function = f;
		return CUDA_SUCCESS;
	}
	const struct function_info *info = image_function(module->image, name);
	if (!info && module->image->is_ptx)
		return CUDA_ERROR_NOT_FOUND;
	struct function *f = object_new(OBJECT_FUNCTION, sizeof(*f));
	if (info)
		f->info = *info;
	else
		f->info = (struct function_info){
			.ns = 1000,
			.spins = strcmp(name, "sim_spin") == 0,
		};
	f->info.name = strdup(name);
	function_defaults(f->attributes);
	f->module = module;
	f->loaded = !loads_lazily();
	f->block[0] = f->block[1] = f->block[2] = 1;
	f->next = module->functions;
	module->functions = f;
	*ret_function = f;
	return CUDA_SUCCESS;
}

/* Loading waits for the context (driver 580: it hangs behind a closed wait, too). */
static CUresult load(CUmodule *ret_module, const void *data)
{
	if (!ret_module || !data)
		return CUDA_ERROR_INVALID_VALUE;
	struct image *image;
	CUresult result = image_parse(data, &image);
	if (result != CUDA_SUCCESS)
		return result;
	struct context *context = context_current()->host;
	if (!capture_is_on(context))
		queue_wait_context(context);
	pthread_mutex_lock(&core_lock);
	struct module *module = module_new(context, image, NULL);
	result = module_make_resident(module);
	if (result == CUDA_SUCCESS)
		*ret_module = (CUmodule)module;
	else
		module_delete(module);
	pthread_mutex_unlock(&core_lock);
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

char *read_file(const char *path)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return NULL;
	fseek(file, 0, SEEK_END);
	long size = ftell(file);
	char *text = size < 0 ? NULL : calloc(1, (size_t)size + 1);
	rewind(file);
	if (text && fread(text, 1, (size_t)size, file) != (size_t)size) {
		free(text);
		text = NULL;
	}
	fclose(file);
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

void modules_release_context(struct context *context)
{
	while (context->modules)
		module_delete(context->modules);
}
