/*
 * The simulated driver (tests/sim): its doors, its errors, its devices, and what processes share.
 */
#include "sim_help.h"

START_TEST(nothing_works_before_cuInit)
{
	size_t bytes;
	int n;
	CUdeviceptr p;

	IS(CU(cuDeviceGetCount)(&n), NOT_INITIALIZED);
	IS(CU(cuMemAlloc)(&p, 1), NOT_INITIALIZED);
	IS(CU(cuMemGetInfo)(&bytes, &bytes), NOT_INITIALIZED);
	OK(CU(cuDriverGetVersion)(&n));
	ck_assert_int_eq(n, 13000);
	IS(CU(cuInit)(1), INVALID_VALUE);
	OK(CU(cuInit)(0));
	OK(CU(cuDeviceGetCount)(&n));
	ck_assert_int_eq(n, 1);
}
END_TEST

START_TEST(without_a_context_calls_say_so)
{
	CUdeviceptr p;
	CUstream stream;
	CUgraph graph;

	OK(CU(cuInit)(0));
	IS(CU(cuMemAlloc)(&p, 1), INVALID_CONTEXT);
	IS(CU(cuCtxSynchronize)(), INVALID_CONTEXT);
	IS(CU(cuStreamCreate)(&stream, 0), INVALID_CONTEXT);
	OK(CU(cuMemFree)(0));
	OK(CU(cuGraphCreate)(&graph, 0));
}
END_TEST

START_TEST(a_forked_child_cannot_use_the_driver_of_its_parent)
{
	int status;

	sim_context();
	if (fork() == 0) {
		int n;
		int bad = CU(cuInit)(0) != CUDA_ERROR_NOT_INITIALIZED ||
			  CU(cuDeviceGetCount)(&n) != CUDA_ERROR_NOT_INITIALIZED;
		_exit(bad);
	}
	ck_assert_int_gt(wait(&status), 0);
	ck_assert_int_eq(status, 0);
	OK(CU(cuCtxSynchronize)());
}
END_TEST

static void *look_up(const char *name, int version, cuuint64_t flags, int *ret_status)
{
	void *function = (void *)1;
	CUdriverProcAddressQueryResult status = 9;

	OK(CU(cuGetProcAddress)(name, &function, version, flags, &status));
	*ret_status = (int)status;
	return function;
}

START_TEST(a_look_up_gives_the_newest_abi_that_is_not_newer_than_asked)
{
	int status;

	ck_assert_ptr_eq(look_up("cuMemAlloc", 2000, 0, &status), sim_symbol("cuMemAlloc"));
	ck_assert_ptr_eq(look_up("cuMemAlloc", 12000, 0, &status), sim_symbol("cuMemAlloc_v2"));
	ck_assert_ptr_eq(look_up("cuCtxCreate", 11040, 0, &status), sim_symbol("cuCtxCreate_v3"));
	ck_assert_ptr_eq(look_up("cuCtxCreate", 12050, 0, &status), sim_symbol("cuCtxCreate_v4"));
	ck_assert_ptr_eq(look_up("cuLaunchKernel", 12000, 2, &status),
			 sim_symbol("cuLaunchKernel_ptsz"));
	ck_assert_ptr_eq(look_up("cuGetProcAddress", 11030, 0, &status),
			 sim_symbol("cuGetProcAddress"));
	ck_assert_ptr_eq(look_up("cuGetProcAddress", 12000, 0, &status),
			 sim_symbol("cuGetProcAddress_v2"));
	ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SUCCESS);
}
END_TEST

START_TEST(what_a_look_up_does_not_find_is_null_and_no_error)
{
	int status;
	void *function = (void *)5;

	ck_assert_ptr_null(look_up("cuNotThere", 12000, 0, &status));
	ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	ck_assert_ptr_null(look_up("cuGreenCtxCreate", 12000, 0, &status));
	ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	IS(CU(cuGetProcAddress)("cuMemAlloc", &function, 13010, 0, NULL), INVALID_VALUE);
	ck_assert_ptr_eq(function, (void *)5);
}
END_TEST

