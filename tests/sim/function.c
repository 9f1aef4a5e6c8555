/*
 * What a function or kernel says about itself, and occupancy.
 */
#include "entries.h"
#include "module.h"

static const struct function_info *info_of(const void *handle, int **ret_attributes)
{
	struct function *function = object_check(handle, OBJECT_FUNCTION);
	struct kernel *kernel = object_check(handle, OBJECT_KERNEL);
	if (ret_attributes)
		*ret_attributes = function ? function->attributes
				  : kernel ? kernel->attributes
					   : NULL;
	return function ? &function->info : kernel ? &kernel->info : NULL;
}

static CUresult get_attribute(int *ret_value, int attribute, const void *handle)
{
	int *attributes;
	if (!ret_value || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!info_of(handle, &attributes))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_value = attributes[attribute];
	return CUDA_SUCCESS;
}

static CUresult set_attribute(int attribute, int value, const void *handle)
{
	int *attributes;
	if (attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
	    attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!info_of(handle, &attributes))
		return CUDA_ERROR_INVALID_HANDLE;
	if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
	    (value < 0 || value > 232448))
		return CUDA_ERROR_INVALID_VALUE;
	attributes[attribute] = value;
	return CUDA_SUCCESS;
}

static CUresult get_name(const char **ret_name, const void *handle)
{
	const struct function_info *info = info_of(handle, NULL);
	if (!ret_name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!info)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_name = info->name;
	return CUDA_SUCCESS;
}

static CUresult get_param(const void *handle, size_t index, size_t *ret_offset, size_t *ret_size)
{
	const struct function_info *info = info_of(handle, NULL);
	if (!ret_offset)
		return CUDA_ERROR_INVALID_VALUE;
	if (!info)
		return CUDA_ERROR_INVALID_HANDLE;
	if (index >= info->param_count)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_offset = info->param_offset[index];
	if (ret_size)
		*ret_size = info->param_size[index];
	return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetAttribute(int *ret_value, CUfunction_attribute attribute, CUfunction f)
{
	return get_attribute(ret_value, (int)attribute, f);
}

CUresult sim_cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value)
{
	return set_attribute((int)attribute, value, f);
}

CUresult sim_cuFuncGetName(const char **ret_name, CUfunction f)
{
	return get_name(ret_name, f);
}

CUresult sim_cuFuncGetParamInfo(CUfunction f, size_t index, size_t *ret_offset, size_t *ret_size)
{
	return get_param(f, index, ret_offset, ret_size);
}

CUresult sim_cuFuncGetModule(CUmodule *ret_module, CUfunction f)
{
	struct function *function = object_check(f, OBJECT_FUNCTION);
	if (!ret_module)
		return CUDA_ERROR_INVALID_VALUE;
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_module = (CUmodule)function->module;
	return CUDA_SUCCESS;
}

CUresult sim_cuFuncIsLoaded(CUfunctionLoadingState *ret_state, CUfunction f)
{
	struct function *function = object_check(f, OBJECT_FUNCTION);
	if (!ret_state)
		return CUDA_ERROR_INVALID_VALUE;
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_state = function->loaded ? CU_FUNCTION_LOADING_STATE_LOADED
				      : CU_FUNCTION_LOADING_STATE_UNLOADED;
	return CUDA_SUCCESS;
}

CUresult sim_cuFuncLoad(CUfunction f)
{
	struct function *function;
	CUresult result = launch_resolve(f, &function);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&core_lock);
	result = module_make_resident(function->module);
	function->loaded = result == CUDA_SUCCESS;
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config)
{
	(void)config;
	return info_of(f, NULL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuFuncSetSharedMemConfig(CUfunction f, CUsharedconfig config)
{
	(void)config;
	return info_of(f, NULL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuKernelGetAttribute(int *ret_value, CUfunction_attribute attribute, CUkernel kernel,
				  CUdevice device)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return get_attribute(ret_value, (int)attribute, kernel);
}

CUresult sim_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
				  CUdevice device)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return set_attribute((int)attribute, value, kernel);
}

CUresult sim_cuKernelGetName(const char **ret_name, CUkernel kernel)
{
	return get_name(ret_name, kernel);
}

CUresult sim_cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *ret_offset,
				  size_t *ret_size)
{
	return get_param(kernel, index, ret_offset, ret_size);
}

CUresult sim_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
	(void)config;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return info_of(kernel, NULL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- occupancy: by threads, blocks and shared memory; registers never matter ---- */

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *ret_blocks, CUfunction f,
								  int block, size_t shared,
								  unsigned int flags)
{
	if (!ret_blocks || block <= 0 || block > 1024 || flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!info_of(f, NULL))
		return CUDA_ERROR_INVALID_HANDLE;
	int blocks = 2048 / ((block + 31) / 32 * 32);
	if (blocks > 32)
		blocks = 32;
	if (shared && (size_t)blocks > 233472 / (shared + 1024))
		blocks = (int)(233472 / (shared + 1024));
	*ret_blocks = blocks;
	return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ret_blocks, CUfunction f, int block,
							 size_t shared)
{
	return sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(ret_blocks, f, block,
									shared, 0);
}

CUresult sim_cuOccupancyMaxPotentialBlockSizeWithFlags(int *ret_grid, int *ret_block, CUfunction f,
						       CUoccupancyB2DSize shared_of, size_t shared,
						       int most, unsigned int flags)
{
	if (!ret_grid || !ret_block || most < 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	int block = most && most < 1024 ? most : 1024, blocks;
	CUresult result = sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		&blocks, f, block, shared_of ? shared_of(block) : shared, flags);
	if (result != CUDA_SUCCESS)
		return result;
	uint32_t physical = sim.device[context_current()->device].physical;
	*ret_block = block;
	*ret_grid = blocks * (int)sim_shared->machine.sms[physical];
	return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxPotentialBlockSize(int *ret_grid, int *ret_block, CUfunction f,
					      CUoccupancyB2DSize shared_of, size_t shared, int most)
{
	return sim_cuOccupancyMaxPotentialBlockSizeWithFlags(ret_grid, ret_block, f, shared_of,
							     shared, most, 0);
}

CUresult sim_cuOccupancyAvailableDynamicSMemPerBlock(size_t *ret_bytes, CUfunction f, int blocks,
						     int block)
{
	if (!ret_bytes || blocks <= 0 || block <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!info_of(f, NULL))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_bytes = 233472u / (unsigned)blocks - 1024;
	return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxPotentialClusterSize(int *ret_size, CUfunction f,
						const CUlaunchConfig *config)
{
	if (!ret_size || !config)
		return CUDA_ERROR_INVALID_VALUE;
	if (!info_of(f, NULL))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_size = 8;
	return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveClusters(int *ret_clusters, CUfunction f,
					  const CUlaunchConfig *config)
{
	if (!ret_clusters || !config)
		return CUDA_ERROR_INVALID_VALUE;
	if (!info_of(f, NULL))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_clusters = 66;
	return CUDA_SUCCESS;
}
