/*
 * The simulated driver (tests/sim): order and time in streams, waits on memory, events, capture.
 * Times are bounded from one side only where the other depends on how busy this machine is.
 */
#include "sim_help.h"

static CUfunction spin;

static CUstream new_stream(unsigned flags)
{
	CUstream stream;

	OK(CU(cuStreamCreate)(&stream, flags));
	return stream;
}

static void begin(void)
{
	sim_context();
	spin = sim_kernel("sim_spin");
	OK(sim_launch(spin, 1000, NULL));
	OK(CU(cuCtxSynchronize)());
}

START_TEST(a_kernel_takes_the_time_it_is_asked_for)
{
	begin();
	double start = sim_seconds();
	OK(sim_launch(spin, 20000000, NULL));
	IS(CU(cuStreamQuery)(NULL), NOT_READY);
	OK(CU(cuStreamSynchronize)(NULL));
	double took = sim_seconds() - start;
	ck_assert(took >= 0.020 && took < 0.2);
	OK(CU(cuStreamQuery)(NULL));
}
END_TEST

START_TEST(kernels_of_two_streams_do_not_overlap)
{
	begin();
	double start = sim_seconds();
	OK(sim_launch(spin, 20000000, new_stream(CU_STREAM_NON_BLOCKING)));
	OK(sim_launch(spin, 20000000, new_stream(CU_STREAM_NON_BLOCKING)));
	OK(CU(cuCtxSynchronize)());
	ck_assert(sim_seconds() - start >= 0.040);
}
END_TEST

static double two_contexts(void)
{
	CUcontext context[2];

	OK(CU(cuInit)(0));
	double start = 0;
	for (int i = 0; i < 2; i++) {
		OK(CU(cuCtxCreate)(&context[i], NULL, 0, 0));
		spin = sim_kernel("sim_spin");
		OK(sim_launch(spin, 1000, NULL));
		OK(CU(cuCtxSynchronize)());
		if (!i)
			start = sim_seconds();
		OK(sim_launch(spin, 50000000, NULL));
	}
	for (int i = 0; i < 2; i++) {
		OK(CU(cuCtxSetCurrent)(context[i]));
		OK(CU(cuCtxSynchronize)());
	}
	return sim_seconds() - start;
}

START_TEST(kernels_of_two_contexts_do_not_overlap)
{
	ck_assert(two_contexts() >= 0.100);
}
END_TEST

