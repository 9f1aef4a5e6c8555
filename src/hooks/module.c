/*
 * Code and its globals. What the image's own headers ask for is held before the load; afterwards the driver's
 * figure says what was taken. Globals stay charged whether they are backed already or not (the driver may load
 * late); code that is loaded at a first launch shows up in the books as overhead.
 */
#include "hooks/module.h"

#include "hooks/local_memory.h"
#include "hooks/measure.h"

/* Of code no more is held ahead: large libraries load a small part of theirs, when it is used. */
#define CODE_MOST (16ull << 20)

uint64_t module_estimate(const struct image_size *size)
{
	uint64_t code = size->code_bytes < CODE_MOST ? size->code_bytes : CODE_MOST;

	return size->data_bytes > UINT64_MAX - code ? UINT64_MAX : size->data_bytes + code;
}

static enum mem_begin module_begin(struct module_call *c, const struct image_size *size)
{
	c->size = *size;
	return mem_begin(&c->call, CHARGE_MODULE, module_estimate(size));
}

/* Code is loaded with its image, or (the default since CUDA 12.2) function by function when it is used. */
static int loads_eagerly(void)
{
	CUmoduleLoadingMode mode;

	return real.cuModuleGetLoadingMode && real.cuModuleGetLoadingMode(&mode) == CUDA_SUCCESS &&
	       mode == CU_MODULE_EAGER_LOADING;
}

/*
 * What the driver took, but no less than the globals. Where its figure cannot be had, the estimate stands if code is
 * loaded eagerly. 0, or -ENOMEM: unload it and refuse.
 */
int module_settle(struct module_call *c)
{
	uint64_t bytes;

	if (measure_call(&c->call, &bytes))
		bytes = loads_eagerly() ? c->call.hold.bytes : 0;
	if (bytes < c->size.data_bytes)
		bytes = c->size.data_bytes;
	return hold_settle(&c->call.hold, bytes, &c->call.refusal);
}

static int module_made(struct module_call *c, uint64_t handle)
{
	struct charge entry = mem_entry(&c->call, AT_MODULE, handle, 0);
	int result = module_settle(c);

	if (!result)
		result = memory_enter(c->call.memory, &c->call.hold, &entry);
	return result;
}

static CUresult module_end(struct module_call *c, CUresult result, CUmodule made, CUmodule *ret)
{
	if (result != CUDA_SUCCESS)
		return mem_drop(&c->call, result);
	if (module_made(c, (uint64_t)(uintptr_t)made)) {
		real.cuModuleUnload(made);
		return mem_refuse(&c->call);
	}
	*ret = made;
	return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	struct image_size size;
	struct module_call c;
	CUmodule made = NULL;
	CUresult result;

	if (!module || !fname || !mem_of_process())
		return real.cuModuleLoad(module, fname);
	size = image_measure_file(fname);
	switch (module_begin(&c, &size)) {
	case MEM_PASS: return real.cuModuleLoad(module, fname);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuModuleLoad(&made, fname);
	return module_end(&c, result, made, module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	struct image_size size;
	struct module_call c;
	CUmodule made = NULL;
	CUresult result;

	if (!module || !image || !mem_of_process())
		return real.cuModuleLoadData(module, image);
	size = image_measure(image);
	switch (module_begin(&c, &size)) {
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
	struct image_size size;
	struct module_call c;
	CUmodule made = NULL;
	CUresult result;

	if (!module || !image || !mem_of_process())
		return real.cuModuleLoadDataEx(module, image, numOptions, options, optionValues);
	size = image_measure(image);
	switch (module_begin(&c, &size)) {
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
	struct image_size size;
	struct module_call c;
	CUmodule made = NULL;
	CUresult result;

	if (!module || !fatCubin || !mem_of_process())
		return real.cuModuleLoadFatBinary(module, fatCubin);
	size = image_measure(fatCubin);
	switch (module_begin(&c, &size)) {
	case MEM_PASS: return real.cuModuleLoadFatBinary(module, fatCubin);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuModuleLoadFatBinary(&made, fatCubin);
	return module_end(&c, result, made, module);
}

CUresult cuModuleUnload(CUmodule hmod)
{
	struct memory *memory = mem_of_process();
	struct charge entry;
	CUresult result;

	if (!memory || charges_take(memory->charges, AT_MODULE, (uint64_t)(uintptr_t)hmod, &entry))
		return real.cuModuleUnload(hmod);
	result = real.cuModuleUnload(hmod);
	if (result != CUDA_SUCCESS) {
		memory_put_back(memory, &entry);
		return result;
	}
	mem_leave(memory, &entry);
	local_memory_forget();
	return result;
}
