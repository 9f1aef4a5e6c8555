/*
 * cuInit: where a malformed quota stops the program, loudly, instead of running it without one; with CUOTA_STRICT also one
 * that cannot be enforced.
 */
#include "hooks/hooks.h"
#include "hooks/tenant.h"

CUresult cuInit(unsigned int flags)
{
	if (hooks_load() != 0)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (tenant_state() == TENANT_REFUSED)
		return CUDA_ERROR_NOT_PERMITTED;

	CUresult result = real.cuInit(flags);

	hooks_load_behind();
	if (result == CUDA_SUCCESS && tenant_start_refused())
		return CUDA_ERROR_NOT_PERMITTED;
	return result;
}
