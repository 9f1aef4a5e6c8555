/*
 * The exports: each counts, fails or waits as CUOTA_SIM_FAIL says, checks what it needs, and calls
 * its body. All of it is made from the table described in entries.h.
 */
#include "sim.h"
#include "entries.h"
#include "params.h"

__thread bool entry_per_thread;

enum {
#define E(export, body, since, needs, per_thread, ...) ENTRY_##export,
#define E0(export, body, since, needs, per_thread)     ENTRY_##export,
#define N(export, since, needs, per_thread, ...)       ENTRY_##export,
#define N0(export, since, needs, per_thread)	       ENTRY_##export,
#include "entries_all.def"
#undef E
#undef E0
#undef N
#undef N0
	ENTRY_COUNT
};

/*
 * Allocation, creation and loading wait while a launch waits for room in a full stream; queries,
 * launches and copies in other streams do not (driver 580.159.04; close a cuStreamWaitValue32 and
 * launch about 1,020 kernels behind it to see).
 */
void entry_pass_alone(void)
{
	pthread_rwlock_wrlock(&driver_lock);
	pthread_rwlock_unlock(&driver_lock);
}

const char fail_variable[] = "CUOTA_SIM_FAIL";

CUresult entry_begin(unsigned index)
{
	const struct entry *entry = &entry_table[index];
	entry_per_thread = entry->per_thread;
	if (fail_configured()) {
		CUresult result = (CUresult)fail_consult(entry->name);
		if (result != CUDA_SUCCESS)
			return result;
	}
	if (entry->needs == NEEDS_NOTHING)
		return CUDA_SUCCESS;
	if (!sim_ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	struct context *context = context_current();
	if (entry->needs == NEEDS_INIT) {
		if (context && context_of(context_handle(context)))
			growth_before(entry->name, context);
		return CUDA_SUCCESS;
	}
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!context_of(context_handle(context)))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (entry->needs == NEEDS_EXCLUSIVE)
		entry_pass_alone();
	growth_before(entry->name, context);
	return CUDA_SUCCESS;
}

/*
 * The table must hold our own functions even when a preloaded library exports the same names, so
 * it refers to them by names of its own.
 */
#define LOCAL(export) \
	extern __typeof__(export) local_##export \
		__attribute__((alias(#export), visibility("hidden")));

#define EXPORT(export, params, call) \
	SIM_EXPORT CUresult CUDAAPI export(params) \
	{ \
		CUresult result = entry_begin(ENTRY_##export); \
		return result == CUDA_SUCCESS ? call : result; \
	} \
	LOCAL(export)
#define E(export, body, since, needs, per_thread, ...) \
	EXPORT(export, PARAMS(__VA_ARGS__), sim_##body(ARGS(__VA_ARGS__)))
#define E0(export, body, since, needs, per_thread) EXPORT(export, void, sim_##body())
#define N(export, since, needs, per_thread, ...) \
	EXPORT(export, PARAMS(__VA_ARGS__), CUDA_ERROR_NOT_SUPPORTED)
#define N0(export, since, needs, per_thread) EXPORT(export, void, CUDA_ERROR_NOT_SUPPORTED)
/* what is not implemented uses none of its parameters */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "entries_all.def"
#undef E
#undef E0
#undef N
#undef N0

#define ROW(export, since, needs, per_thread) \
	{#export, (void *)local_##export, since, NEEDS_##needs, per_thread},
const struct entry entry_table[] = {
#define E(export, body, since, needs, per_thread, ...) ROW(export, since, needs, per_thread)
#define E0(export, body, since, needs, per_thread)     ROW(export, since, needs, per_thread)
#define N(export, since, needs, per_thread, ...)       ROW(export, since, needs, per_thread)
#define N0(export, since, needs, per_thread)	       ROW(export, since, needs, per_thread)
#include "entries_all.def"
#undef E
#undef E0
#undef N
#undef N0
};
const unsigned entry_count = ENTRY_COUNT;