START_TEST(under_MPS_kernels_of_two_contexts_overlap)
{
	int affinity;

	setenv("CUOTA_SIM_MPS", "1", 1);
	ck_assert(two_contexts() < 0.095);
	OK(CU(cuDeviceGetExecAffinitySupport)(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
	ck_assert_int_eq(affinity, 1);
}
END_TEST

static float pair(CUstream stream, unsigned long long ns, int busy)
{
	CUevent a, b;
	float ms;

	OK(CU(cuEventCreate)(&a, 0));
	OK(CU(cuEventCreate)(&b, 0));
	if (busy)
		OK(sim_launch(spin, 5000000, stream));
	OK(CU(cuEventRecord)(a, stream));
	OK(sim_launch(spin, ns, stream));
	OK(CU(cuEventRecord)(b, stream));
	IS(CU(cuEventElapsedTime)(&ms, a, b), NOT_READY);
	OK(CU(cuEventSynchronize)(b));
	OK(CU(cuEventElapsedTime)(&ms, a, b));
	return ms * 1000;
}

START_TEST(an_event_pair_reads_the_kernel_and_what_events_take)
{
	begin();
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	float busy = pair(stream, 1000000, 1);
	ck_assert_msg(busy > 1002.6f && busy < 1002.8f, "busy stream: %f us", (double)busy);
	float idle = pair(stream, 1000000, 0);
	ck_assert_msg(idle > busy, "idle stream: %f us", (double)idle);
}
END_TEST

/* ---- waits on memory ---- */

static unsigned *gate;
static CUdeviceptr gate_address;

/* The device is another party: it reads and writes these words while we do. */
static unsigned get(unsigned index)
{
	return __atomic_load_n(&gate[index], __ATOMIC_ACQUIRE);
}

static void set(unsigned index, unsigned value)
{
	__atomic_store_n(&gate[index], value, __ATOMIC_RELEASE);
}

static void make_gate(void)
{
	void *memory;

	OK(CU(cuMemHostAlloc)(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	OK(CU(cuMemHostGetDevicePointer)(&gate_address, memory, 0));
	gate = memory;
	set(0, 0);
	set(1, 0);
}

static void *open_later(void *unused)
{
	(void)unused;
	usleep(30000);
	set(0, 3);
	return NULL;
}

START_TEST(a_plain_store_opens_a_stream_that_waits_for_it)
{
	pthread_t thread;

	begin();
	make_gate();
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	OK(CU(cuStreamWaitValue32)(stream, gate_address, 3, CU_STREAM_WAIT_VALUE_GEQ));
	OK(sim_launch(spin, 1000, stream));
	OK(CU(cuStreamWriteValue32)(stream, gate_address + 4, 77, 0));
	ck_assert_int_eq(pthread_create(&thread, NULL, open_later, NULL), 0);
	usleep(5000);
	IS(CU(cuStreamQuery)(stream), NOT_READY);
	ck_assert_uint_eq(get(1), 0);
	/* no driver call: the written value must appear by itself */
	for (int i = 0; i < 2000 && get(1) != 77; i++)
		usleep(1000);
	ck_assert_uint_eq(get(1), 77);
	pthread_join(thread, NULL);
	OK(CU(cuStreamSynchronize)(stream));
}
END_TEST

START_TEST(each_condition_of_a_wait_is_honoured)
{
	static const struct {
		unsigned flags, value, opens;
	} cases[] = {
		{CU_STREAM_WAIT_VALUE_GEQ, 5, 6},
		{CU_STREAM_WAIT_VALUE_EQ, 5, 5},
		{CU_STREAM_WAIT_VALUE_AND, 4, 12},
		{CU_STREAM_WAIT_VALUE_NOR, 0xfffffff0u, 0},
	};

	begin();
	make_gate();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
		set(0, cases[i].flags == CU_STREAM_WAIT_VALUE_NOR ? ~0u : 0);
		OK(CU(cuStreamWaitValue32)(stream, gate_address, cases[i].value, cases[i].flags));
		usleep(2000);
		IS(CU(cuStreamQuery)(stream), NOT_READY);
		set(0, cases[i].opens);
		OK(CU(cuStreamSynchronize)(stream));
	}
}
END_TEST

static int launched;

static void *launch_many(void *stream)
{
	sim_context();
	for (int i = 0; i < 1500; i++) {
		sim_launch(spin, 1, stream);
		__atomic_store_n(&launched, i + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

START_TEST(a_full_stream_holds_its_launcher_but_not_the_other_streams)
{
	pthread_t thread;
	CUstream other;

	begin();
	make_gate();
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	other = new_stream(CU_STREAM_NON_BLOCKING);
	OK(CU(cuStreamWaitValue32)(stream, gate_address, 1, CU_STREAM_WAIT_VALUE_GEQ));
	ck_assert_int_eq(pthread_create(&thread, NULL, launch_many, stream), 0);
	int seen = -1;
	while (seen != __atomic_load_n(&launched, __ATOMIC_ACQUIRE)) {
		seen = __atomic_load_n(&launched, __ATOMIC_ACQUIRE);
		usleep(100000);
	}
	ck_assert_int_eq(seen, 1020);
	OK(sim_launch(spin, 1000, other));
	OK(CU(cuStreamSynchronize)(other));
	set(0, 1);
	pthread_join(thread, NULL);
	OK(CU(cuStreamSynchronize)(stream));
	ck_assert_int_eq(launched, 1500);
}
END_TEST

static void CUDA_CB note_order(void *data)
{
	(void)data;
	set(1, get(0));
}

START_TEST(host_functions_run_after_what_is_before_them)
{
	begin();
	make_gate();
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	OK(sim_launch(spin, 3000000, stream));
	OK(CU(cuStreamWriteValue32)(stream, gate_address, 9, 0));
	OK(CU(cuLaunchHostFunc)(stream, note_order, NULL));
	ck_assert_uint_eq(get(1), 0);
	OK(CU(cuStreamSynchronize)(stream));
	ck_assert_uint_eq(get(1), 9);
}
END_TEST

START_TEST(the_legacy_stream_waits_for_blocking_streams)
{
	begin();
	make_gate();
	CUstream blocking = new_stream(0), free_stream = new_stream(CU_STREAM_NON_BLOCKING);
	OK(CU(cuStreamWaitValue32)(blocking, gate_address, 1, CU_STREAM_WAIT_VALUE_GEQ));
	OK(sim_launch(spin, 1000, blocking));
	OK(CU(cuStreamWriteValue32)(NULL, gate_address + 4, 1, 0));
	OK(sim_launch(spin, 1000, free_stream));
	OK(CU(cuStreamSynchronize)(free_stream));
	usleep(3000);
	ck_assert_uint_eq(get(1), 0);
	set(0, 1);
	OK(CU(cuStreamSynchronize)(NULL));
	ck_assert_uint_eq(get(1), 1);
}
END_TEST

START_TEST(an_event_orders_two_streams)
{
	CUevent event;

	begin();
	make_gate();
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
	OK(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
	OK(CU(cuStreamWaitValue32)(a, gate_address, 1, CU_STREAM_WAIT_VALUE_GEQ));
	OK(CU(cuEventRecord)(event, a));
	OK(CU(cuStreamWaitEvent)(b, event, 0));
	OK(CU(cuStreamWriteValue32)(b, gate_address + 4, 1, 0));
	usleep(3000);
	ck_assert_uint_eq(get(1), 0);
	IS(CU(cuEventQuery)(event), NOT_READY);
	set(0, 1);
	OK(CU(cuEventSynchronize)(event));
	OK(CU(cuStreamSynchronize)(b));
	ck_assert_uint_eq(get(1), 1);
}
END_TEST

/* ---- capture and graphs ---- */

START_TEST(a_captured_graph_replays_with_the_time_of_its_kernels)
{
	CUgraph graph;
	CUgraphExec exec;
	size_t nodes;

	begin();
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	OK(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (int i = 0; i < 10; i++)
		OK(sim_launch(spin, 2000000, stream));
	OK(CU(cuStreamEndCapture)(stream, &graph));
	OK(CU(cuGraphGetNodes)(graph, NULL, &nodes));
	ck_assert_uint_eq(nodes, 10);
	OK(CU(cuGraphInstantiate)(&exec, graph, 0));
	double start = sim_seconds();
	OK(CU(cuGraphLaunch)(exec, stream));
	OK(CU(cuGraphLaunch)(exec, stream));
	OK(CU(cuStreamSynchronize)(stream));
	ck_assert(sim_seconds() - start >= 0.040);
}
END_TEST

START_TEST(unsafe_calls_end_a_capture_as_the_driver_does)
{
	static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
						    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
						    CU_STREAM_CAPTURE_MODE_RELAXED};
	CUevent event;
	CUgraph graph;
	CUdeviceptr p;
	CUstreamCaptureStatus status;

	begin();
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	OK(CU(cuEventCreate)(&event, 0));
	OK(CU(cuEventRecord)(event, NULL));
	OK(CU(cuCtxSynchronize)());
	for (int i = 0; i < 3; i++) {
		int relaxed = i == 2;
		OK(CU(cuStreamBeginCapture)(stream, modes[i]));
		OK(CU(cuMemAllocAsync)(&p, 100, stream));
		ck_assert_int_eq(CU(cuEventQuery)(event),
				 relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		ck_assert_int_eq(sim_launch(spin, 1, stream),
				 relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		IS(CU(cuStreamSynchronize)(stream), STREAM_CAPTURE_UNSUPPORTED);
		OK(CU(cuStreamIsCapturing)(stream, &status));
		ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
		IS(CU(cuStreamEndCapture)(stream, &graph), STREAM_CAPTURE_INVALIDATED);
		ck_assert_ptr_null(graph);
	}
}
END_TEST

START_TEST(a_forked_capture_must_be_joined)
{
	CUevent fork_event, join_event;
	CUgraph graph;
	size_t nodes;

	begin();
	CUstream a = new_stream(CU_STREAM_NON_BLOCKING), b = new_stream(CU_STREAM_NON_BLOCKING);
	OK(CU(cuEventCreate)(&fork_event, 0));
	OK(CU(cuEventCreate)(&join_event, 0));
	for (int join = 0; join < 2; join++) {
		OK(CU(cuStreamBeginCapture)(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
		OK(sim_launch(spin, 1, a));
		OK(CU(cuEventRecord)(fork_event, a));
		OK(CU(cuStreamWaitEvent)(b, fork_event, 0));
		OK(sim_launch(spin, 1, b));
		if (join) {
			OK(CU(cuEventRecord)(join_event, b));
			OK(CU(cuStreamWaitEvent)(a, join_event, 0));
			OK(CU(cuStreamEndCapture)(a, &graph));
			OK(CU(cuGraphGetNodes)(graph, NULL, &nodes));
			ck_assert_uint_eq(nodes, 2);
		} else {
			IS(CU(cuStreamEndCapture)(a, &graph), STREAM_CAPTURE_UNJOINED);
		}
	}
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("sim_stream");
	TCase *tcase = tcase_create("streams, events, waits, capture");

	(void)argc;
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, sim_setup, sim_teardown);
	tcase_add_test(tcase, a_kernel_takes_the_time_it_is_asked_for);
	tcase_add_test(tcase, kernels_of_two_streams_do_not_overlap);
	tcase_add_test(tcase, kernels_of_two_contexts_do_not_overlap);
	tcase_add_test(tcase, under_MPS_kernels_of_two_contexts_overlap);
	tcase_add_test(tcase, an_event_pair_reads_the_kernel_and_what_events_take);
	tcase_add_test(tcase, a_plain_store_opens_a_stream_that_waits_for_it);
	tcase_add_test(tcase, each_condition_of_a_wait_is_honoured);
	tcase_add_test(tcase, a_full_stream_holds_its_launcher_but_not_the_other_streams);
	tcase_add_test(tcase, host_functions_run_after_what_is_before_them);
	tcase_add_test(tcase, the_legacy_stream_waits_for_blocking_streams);
	tcase_add_test(tcase, an_event_orders_two_streams);
	tcase_add_test(tcase, a_captured_graph_replays_with_the_time_of_its_kernels);
	tcase_add_test(tcase, unsafe_calls_end_a_capture_as_the_driver_does);
	tcase_add_test(tcase, a_forked_capture_must_be_joined);
	suite_add_tcase(suite, tcase);
	return sim_run(suite, argv[0]);
}
