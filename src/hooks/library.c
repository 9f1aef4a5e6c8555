/*
 * Libraries: code that belongs to no context, loaded into each one that uses it. Loading one charges the context
 * that is current, if any; later every other one when it first asks for something of the library.
 */
#include "hooks/library.h"

#include "hooks/local_memory.h"
#include "hooks/module.h"

static uint64_t key_of(CUlibrary library)
{
	return (uint64_t)(uintptr_t)library;
}

static uint64_t loaded_key(uint64_t library, CUcontext context)
{
	return (library ^ (uint64_t)(uintptr_t)context << 1) * 0x9e3779b97f4a7c15ull;
}

static void enter_library(struct memory *memory, CUlibrary library, const struct image_size *size)
{
	struct charge old, entry = {.key = key_of(library),
				    .within = size->data_bytes,
				    .refs = 1,
				    .space = AT_LIBRARY};

	charges_put(memory->charges, &entry, &old);
}

/* The hold becomes the charge of the library in the context. */
static int enter_loaded(struct mem_call *call, uint64_t library)
{
	struct charge entry = mem_entry(call, AT_LOADED, loaded_key(library, call->context), 0);
	int result;

	entry.within = library;
	result = memory_enter(call->memory, &call->hold, &entry);
	return result;
}

struct load {
	struct module_call c;
	struct memory *memory;
	enum mem_begin begin;
};

/* MEM_PASS: with no context current nothing is taken yet; it is entered all the same. */
static enum mem_begin load_begin(struct load *load, const struct image_size *size)
{
	load->memory = mem_of_process();
	load->c.size = *size;
	load->begin = mem_begin(&load->c.call, CHARGE_MODULE, module_estimate(size));
	return load->begin;
}

static CUresult load_end(struct load *load, CUresult result, CUlibrary made, CUlibrary *ret)
{
	struct mem_call *call = &load->c.call;

	if (result != CUDA_SUCCESS)
		return load->begin == MEM_HELD ? mem_drop(call, result) : result;
	if (load->begin == MEM_HELD &&
	    (module_settle(&load->c) || enter_loaded(call, key_of(made)))) {
		real.cuLibraryUnload(made);
		return mem_refuse(call);
	}
	enter_library(load->memory, made, &load->c.size);
	*ret = made;
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
			   void **jitOptionsValues, unsigned int numJitOptions,
			   CUlibraryOption *libraryOptions, void **libraryOptionValues,
			   unsigned int numLibraryOptions)
{
	struct image_size size;
	CUlibrary made = NULL;
	struct load load;
	CUresult result;

	if (!library || !code || !mem_of_process())
		return real.cuLibraryLoadData(library, code, jitOptions, jitOptionsValues,
					      numJitOptions, libraryOptions, libraryOptionValues,
					      numLibraryOptions);
	size = image_measure(code);
	if (load_begin(&load, &size) == MEM_REFUSED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = real.cuLibraryLoadData(&made, code, jitOptions, jitOptionsValues, numJitOptions,
					libraryOptions, libraryOptionValues, numLibraryOptions);
	return load_end(&load, result, made, library);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
			       void **jitOptionsValues, unsigned int numJitOptions,
			       CUlibraryOption *libraryOptions, void **libraryOptionValues,
			       unsigned int numLibraryOptions)
{
	struct image_size size;
	CUlibrary made = NULL;
	struct load load;
	CUresult result;

	if (!library || !fileName || !mem_of_process())
		return real.cuLibraryLoadFromFile(library, fileName, jitOptions, jitOptionsValues,
						  numJitOptions, libraryOptions,
						  libraryOptionValues, numLibraryOptions);
	size = image_measure_file(fileName);
	if (load_begin(&load, &size) == MEM_REFUSED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = real.cuLibraryLoadFromFile(&made, fileName, jitOptions, jitOptionsValues,
					    numJitOptions, libraryOptions, libraryOptionValues,
					    numLibraryOptions);
	return load_end(&load, result, made, library);
}

/* The current context is about to use the library. CUDA_SUCCESS, or out of memory. */
CUresult library_use(CUlibrary library)
{
	struct memory *memory = mem_of_process();
	struct mem_call call;
	struct charge entry, loaded;

	if (!memory || charges_get(memory->charges, AT_LIBRARY, key_of(library), &entry))
		return CUDA_SUCCESS;
	switch (mem_begin(&call, CHARGE_MODULE, 0)) {
	case MEM_PASS: return CUDA_SUCCESS;
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	if (!charges_get(memory->charges, AT_LOADED, loaded_key(entry.key, call.context), &loaded))
		return CUDA_SUCCESS;
	/* Its globals; of its code only what is used comes, and shows in the books. */
	if (mem_begin(&call, CHARGE_MODULE, entry.within) != MEM_HELD)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return enter_loaded(&call, entry.key) ? mem_refuse(&call) : CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	CUresult result = library_use(library);

	return result == CUDA_SUCCESS ? real.cuLibraryGetGlobal(dptr, bytes, library, name)
				      : result;
}

CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	CUresult result = library_use(library);

	return result == CUDA_SUCCESS ? real.cuLibraryGetManaged(dptr, bytes, library, name)
				      : result;
}

CUresult cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
	CUresult result = library_use(library);

	return result == CUDA_SUCCESS ? real.cuLibraryGetUnifiedFunction(fptr, library, symbol)
				      : result;
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	CUresult result = library_use(library);

	return result == CUDA_SUCCESS ? real.cuLibraryGetModule(pMod, library) : result;
}

/* ---- kernels: which library they are of, so that a launch in another context is known to bring it ---- */

static void enter_kernel(struct memory *memory, CUkernel kernel, CUlibrary library)
{
	struct charge old, entry = {.key = (uint64_t)(uintptr_t)kernel,
				    .owner = key_of(library),
				    .refs = 1,
				    .space = AT_KERNEL};

	charges_put(memory->charges, &entry, &old);
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	struct memory *memory = mem_of_process();
	CUresult result = real.cuLibraryGetKernel(pKernel, library, name);

	if (memory && result == CUDA_SUCCESS)
		enter_kernel(memory, *pKernel, library);
	return result;
}

#if CUDA_VERSION >= 12040
CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	struct memory *memory = mem_of_process();
	CUresult result = real.cuLibraryEnumerateKernels(kernels, numKernels, lib);

	for (unsigned i = 0; memory && result == CUDA_SUCCESS && i < numKernels; i++)
		enter_kernel(memory, kernels[i], lib);
	return result;
}
#endif

