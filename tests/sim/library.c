/*
 * Libraries and kernels: code that belongs to no context until a kernel is used in one. Under lazy
 * loading its memory is taken by the first launch, else at once in every context there is.
 */
#include "memory.h"
#include "entries.h"
#include "module.h"

#include <stdlib.h>
#include <string.h>

struct library {
	struct object object;
	struct image *image;
	struct kernel *kernels;
};

static struct library *library_of(CUlibrary handle)
{
	return object_check(handle, OBJECT_LIBRARY);
}

static struct kernel *kernel_of(CUkernel handle)
{
	return object_check(handle, OBJECT_KERNEL);
}

static struct module *module_in(struct library *library, struct context *context)
{
	for (struct module *m = context->host->modules; m; m = m->next)
		if (m->library == library)
			return m;
	return module_new(context->host, library->image, library);
}

CUresult kernel_function(struct kernel *kernel, struct function **ret_function)
{
	struct module *module = module_in(kernel->library, context_current());
	CUresult result = module_function(module, kernel->info.name, ret_function);
	if (result == CUDA_SUCCESS)
		(*ret_function)->kernel = kernel;
	return result;
}

static CUresult load(CUlibrary *ret_library, const void *code)
{
	if (!ret_library || !code)
		return CUDA_ERROR_INVALID_VALUE;
	struct image *image;
	CUresult result = image_parse(code, &image);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&core_lock);
	struct library *library = object_new(OBJECT_LIBRARY, sizeof(*library));
	library->image = image;
	struct context *context = sim.contexts;
	for (; !loads_lazily() && context && result == CUDA_SUCCESS; context = context->next)
		if (context->host == context)
			result = module_make_resident(module_in(library, context));
	pthread_mutex_unlock(&core_lock);
	*ret_library = (CUlibrary)library;
	if (result != CUDA_SUCCESS)
		sim_cuLibraryUnload((CUlibrary)library);
	return result;
}

CUresult sim_cuLibraryLoadData(CUlibrary *ret_library, const void *code, CUjit_option *jit,
			       void **jit_values, unsigned int jit_count, CUlibraryOption *options,
			       void **option_values, unsigned int option_count)
{
	(void)jit;
	(void)jit_values;
	(void)jit_count;
	(void)options;
	(void)option_values;
	(void)option_count;
	return load(ret_library, code);
}

CUresult sim_cuLibraryLoadFromFile(CUlibrary *ret_library, const char *path, CUjit_option *jit,
				   void **jit_values, unsigned int jit_count,
				   CUlibraryOption *options, void **option_values,
				   unsigned int option_count)
{
	(void)jit;
	(void)jit_values;
	(void)jit_count;
	(void)options;
	(void)option_values;
	(void)option_count;
	if (!ret_library || !path)
		return CUDA_ERROR_INVALID_VALUE;
	char *text = read_file(path);
	if (!text)
		return CUDA_ERROR_FILE_NOT_FOUND;
	CUresult result = load(ret_library, text);
	free(text);
	return result;
}

static struct module *find_module(struct library *library)
{
	for (struct context *c = sim.contexts; c; c = c->next)
		for (struct module *m = c->modules; m; m = m->next)
			if (m->library == library)
				return m;
	return NULL;
}

CUresult sim_cuLibraryUnload(CUlibrary handle)
{
	struct library *library = library_of(handle);
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&core_lock);
	struct module *module;
	while ((module = find_module(library)))
		module_delete(module);
	while (library->kernels) {
		struct kernel *kernel = library->kernels;
		library->kernels = kernel->next;
		free(kernel->info.name);
		object_destroy(kernel);
	}
	image_free(library->image);
	object_destroy(library);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

static struct kernel *get_kernel(struct library *library, const char *name)
{
	for (struct kernel *k = library->kernels; k; k = k->next)
		if (strcmp(k->info.name, name) == 0)
			return k;
	const struct function_info *info = image_function(library->image, name);
	if (!info && library->image->is_ptx)
		return NULL;
	struct kernel *kernel = object_new(OBJECT_KERNEL, sizeof(*kernel));
	if (info)
		kernel->info = *info;
	kernel->info.name = strdup(name);
	function_defaults(kernel->attributes);
	kernel->library = library;
	kernel->next = library->kernels;
	library->kernels = kernel;
	return kernel;
}

CUresult sim_cuLibraryGetKernel(CUkernel *ret_kernel, CUlibrary handle, const char *name)
{
	struct library *library = library_of(handle);
	if (!ret_kernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&core_lock);
	struct kernel *kernel = get_kernel(library, name);
	pthread_mutex_unlock(&core_lock);
	if (!kernel)
		return CUDA_ERROR_NOT_FOUND;
	*ret_kernel = (CUkernel)kernel;
	return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetKernelCount(unsigned int *ret_count, CUlibrary handle)
{
	struct library *library = library_of(handle);
	if (!ret_count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_count = (unsigned)library->image->function_count;
	return CUDA_SUCCESS;
}

CUresult sim_cuLibraryEnumerateKernels(CUkernel *ret_kernels, unsigned int count, CUlibrary handle)
{
	struct library *library = library_of(handle);
	if (!ret_kernels)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&core_lock);
	for (size_t i = 0; i < library->image->function_count && i < count; i++)
		ret_kernels[i] = (CUkernel)get_kernel(library, library->image->functions[i].name);
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetModule(CUmodule *ret_module, CUlibrary handle)
{
	struct library *library = library_of(handle);
	if (!ret_module)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&core_lock);
	struct module *module = module_in(library, context_current());
	CUresult result = module_make_resident(module);
	pthread_mutex_unlock(&core_lock);
	if (result == CUDA_SUCCESS)
		*ret_module = (CUmodule)module;
	return result;
}

CUresult sim_cuLibraryGetGlobal(CUdeviceptr *ret_address, size_t *ret_bytes, CUlibrary handle,
				const char *name)
{
	CUmodule module;
	CUresult result = sim_cuLibraryGetModule(&module, handle);
	if (result != CUDA_SUCCESS)
		return result;
	return sim_cuModuleGetGlobal_v2(ret_address, ret_bytes, module, name);
}

CUresult sim_cuLibraryGetManaged(CUdeviceptr *ret_address, size_t *ret_bytes, CUlibrary handle,
				 const char *name)
{
	return sim_cuLibraryGetGlobal(ret_address, ret_bytes, handle, name);
}

CUresult sim_cuKernelGetFunction(CUfunction *ret_function, CUkernel handle)
{
	struct kernel *kernel = kernel_of(handle);
	struct function *function;
	if (!ret_function)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&core_lock);
	CUresult result = kernel_function(kernel, &function);
	pthread_mutex_unlock(&core_lock);
	if (result == CUDA_SUCCESS)
		*ret_function = (CUfunction)function;
	return result;
}

CUresult sim_cuKernelGetLibrary(CUlibrary *ret_library, CUkernel handle)
{
	struct kernel *kernel = kernel_of(handle);
	if (!ret_library)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_library = (CUlibrary)kernel->library;
	return CUDA_SUCCESS;
}
