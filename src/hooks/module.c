/*
 * Code and its globals. What the image's own headers ask for is held before the load; afterwards the driver's
 * figure says what was taken. Globals stay charged whether they are backed already or not (the driver may load
 * late); code that is loaded at a first launch shows up in the books as overhead.
 *
 * Libraries are loaded for every context that uses them; they are charged to the device that was current.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hooks/local_memory.h"
#include "hooks/mem_call.h"
#include "hooks/measure.h"
#include "memory/image.h"

struct module_call {
	struct mem_call call;
	struct image_size size;
};

static enum mem_begin module_begin(struct module_call *c, const void *image)
{
	uint64_t bytes;

	if (!mem_of_process())
		return MEM_PASS;
	c->size = image_measure(image);
	/* Machine code takes about what the image says; text is compiled to less. */
	bytes = c->size.code_bytes + c->size.data_bytes;
	return mem_begin(&c->call, CHARGE_MODULE, bytes < c->size.data_bytes ? UINT64_MAX : bytes);
}

/* 0, or -ENOMEM: unload it and refuse. */
static int module_made(struct module_call *c, enum charge_space space, uint64_t handle)
{
	struct charge entry = mem_entry(&c->call, space, handle, 0);
	uint64_t bytes = c->call.hold.bytes;
	int result;

	if (!measure_call(&c->call, &bytes) && bytes < c->size.data_bytes)
		bytes = c->size.data_bytes;
	result = hold_settle(&c->call.hold, bytes, &c->call.refusal);
	entry.within = c->size.data_bytes;
	if (!result)
		result = memory_enter(c->call.memory, &c->call.hold, &entry);
	if (!result)
		atomic_fetch_add(&c->call.memory->committed_bytes[entry.device], entry.within);
	return result;
}

static CUresult module_end(struct module_call *c, CUresult result, CUmodule made, CUmodule *ret)
{
	if (result != CUDA_SUCCESS)
		return mem_drop(&c->call, result);
	if (module_made(c, AT_MODULE, (uint64_t)(uintptr_t)made)) {
		real.cuModuleUnload(made);
		return mem_refuse(&c->call);
	}
	*ret = made;
	return CUDA_SUCCESS;
}

static CUresult library_end(struct module_call *c, CUresult result, CUlibrary made, CUlibrary *ret)
{
	if (result != CUDA_SUCCESS)
		return mem_drop(&c->call, result);
	if (module_made(c, AT_LIBRARY, (uint64_t)(uintptr_t)made)) {
		real.cuLibraryUnload(made);
		return mem_refuse(&c->call);
	}
	*ret = made;
	return CUDA_SUCCESS;
}

/* An image in a file, for as long as its headers are looked at. The driver reads the file by itself. */
struct image_file {
	void *start;
	size_t bytes;
};

static struct image_file image_map(const char *path)
{
	struct image_file file = {NULL, 0};
	struct statx status; /* fstat's symbol is newer than the oldest C library served */
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return file;
	if (!statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE, &status) &&
	    S_ISREG(status.stx_mode) && status.stx_size > 64) {
		/* One byte more: text in a file has no terminator, the rest of its last page is zero. */
		file.bytes = (size_t)status.stx_size + 1;
		file.start = mmap(NULL, file.bytes, PROT_READ, MAP_PRIVATE, fd, 0);
		if (file.start == MAP_FAILED || !(status.stx_size % 4096)) {
			if (file.start != MAP_FAILED)
				munmap(file.start, file.bytes);
			file.start = NULL;
		}
	}
	close(fd);
	return file;
}

