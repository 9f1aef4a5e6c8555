/*
 * cuGetProcAddress: a base name, a CUDA version and flags give one of the exported ABIs - the
 * newest that is not newer than the version asked for. A name that has per-thread twins has only
 * those under the per-thread flag, even where they came later. What is not there is no error: the
 * status says so (the first version of the call, without a status, returns NOT_FOUND). A version
 * beyond the driver's is an error that leaves all outputs alone.
 */
#include "sim.h"
#include "entries.h"

#include <string.h>

/* Length of a name without _v2 and _ptsz and the like. */
static size_t base_length(const char *name)
{
	size_t length = strlen(name);
	if (length > 5 &&
	    (strcmp(name + length - 5, "_ptds") == 0 || strcmp(name + length - 5, "_ptsz") == 0))
		length -= 5;
	if (length > 3 && strncmp(name + length - 3, "_v", 2) == 0)
		length -= 3;
	return length;
}

struct found {
	const struct entry *best;
	bool any; /* the name exists in this driver, perhaps only newer than asked */
};

static struct found find(const char *symbol, unsigned version, bool per_thread)
{
	struct found found = {NULL, false};
	size_t length = strlen(symbol);
	for (unsigned i = 0; i < entry_count; i++) {
		const struct entry *e = &entry_table[i];
		if (base_length(e->name) != length || strncmp(e->name, symbol, length) != 0)
			continue;
		if (e->since > (unsigned)sim_driver_version() || e->per_thread != per_thread)
			continue;
		found.any = true;
		if (e->since <= version && (!found.best || e->since >= found.best->since))
			found.best = e;
	}
	return found;
}

static CUresult look_up(const char *symbol, void **ret_function, int version, cuuint64_t flags,
			CUdriverProcAddressQueryResult *ret_status)
{
	if (!symbol || !ret_function || version < 0 || version > sim_driver_version() ||
	    (flags & ~3ull))
		return CUDA_ERROR_INVALID_VALUE;
	struct found found = {NULL, false};
	if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		found = find(symbol, (unsigned)version, true);
	if (!found.any)
		found = find(symbol, (unsigned)version, false);
	CUdriverProcAddressQueryResult status = found.best ? CU_GET_PROC_ADDRESS_SUCCESS
						: found.any
							? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
							: CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (ret_status)
		*ret_status = status;
	*ret_function = found.best ? found.best->function : NULL;
	return CUDA_SUCCESS;
}

CUresult sim_cuGetProcAddress(const char *symbol, void **ret_function, int version,
			      cuuint64_t flags)
{
	CUresult result = look_up(symbol, ret_function, version, flags, NULL);
	return result == CUDA_SUCCESS && !*ret_function ? CUDA_ERROR_NOT_FOUND : result;
}

CUresult sim_cuGetProcAddress_v2(const char *symbol, void **ret_function, int version,
				 cuuint64_t flags, CUdriverProcAddressQueryResult *ret_status)
{
	return look_up(symbol, ret_function, version, flags, ret_status);
}

CUresult sim_cuGetExportTable(const void **ret_table, const CUuuid *id)
{
	if (!ret_table || !id)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_ERROR_NOT_FOUND;
}
