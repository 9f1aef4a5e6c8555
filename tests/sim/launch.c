/*
 * Kernel launches. A kernel is nothing but its device time; all forms of launching come together
 * in add_kernel(). A first launch that has to load code waits for the context, as the real one
 * does (and hangs if the context waits for the launching thread).
 */
#include "memory.h"
#include "entries.h"
#include "module.h"

#include <string.h>

/* A launch takes the host 3.5 us and reaches an idle device 1.9 us later (measured: a pair of
 * events around it reads 5.5 us more than the kernel takes). */
#define LAUNCH_HOST_NS	 3500ull
#define LAUNCH_ARRIVE_NS 5400ull

CUresult launch_resolve(CUfunction handle, struct function **ret_function)
{
	struct function *function = object_check(handle, OBJECT_FUNCTION);
	if (function) {
		*ret_function = function;
		return CUDA_SUCCESS;
	}
	struct kernel *kernel = object_check(handle, OBJECT_KERNEL);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&core_lock);
	CUresult result = kernel_function(kernel, ret_function);
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult launch_check(const struct launch *l)
{
	uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
	if (!l->grid[0] || !l->grid[1] || !l->grid[2] || !threads)
		return CUDA_ERROR_INVALID_VALUE;
	if (threads > 1024 || l->block[2] > 64 || l->grid[1] > 65535 || l->grid[2] > 65535)
		return CUDA_ERROR_INVALID_VALUE;
	int most = l->function->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
	if (l->shared_bytes > (unsigned)most)
		return CUDA_ERROR_INVALID_VALUE;
	if (l->params && l->extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (!l->params && !l->extra && l->function->info.param_count)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static const void *first_argument(const struct launch *l)
{
	if (l->params)
		return l->params[0];
	for (void **at = l->extra; at && at[0] != CU_LAUNCH_PARAM_END; at += 2)
		if (at[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			return at[1];
	return NULL;
}

uint64_t launch_cost(const struct launch *l)
{
	const void *argument = l->function->info.spins ? first_argument(l) : NULL;
	uint64_t ns = l->function->info.ns;
	if (argument)
		memcpy(&ns, argument, sizeof(ns));
	return ns;
}

/* Code that must be loaded first: of a whole PTX module, else function by function. */
static bool loads_now(const struct function *function)
{
	const struct module *module = function->module;
	if (!module->library && module->image->is_ptx)
		return !module->launched;
	return !function->loaded;
}

CUresult launch_prepare(struct stream *stream, struct function *function)
{
	struct module *module = function->module;
	pthread_mutex_lock(&core_lock);
	CUresult result = module_make_resident(module);
	bool load = loads_now(function);
	if (result == CUDA_SUCCESS && module->image->uses_malloc)
		stream->context->host->heap_fixed = true;
	if (result == CUDA_SUCCESS && module->image->uses_printf)
		stream->context->host->fifo_fixed = true;
	pthread_mutex_unlock(&core_lock);
	if (result != CUDA_SUCCESS || !load)
		return result;
	if (!stream->capture)
		queue_wait_context(stream->context);
	function->loaded = module->launched = true;
	return CUDA_SUCCESS;
}

static void enqueue(struct stream *stream, uint64_t cost_ns, uint64_t arrive_ns)
{
	struct op *op = op_new(OP_DEVICE, cost_ns);
	op->arrive_ns = arrive_ns;
	queue_add(stream, op);
}

static CUresult add_kernel(struct launch *l, CUstream handle)
{
	uint64_t begin = time_now_ns();
	struct stream *stream;
	CUresult result = stream_resolve(handle, &stream);
	if (result == CUDA_SUCCESS)
		result = capture_forbids_legacy(stream);
	if (result == CUDA_SUCCESS)
		result = launch_check(l);
	if (result != CUDA_SUCCESS)
		return result;
	if (l->function->module->context->host != stream->context->host)
		return CUDA_ERROR_INVALID_HANDLE;
	result = launch_prepare(stream, l->function);
	if (result == CUDA_SUCCESS && stream->capture)
		result = capture_kernel(stream, l);
	else if (result == CUDA_SUCCESS)
		enqueue(stream, launch_cost(l), begin + LAUNCH_ARRIVE_NS);
	while (time_now_ns() < begin + LAUNCH_HOST_NS)
		;
	return result;
}

CUresult sim_cuLaunchKernel(CUfunction handle, unsigned int gx, unsigned int gy, unsigned int gz,
			    unsigned int bx, unsigned int by, unsigned int bz,
			    unsigned int shared_bytes, CUstream stream, void **params, void **extra)
{
	struct launch l = {
		.grid = {gx, gy, gz},
		.block = {bx, by, bz},
		.shared_bytes = shared_bytes,
		.params = params,
		.extra = extra,
	};
	if (!context_current() && !stream)
		return CUDA_ERROR_INVALID_CONTEXT;
	CUresult result = launch_resolve(handle, &l.function);
	return result == CUDA_SUCCESS ? add_kernel(&l, stream) : result;
}

CUresult sim_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction handle, void **params,
			      void **extra)
{
	if (!config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	return sim_cuLaunchKernel(handle, config->gridDimX, config->gridDimY, config->gridDimZ,
				  config->blockDimX, config->blockDimY, config->blockDimZ,
				  config->sharedMemBytes, config->hStream, params, extra);
}

CUresult sim_cuLaunchCooperativeKernel(CUfunction handle, unsigned int gx, unsigned int gy,
				       unsigned int gz, unsigned int bx, unsigned int by,
				       unsigned int bz, unsigned int shared_bytes, CUstream stream,
				       void **params)
{
	return sim_cuLaunchKernel(handle, gx, gy, gz, bx, by, bz, shared_bytes, stream, params,
				  NULL);
}

CUresult sim_cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int count,
						  unsigned int flags)
{
	if (!list || !count || (flags & ~3u))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		const CUDA_LAUNCH_PARAMS *p = &list[i];
		CUresult result =
			sim_cuLaunchKernel(p->function, p->gridDimX, p->gridDimY, p->gridDimZ,
					   p->blockDimX, p->blockDimY, p->blockDimZ,
					   p->sharedMemBytes, p->hStream, p->kernelParams, NULL);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return CUDA_SUCCESS;
}

/* ---- the oldest interface: block shape and arguments are kept in the function ---- */

CUresult sim_cuFuncSetBlockShape(CUfunction handle, int x, int y, int z)
{
	struct function *function = object_check(handle, OBJECT_FUNCTION);
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (x <= 0 || y <= 0 || z <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	function->block[0] = (unsigned)x;
	function->block[1] = (unsigned)y;
	function->block[2] = (unsigned)z;
	return CUDA_SUCCESS;
}

CUresult sim_cuFuncSetSharedSize(CUfunction handle, unsigned int bytes)
{
	(void)bytes;
	return object_check(handle, OBJECT_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuParamSetSize(CUfunction handle, unsigned int bytes)
{
	struct function *function = object_check(handle, OBJECT_FUNCTION);
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (bytes > sizeof(function->params))
		return CUDA_ERROR_INVALID_VALUE;
	function->param_bytes = bytes;
	return CUDA_SUCCESS;
}

CUresult sim_cuParamSetv(CUfunction handle, int offset, void *data, unsigned int bytes)
{
	struct function *function = object_check(handle, OBJECT_FUNCTION);
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || offset < 0 || (size_t)offset + bytes > sizeof(function->params))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(function->params + offset, data, bytes);
	return CUDA_SUCCESS;
}

CUresult sim_cuParamSeti(CUfunction handle, int offset, unsigned int value)
{
	return sim_cuParamSetv(handle, offset, &value, sizeof(value));
}

CUresult sim_cuParamSetf(CUfunction handle, int offset, float value)
{
	return sim_cuParamSetv(handle, offset, &value, sizeof(value));
}

static CUresult launch_grid(CUfunction handle, int width, int height, CUstream stream)
{
	struct function *function = object_check(handle, OBJECT_FUNCTION);
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (width <= 0 || height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	void *argument[1] = {function->params};
	struct launch l = {
		.function = function,
		.grid = {(unsigned)width, (unsigned)height, 1},
		.block = {function->block[0], function->block[1], function->block[2]},
		.params = argument,
	};
	return add_kernel(&l, stream);
}

CUresult sim_cuLaunch(CUfunction handle)
{
	return launch_grid(handle, 1, 1, NULL);
}

CUresult sim_cuLaunchGrid(CUfunction handle, int width, int height)
{
	return launch_grid(handle, width, height, NULL);
}

CUresult sim_cuLaunchGridAsync(CUfunction handle, int width, int height, CUstream stream)
{
	return launch_grid(handle, width, height, stream);
}