int library_of_kernel(struct memory *memory, CUfunction function, CUlibrary *ret_library)
{
	struct charge entry;

	if (charges_get(memory->charges, AT_KERNEL, (uint64_t)(uintptr_t)function, &entry))
		return 0;
	*ret_library = (CUlibrary)(uintptr_t)entry.owner;
	return 1;
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	struct memory *memory = mem_of_process();
	CUlibrary library;
	CUresult result = CUDA_SUCCESS;

	if (memory && library_of_kernel(memory, (CUfunction)kernel, &library))
		result = library_use(library);
	return result == CUDA_SUCCESS ? real.cuKernelGetFunction(pFunc, kernel) : result;
}

static int is_of_library(const struct charge *entry, void *arg)
{
	return (entry->space == AT_LOADED && entry->within == *(const uint64_t *)arg) ||
	       (entry->space == AT_KERNEL && entry->owner == *(const uint64_t *)arg);
}

CUresult cuLibraryUnload(CUlibrary library)
{
	struct memory *memory = mem_of_process();
	struct charges_walk walk = {0};
	struct charge entry, batch[16];
	uint64_t key = key_of(library);
	CUresult result;
	size_t count;

	if (!memory || charges_take(memory->charges, AT_LIBRARY, key, &entry))
		return real.cuLibraryUnload(library);
	result = real.cuLibraryUnload(library);
	if (result != CUDA_SUCCESS) {
		memory_put_back(memory, &entry);
		return result;
	}
	while ((count = charges_collect(memory->charges, &walk, 1, is_of_library, &key, batch, 16)))
		for (size_t i = 0; i < count; i++)
			if (batch[i].space == AT_LOADED)
				mem_leave(memory, &batch[i]);
	local_memory_forget();
	return result;
}