START_TEST(an_older_driver_does_not_offer_what_came_later)
{
	int status, version;

	setenv("CUOTA_SIM_DRIVER", "12.2", 1);
	OK(CU(cuDriverGetVersion)(&version));
	ck_assert_int_eq(version, 12020);
	ck_assert_ptr_null(look_up("cuGreenCtxCreate", 12020, 0, &status));
	ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	ck_assert_ptr_eq(look_up("cuCtxCreate", 12020, 0, &status), sim_symbol("cuCtxCreate_v3"));
}
END_TEST

START_TEST(injected_failures_hit_the_call_they_name)
{
	CUdeviceptr p = 77;

	setenv("CUOTA_SIM_FAIL", "cuMemAlloc_v2=2@3,cuMemFree_v2=999,cuStream*:delay=20ms", 1);
	sim_context();
	OK(CU(cuMemAlloc)(&p, 100));
	OK(CU(cuMemAlloc)(&p, 100));
	p = 77;
	IS(CU(cuMemAlloc)(&p, 100), OUT_OF_MEMORY);
	ck_assert_uint_eq(p, 77);
	OK(CU(cuMemAlloc)(&p, 100));
	IS(CU(cuMemFree)(p), UNKNOWN);
	double begin = sim_seconds();
	CU(cuStreamSynchronize)(NULL);
	ck_assert(sim_seconds() - begin >= 0.02);
}
END_TEST

static const struct {
	const char *visible, *order;
	CUresult init;
	int count, first_sms;
} visibles[] = {
	{NULL, NULL, CUDA_SUCCESS, 3, 132},
	{NULL, "PCI_BUS_ID", CUDA_SUCCESS, 3, 10},
	{"2,0", "PCI_BUS_ID", CUDA_SUCCESS, 2, 80},
	{"1", "PCI_BUS_ID", CUDA_SUCCESS, 1, 132},
	{"0,9,1", "PCI_BUS_ID", CUDA_SUCCESS, 1, 10},
	{" 1 , 2", "PCI_BUS_ID", CUDA_SUCCESS, 2, 132},
	{"", NULL, CUDA_ERROR_NO_DEVICE, 0, 0},
	{"-1", NULL, CUDA_ERROR_NO_DEVICE, 0, 0},
	{"9,0", NULL, CUDA_ERROR_NO_DEVICE, 0, 0},
	{"0,0", NULL, CUDA_ERROR_INVALID_DEVICE, 0, 0},
	{"NoDevFiles", NULL, CUDA_ERROR_NO_DEVICE, 0, 0},
};