static void image_unmap(const struct image_file *file)
{
	if (file->start)
		munmap(file->start, file->bytes);
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	struct image_file file = {NULL, 0};
	struct module_call c;
	enum mem_begin begin;
	CUmodule made = NULL;
	CUresult result;

	if (mem_of_process())
		file = image_map(fname);
	begin = module ? module_begin(&c, file.start) : MEM_PASS;
	image_unmap(&file);
	switch (begin) {
	case MEM_PASS: return real.cuModuleLoad(module, fname);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuModuleLoad(&made, fname);
	return module_end(&c, result, made, module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	struct module_call c;
	CUmodule made = NULL;
	CUresult result;

	switch (module && image ? module_begin(&c, image) : MEM_PASS) {
	case MEM_PASS: return real.cuModuleLoadData(module, image);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuModuleLoadData(&made, image);
	return module_end(&c, result, made, module);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
			    CUjit_option *options, void **optionValues)
{
	struct module_call c;
	CUmodule made = NULL;
	CUresult result;

	switch (module && image ? module_begin(&c, image) : MEM_PASS) {
	case MEM_PASS:
		return real.cuModuleLoadDataEx(module, image, numOptions, options, optionValues);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuModuleLoadDataEx(&made, image, numOptions, options, optionValues);
	return module_end(&c, result, made, module);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	struct module_call c;
	CUmodule made = NULL;
	CUresult result;

	switch (module && fatCubin ? module_begin(&c, fatCubin) : MEM_PASS) {
	case MEM_PASS: return real.cuModuleLoadFatBinary(module, fatCubin);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuModuleLoadFatBinary(&made, fatCubin);
	return module_end(&c, result, made, module);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
			   void **jitOptionsValues, unsigned int numJitOptions,
			   CUlibraryOption *libraryOptions, void **libraryOptionValues,
			   unsigned int numLibraryOptions)
{
	struct module_call c;
	CUlibrary made = NULL;
	CUresult result;

	switch (library && code ? module_begin(&c, code) : MEM_PASS) {
	case MEM_PASS:
		return real.cuLibraryLoadData(library, code, jitOptions, jitOptionsValues,
					      numJitOptions, libraryOptions, libraryOptionValues,
					      numLibraryOptions);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuLibraryLoadData(&made, code, jitOptions, jitOptionsValues, numJitOptions,
					libraryOptions, libraryOptionValues, numLibraryOptions);
	return library_end(&c, result, made, library);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
			       void **jitOptionsValues, unsigned int numJitOptions,
			       CUlibraryOption *libraryOptions, void **libraryOptionValues,
			       unsigned int numLibraryOptions)
{
	struct image_file file = {NULL, 0};
	struct module_call c;
	enum mem_begin begin;
	CUlibrary made = NULL;
	CUresult result;

	if (mem_of_process())
		file = image_map(fileName);
	begin = library ? module_begin(&c, file.start) : MEM_PASS;
	image_unmap(&file);
	switch (begin) {
	case MEM_PASS:
		return real.cuLibraryLoadFromFile(library, fileName, jitOptions, jitOptionsValues,
						  numJitOptions, libraryOptions,
						  libraryOptionValues, numLibraryOptions);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuLibraryLoadFromFile(&made, fileName, jitOptions, jitOptionsValues,
					    numJitOptions, libraryOptions, libraryOptionValues,
					    numLibraryOptions);
	return library_end(&c, result, made, library);
}

static int take(struct memory *memory, enum charge_space space, const void *handle,
		struct charge *ret)
{
	return memory ? charges_take(memory->charges, space, (uint64_t)(uintptr_t)handle, ret) : -1;
}

static CUresult unloaded(struct memory *memory, const struct charge *entry, CUresult result)
{
	if (result == CUDA_SUCCESS) {
		mem_leave(memory, entry);
		local_memory_forget();
	} else {
		memory_put_back(memory, entry);
	}
	return result;
}

CUresult cuModuleUnload(CUmodule hmod)
{
	struct memory *memory = mem_of_process();
	struct charge entry;

	if (take(memory, AT_MODULE, hmod, &entry))
		return real.cuModuleUnload(hmod);
	return unloaded(memory, &entry, real.cuModuleUnload(hmod));
}

CUresult cuLibraryUnload(CUlibrary library)
{
	struct memory *memory = mem_of_process();
	struct charge entry;

	if (take(memory, AT_LIBRARY, library, &entry))
		return real.cuLibraryUnload(library);
	return unloaded(memory, &entry, real.cuLibraryUnload(library));
}
