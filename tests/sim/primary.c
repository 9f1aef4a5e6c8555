/*
 * Primary contexts: one per device, made at the first retain and gone with the last release.
 */
#include "sim.h"
#include "entries.h"

CUresult primary_retain(CUdevice device, struct context **ret_context)
{
	struct device *d = &sim.device[device];
	if (!d->primary) {
		CUresult result = context_create(device, d->primary_flags, &d->primary);
		if (result != CUDA_SUCCESS) {
			d->primary = NULL;
			return result;
		}
		d->primary->primary = true;
	}
	d->primary_refs++;
	*ret_context = d->primary;
	return CUDA_SUCCESS;
}

static void destroy_primary(CUdevice device)
{
	struct context *context = sim.device[device].primary;
	pthread_mutex_unlock(&core_lock);
	queue_wait_context(context);
	pthread_mutex_lock(&core_lock);
	if (sim.device[device].primary != context)
		return;
	sim.device[device].primary = NULL;
	context_destroy(context);
}

void primary_release(CUdevice device)
{
	struct device *d = &sim.device[device];
	if (d->primary_refs && --d->primary_refs == 0 && d->primary)
		destroy_primary(device);
}

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext *ret_context, CUdevice device)
{
	if (!ret_context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct context *context;
	pthread_mutex_lock(&core_lock);
	CUresult result = primary_retain(device, &context);
	if (result == CUDA_SUCCESS)
		*ret_context = context_handle(context);
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&core_lock);
	if (!sim.device[device].primary_refs)
		result = CUDA_ERROR_INVALID_CONTEXT;
	else
		primary_release(device);
	pthread_mutex_unlock(&core_lock);
	return result;
}

CUresult sim_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&core_lock);
	if (sim.device[device].primary)
		destroy_primary(device);
	sim.device[device].primary_refs = 0;
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&core_lock);
	sim.device[device].primary_flags = flags;
	if (sim.device[device].primary)
		sim.device[device].primary->flags = flags;
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *ret_flags, int *ret_active)
{
	if (!ret_flags || !ret_active)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&core_lock);
	*ret_flags = sim.device[device].primary_flags;
	*ret_active = sim.device[device].primary != NULL;
	pthread_mutex_unlock(&core_lock);
	return CUDA_SUCCESS;
}