START_TEST(visible_devices_are_counted_as_the_driver_counts_them)
{
	int count, sms;

	setenv("CUOTA_SIM_DEVICES", "3", 1);
	setenv("CUOTA_SIM_SMS", "10,132,80", 1);
	if (visibles[_i].visible)
		setenv("CUDA_VISIBLE_DEVICES", visibles[_i].visible, 1);
	if (visibles[_i].order)
		setenv("CUDA_DEVICE_ORDER", visibles[_i].order, 1);
	ck_assert_int_eq(CU(cuInit)(0), visibles[_i].init);
	if (visibles[_i].init != CUDA_SUCCESS)
		return;
	OK(CU(cuDeviceGetCount)(&count));
	ck_assert_int_eq(count, visibles[_i].count);
	OK(CU(cuDeviceGetAttribute)(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	ck_assert_int_eq(sms, visibles[_i].first_sms);
}
END_TEST

START_TEST(a_device_is_chosen_by_a_prefix_of_its_uuid)
{
	CUuuid *uuid = sim_common(sizeof(*uuid));
	char text[64];
	size_t bytes;
	int count;

	setenv("CUOTA_SIM_DEVICES", "4", 1);
	setenv("CUOTA_SIM_MEMORY", "1G,2G,3G,4G", 1);
	if (fork() == 0) {
		CU(cuInit)(0);
		_exit(CU(cuDeviceGetUuid)(uuid, 2) != CUDA_SUCCESS);
	}
	wait(NULL);
	snprintf(text, sizeof(text), "GPU-%02x%02x%02x%02x", (unsigned char)uuid->bytes[0],
		 (unsigned char)uuid->bytes[1], (unsigned char)uuid->bytes[2],
		 (unsigned char)uuid->bytes[3]);
	setenv("CUDA_VISIBLE_DEVICES", text, 1);
	OK(CU(cuInit)(0));
	OK(CU(cuDeviceGetCount)(&count));
	ck_assert_int_eq(count, 1);
	OK(CU(cuDeviceTotalMem)(&bytes, 0));
	ck_assert_uint_eq(bytes, 3 * G);
}
END_TEST

/* ---- what processes share ---- */

START_TEST(free_memory_is_one_number_for_all_processes)
{
	volatile int *step = sim_common(sizeof(int));
	int status;

	if (fork() == 0) {
		CUdeviceptr p;
		sim_context();
		CU(cuMemAlloc)(&p, 1 * G);
		*step = 1;
		sim_wait_for(step, 2);
		CU(cuMemFree)(p);
		*step = 3;
		sim_wait_for(step, 4);
		_exit(0);
	}
	sim_wait_for(step, 1);
	sim_context();
	ck_assert_uint_eq(sim_free_bytes(), 16 * G - 2 * 526 * M - 1 * G);
	*step = 2;
	sim_wait_for(step, 3);
	ck_assert_uint_eq(sim_free_bytes(), 16 * G - 2 * 526 * M);
	*step = 4;
	wait(&status);
	ck_assert_uint_eq(sim_free_bytes(), 16 * G - 526 * M);
}
END_TEST

START_TEST(a_killed_process_gives_everything_back)
{
	volatile int *step = sim_common(sizeof(int));
	CUdeviceptr p;
	pid_t child = fork();

	if (child == 0) {
		sim_context();
		CU(cuMemAlloc)(&p, 14 * G);
		*step = 1;
		pause();
	}
	sim_wait_for(step, 1);
	sim_context();
	IS(CU(cuMemAlloc)(&p, 4 * G), OUT_OF_MEMORY);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	OK(CU(cuMemAlloc)(&p, 14 * G));
}
END_TEST

START_TEST(a_zombie_counts_as_dead)
{
	volatile int *step = sim_common(sizeof(int));
	pid_t child = fork();

	if (child == 0) {
		sim_context();
		*step = 1;
		pause();
	}
	sim_wait_for(step, 1);
	sim_context();
	kill(child, SIGKILL);
	siginfo_t info;
	waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
	ck_assert_uint_eq(sim_free_bytes(), 16 * G - 526 * M);
	waitpid(child, NULL, 0);
}
END_TEST

static void be_busy_until_killed(void)
{
	CUdeviceptr p;
	CUfunction spin;

	sim_context();
	spin = sim_kernel("sim_spin");
	for (;;) {
		CU(cuMemAlloc)(&p, 3 * M);
		sim_launch(spin, 20000, NULL);
		CU(cuCtxSynchronize)();
		CU(cuMemFree)(p);
	}
}

START_TEST(a_storm_of_processes_killed_at_any_instant_leaves_nothing)
{
	enum { CHILDREN = 64, KILLS = 200 };
	pid_t child[CHILDREN] = {0};

	setenv("CUOTA_SIM_MEMORY", "64G", 1);
	setenv("CUOTA_SIM_SWITCH_US", "5", 1);
	srand(7);
	for (int i = 0; i < CHILDREN + KILLS; i++) {
		int slot = i < CHILDREN ? i : rand() % CHILDREN;
		if (child[slot]) {
			usleep((useconds_t)(rand() % 3000));
			kill(child[slot], SIGKILL);
			waitpid(child[slot], NULL, 0);
		}
		child[slot] = fork();
		if (child[slot] == 0)
			be_busy_until_killed();
	}
	for (int i = 0; i < CHILDREN; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
	sim_context();
	ck_assert_uint_eq(sim_free_bytes(), 64 * G - 526 * M);
	OK(sim_launch(sim_kernel("sim_spin"), 1000, NULL));
	OK(CU(cuCtxSynchronize)());
}
END_TEST

START_TEST(a_waiter_goes_on_when_the_process_before_it_dies)
{
	volatile int *step = sim_common(sizeof(int));
	pid_t child = fork();

	if (child == 0) {
		sim_context();
		sim_launch(sim_kernel("sim_spin"), 3600ull * 1000000000ull, NULL);
		*step = 1;
		pause();
	}
	sim_wait_for(step, 1);
	sim_context();
	CUfunction spin = sim_kernel("sim_spin");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	double begin = sim_seconds();
	OK(sim_launch(spin, 20000000, NULL));
	OK(CU(cuCtxSynchronize)());
	ck_assert(sim_seconds() - begin < 0.5);
}
END_TEST

START_TEST(nvml_and_cuda_agree_about_memory)
{
	struct {
		unsigned long long total, free, used;
	} memory;
	void *nvml = sim_library("libnvidia-ml.so.1"), *device;
	int (*init)(void) = (int (*)(void))dlsym(nvml, "nvmlInit_v2");
	int (*get)(unsigned, void **) =
		(int (*)(unsigned, void **))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
	int (*info)(void *, void *) =
		(int (*)(void *, void *))dlsym(nvml, "nvmlDeviceGetMemoryInfo");
	CUdeviceptr p;

	sim_context();
	OK(CU(cuMemAlloc)(&p, 100 * M));
	ck_assert_int_eq(init(), 0);
	ck_assert_int_eq(get(0, &device), 0);
	ck_assert_int_eq(info(device, &memory), 0);
	ck_assert_uint_eq(memory.total, 16 * G);
	ck_assert_uint_eq(memory.free, sim_free_bytes());
	ck_assert_uint_eq(memory.used, 626 * M);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("sim");
	TCase *tcase = tcase_create("doors, errors, devices, processes");

	(void)argc;
	tcase_set_timeout(tcase, 120);
	tcase_add_checked_fixture(tcase, sim_setup, sim_teardown);
	tcase_add_test(tcase, nothing_works_before_cuInit);
	tcase_add_test(tcase, without_a_context_calls_say_so);
	tcase_add_test(tcase, a_forked_child_cannot_use_the_driver_of_its_parent);
	tcase_add_test(tcase, a_look_up_gives_the_newest_abi_that_is_not_newer_than_asked);
	tcase_add_test(tcase, what_a_look_up_does_not_find_is_null_and_no_error);
	tcase_add_test(tcase, an_older_driver_does_not_offer_what_came_later);
	tcase_add_test(tcase, injected_failures_hit_the_call_they_name);
	tcase_add_loop_test(tcase, visible_devices_are_counted_as_the_driver_counts_them, 0,
			    (int)(sizeof(visibles) / sizeof(visibles[0])));
	tcase_add_test(tcase, a_device_is_chosen_by_a_prefix_of_its_uuid);
	tcase_add_test(tcase, free_memory_is_one_number_for_all_processes);
	tcase_add_test(tcase, a_killed_process_gives_everything_back);
	tcase_add_test(tcase, a_zombie_counts_as_dead);
	tcase_add_test(tcase, a_storm_of_processes_killed_at_any_instant_leaves_nothing);
	tcase_add_test(tcase, a_waiter_goes_on_when_the_process_before_it_dies);
	tcase_add_test(tcase, nvml_and_cuda_agree_about_memory);
	suite_add_tcase(suite, tcase);
	return sim_run(suite, argv[0]);
}
