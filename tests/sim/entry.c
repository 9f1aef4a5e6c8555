/*
 * The exports: each counts, fails or waits as CUOTA_SIM_FAIL says, checks what it needs, and calls
 * its body. All of it is made from the table described in entries.h.
 */
#include "sim.h"
#include "entries.h"

__thread bool entry_per_thread;

enum {
#define E(export, body, since, needs, per_thread, ...) ENTRY_##export,
#define E0(export, body, since, needs, per_thread) ENTRY_##export,
#define N(export, since, needs, per_thread, ...) ENTRY_##export,
#define N0(export, since, needs, per_thread) ENTRY_##export,
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

CUresult entry_begin(unsigned index)
{
	const struct entry *entry = &entry_table[index];
	entry_per_thread = entry->per_thread;
	if (fail_configured()) {
		CUresult result = fail_consult(entry->name);
		if (result != CUDA_SUCCESS)
			return result;
	}
	if (entry->needs == NEEDS_NOTHING)
		return CUDA_SUCCESS;
	if (!sim_ready())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (entry->needs == NEEDS_INIT)
		return CUDA_SUCCESS;
	struct context *context = context_current();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!context_of(context_handle(context)))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (entry->needs == NEEDS_EXCLUSIVE)
		entry_pass_alone();
	return CUDA_SUCCESS;
}

/* Parameter lists and argument lists from lists of types. */
#define PARAMS_1(t1) t1 a1
#define PARAMS_2(t1, t2) t1 a1, t2 a2
#define PARAMS_3(t1, t2, t3) t1 a1, t2 a2, t3 a3
#define PARAMS_4(t1, t2, t3, t4) t1 a1, t2 a2, t3 a3, t4 a4
#define PARAMS_5(t1, t2, t3, t4, t5) t1 a1, t2 a2, t3 a3, t4 a4, t5 a5
#define PARAMS_6(t1, t2, t3, t4, t5, t6) t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6
#define PARAMS_7(t1, t2, t3, t4, t5, t6, t7) t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7
#define PARAMS_8(t1, t2, t3, t4, t5, t6, t7, t8) \
	t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8
#define PARAMS_9(t1, t2, t3, t4, t5, t6, t7, t8, t9) \
	t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9
#define PARAMS_10(t1, t2, t3, t4, t5, t6, t7, t8, t9, t10) \
	t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10
#define PARAMS_11(t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11) \
	t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11
#define PARAMS_12(t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12) \
	t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, t12 a12
#define PARAMS_13(t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13) \
	t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, \
	t12 a12, t13 a13
#define PARAMS_14(t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14) \
	t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, \
	t12 a12, t13 a13, t14 a14
#define PARAMS_15(t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14, t15) \
	t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, \
	t12 a12, t13 a13, t14 a14, t15 a15
#define PARAMS_16(t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14, t15, t16) \
	t1 a1, t2 a2, t3 a3, t4 a4, t5 a5, t6 a6, t7 a7, t8 a8, t9 a9, t10 a10, t11 a11, \
	t12 a12, t13 a13, t14 a14, t15 a15, t16 a16
#define ARGS_1 a1
#define ARGS_2 a1, a2
#define ARGS_3 a1, a2, a3
#define ARGS_4 a1, a2, a3, a4
#define ARGS_5 a1, a2, a3, a4, a5
#define ARGS_6 a1, a2, a3, a4, a5, a6
#define ARGS_7 a1, a2, a3, a4, a5, a6, a7
#define ARGS_8 a1, a2, a3, a4, a5, a6, a7, a8
#define ARGS_9 a1, a2, a3, a4, a5, a6, a7, a8, a9
#define ARGS_10 a1, a2, a3, a4, a5, a6, a7, a8, a9, a10
#define ARGS_11 a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11
#define ARGS_12 a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12
#define ARGS_13 a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13
#define ARGS_14 a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14
#define ARGS_15 a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15
#define ARGS_16 a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16
#define PICK(t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14, t15, t16, n, ...) n
#define COUNT(...) PICK(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define JOIN(a, b) JOIN_AGAIN(a, b)
#define JOIN_AGAIN(a, b) a##b
#define PARAMS(...) JOIN(PARAMS_, COUNT(__VA_ARGS__))(__VA_ARGS__)
#define ARGS(...) JOIN(ARGS_, COUNT(__VA_ARGS__))

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
	SIM_EXPORT CUresult CUDAAPI export(__VA_ARGS__) \
	{ \
		CUresult result = entry_begin(ENTRY_##export); \
		return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_SUPPORTED : result; \
	} \
	LOCAL(export)
#define N0(export, since, needs, per_thread) N(export, since, needs, per_thread, void)
#include "entries_all.def"
#undef E
#undef E0
#undef N
#undef N0

#define ROW(export, since, needs, per_thread) \
	{#export, (void *)local_##export, since, NEEDS_##needs, per_thread},
const struct entry entry_table[] = {
#define E(export, body, since, needs, per_thread, ...) ROW(export, since, needs, per_thread)
#define E0(export, body, since, needs, per_thread) ROW(export, since, needs, per_thread)
#define N(export, since, needs, per_thread, ...) ROW(export, since, needs, per_thread)
#define N0(export, since, needs, per_thread) ROW(export, since, needs, per_thread)
#include "entries_all.def"
#undef E
#undef E0
#undef N
#undef N0
};
const unsigned entry_count = ENTRY_COUNT;
