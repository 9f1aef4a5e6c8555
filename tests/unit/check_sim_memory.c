/*
 * The simulated driver (tests/sim): what each way to take device memory takes, and gives back.
 * The sizes are those of an H200 under driver 580.159.04.
 */
#include "sim_help.h"

static unsigned long long before;

static void begin(void)
{
	sim_context();
	before = sim_free_bytes();
}

/* Device memory taken since begin(). */
#define TAKEN_IS(bytes) ck_assert_uint_eq(before - sim_free_bytes(), (bytes))

START_TEST(small_allocations_share_pages_of_2_MiB)
{
	CUdeviceptr p[100], big;

	begin();
	for (int i = 0; i < 100; i++)
		OK(CU(cuMemAlloc)(&p[i], 100));
	TAKEN_IS(2 * M);
	ck_assert_uint_eq(p[1] - p[0], 512);
	OK(CU(cuMemAlloc)(&big, M + 1));
	TAKEN_IS(4 * M);
	for (int i = 0; i < 100; i++)
		OK(CU(cuMemFree)(p[i]));
	TAKEN_IS(2 * M);
	OK(CU(cuMemFree)(big));
	TAKEN_IS(0);
	IS(CU(cuMemFree)(big), INVALID_VALUE);
}
END_TEST

START_TEST(out_of_memory_leaves_outputs_and_state_alone)
{
	CUdeviceptr p = 7;
	size_t pitch = 7;
	CUarray array = (CUarray)7;
	CUmemGenericAllocationHandle handle = 7;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 16384,
					.Height = 16384,
					.Depth = 16384,
					.Format = CU_AD_FORMAT_FLOAT,
					.NumChannels = 4};

	begin();
	IS(CU(cuMemAlloc)(&p, 17 * G), OUT_OF_MEMORY);
	IS(CU(cuMemAllocPitch)(&p, &pitch, G, 17, 4), OUT_OF_MEMORY);
	IS(CU(cuMemAllocAsync)(&p, 17 * G, NULL), OUT_OF_MEMORY);
	IS(CU(cuArray3DCreate)(&array, &desc), OUT_OF_MEMORY);
	IS(CU(cuMemCreate)(&handle, 17 * G, &prop, 0), OUT_OF_MEMORY);
	ck_assert_uint_eq(p, 7);
	ck_assert_uint_eq(pitch, 7);
	ck_assert_ptr_eq(array, (CUarray)7);
	ck_assert_uint_eq(handle, 7);
	TAKEN_IS(0);
	OK(CU(cuMemAlloc)(&p, G));
}
END_TEST

START_TEST(a_pool_takes_chunks_of_32_MiB_and_keeps_them_up_to_its_threshold)
{
	CUdeviceptr p;
	CUmemoryPool pool;
	cuuint64_t threshold = ~0ull, value;

	begin();
	OK(CU(cuMemAllocAsync)(&p, 1000, NULL));
	TAKEN_IS(32 * M);
	OK(CU(cuMemFreeAsync)(p, NULL));
	OK(CU(cuStreamSynchronize)(NULL));
	TAKEN_IS(0);
	OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
	OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	OK(CU(cuMemAllocAsync)(&p, 100 * M, NULL));
	OK(CU(cuMemFreeAsync)(p, NULL));
	OK(CU(cuStreamSynchronize)(NULL));
	TAKEN_IS(128 * M);
	OK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
	ck_assert_uint_eq(value, 128 * M);
	/* unused memory of a pool goes before an allocation fails */
	OK(CU(cuMemAlloc)(&p, before - 64 * M));
	OK(CU(cuMemFree)(p));
	TAKEN_IS(0);
}
END_TEST

START_TEST(a_pool_serves_a_hundred_rounds_from_one_chunk)
{
	begin();
	for (int i = 0; i < 100; i++) {
		CUdeviceptr p;
		OK(CU(cuMemAllocAsync)(&p, 256 * M, NULL));
		OK(CU(cuMemFreeAsync)(p, NULL));
	}
	TAKEN_IS(256 * M);
	OK(CU(cuCtxSynchronize)());
	TAKEN_IS(0);
}
END_TEST

START_TEST(a_physical_handle_lives_until_released_and_unmapped)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemAccessDesc access = {{.type = CU_MEM_LOCATION_TYPE_DEVICE},
				  CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr a, b;
	unsigned char byte = 0;

	begin();
	OK(CU(cuMemAddressReserve)(&a, 64 * G, 0, 0, 0));
	b = a + 32 * G;
	OK(CU(cuMemCreate)(&handle, 64 * M, &prop, 0));
	TAKEN_IS(64 * M);
	OK(CU(cuMemMap)(a, 64 * M, 0, handle, 0));
	OK(CU(cuMemMap)(b, 64 * M, 0, handle, 0));
	IS(CU(cuMemsetD8)(a, 1, 1), INVALID_VALUE);
	OK(CU(cuMemSetAccess)(a, 64 * M, &access, 1));
	OK(CU(cuMemSetAccess)(b, 64 * M, &access, 1));
	OK(CU(cuMemsetD8)(a, 42, 16));
	OK(CU(cuMemcpyDtoH)(&byte, b + 15, 1));
	ck_assert_uint_eq(byte, 42);
	OK(CU(cuMemRelease)(handle));
	OK(CU(cuMemUnmap)(a, 64 * M));
	TAKEN_IS(64 * M);
	OK(CU(cuMemUnmap)(b, 64 * M));
	TAKEN_IS(0);
	OK(CU(cuMemAddressFree)(a, 64 * G));
}
END_TEST

static void *create_on_a_fresh_thread(void *data)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
	CUmemGenericAllocationHandle handle;
	CUresult *results = data;

	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	results[0] = CU(cuMemCreate)(&handle, 2 * M, &prop, 0);
	prop.location.id = 99;
	results[1] = CU(cuMemCreate)(&handle, 2 * M, &prop, 0);
	prop.location.id = 0;
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	results[2] = CU(cuMemCreate)(&handle, 2 * M, &prop, 0);
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
	results[3] = CU(cuMemCreate)(&handle, 2 * M, &prop, 0);
	return NULL;
}

START_TEST(handles_need_no_context_and_host_ones_no_device)
{
	CUresult results[4];
	pthread_t thread;

	begin();
	ck_assert_int_eq(pthread_create(&thread, NULL, create_on_a_fresh_thread, results), 0);
	pthread_join(thread, NULL);
	OK(results[0]);
	IS(results[1], INVALID_DEVICE);
	OK(results[2]);
	OK(results[3]);
	TAKEN_IS(2 * M);
}
END_TEST

START_TEST(arrays_take_their_padded_size)
{
	static const struct {
		size_t width, height, depth;
		unsigned channels;
		unsigned long long taken;
	} shapes[] = {
		{1000, 0, 0, 1, 2 * M},	     {1000, 1000, 0, 1, 4 * M},	 {4096, 4096, 0, 1, 64 * M},
		{4096, 4096, 0, 4, 256 * M}, {256, 256, 256, 1, 64 * M},
	};
	CUarray array;
	CUmipmappedArray mipmap;
	CUDA_ARRAY3D_DESCRIPTOR mip = {
		.Width = 4096, .Height = 4096, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};

	begin();
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		CUDA_ARRAY3D_DESCRIPTOR d = {
			.Width = shapes[i].width,
			.Height = shapes[i].height,
			.Depth = shapes[i].depth,
			.Format = CU_AD_FORMAT_FLOAT,
			.NumChannels = shapes[i].channels,
		};
		OK(CU(cuArray3DCreate)(&array, &d));
		TAKEN_IS(shapes[i].taken);
		OK(CU(cuArrayDestroy)(array));
		TAKEN_IS(0);
	}
	OK(CU(cuMipmappedArrayCreate)(&mipmap, &mip, 13));
	TAKEN_IS(86 * M);
	OK(CU(cuMipmappedArrayDestroy)(mipmap));
	mip.Flags = CUDA_ARRAY3D_SPARSE;
	OK(CU(cuArray3DCreate)(&array, &mip));
	TAKEN_IS(0);
}
END_TEST

START_TEST(what_goes_into_device_memory_comes_out)
{
	unsigned char out[64 * 32], in[64 * 32];
	CUdeviceptr p;
	CUarray array;
	CUDA_ARRAY_DESCRIPTOR desc = {16, 32, CU_AD_FORMAT_FLOAT, 1};
	size_t pitch;

	begin();
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (unsigned char)(i * 7);
	OK(CU(cuMemAllocPitch)(&p, &pitch, 64, 32, 4));
	OK(CU(cuArrayCreate)(&array, &desc));
	CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			   .srcHost = in,
			   .srcPitch = 64,
			   .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			   .dstDevice = p,
			   .dstPitch = pitch,
			   .WidthInBytes = 64,
			   .Height = 32};
	OK(CU(cuMemcpy2D)(&c));
	c = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			    .srcDevice = p,
			    .srcPitch = pitch,
			    .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			    .dstArray = array,
			    .WidthInBytes = 64,
			    .Height = 32};
	OK(CU(cuMemcpy2D)(&c));
	c = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
			    .srcArray = array,
			    .dstMemoryType = CU_MEMORYTYPE_HOST,
			    .dstHost = out,
			    .dstPitch = 64,
			    .WidthInBytes = 64,
			    .Height = 32};
	OK(CU(cuMemcpy2D)(&c));
	ck_assert_int_eq(memcmp(in, out, sizeof(in)), 0);
	IS(CU(cuMemcpyHtoD)(p, in, pitch * 32 + 1), INVALID_VALUE);
	IS(CU(cuMemcpyHtoD)(12345, in, 1), INVALID_VALUE);
}
END_TEST

START_TEST(graph_memory_is_taken_by_the_first_launch_and_kept_until_trimmed)
{
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.bytesize = 64 * M};

	alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	begin();
	OK(CU(cuGraphCreate)(&graph, 0));
	OK(CU(cuGraphAddMemAllocNode)(&node, graph, NULL, 0, &alloc));
	OK(CU(cuGraphInstantiate)(&exec, graph, 0));
	TAKEN_IS(0);
	OK(CU(cuGraphLaunch)(exec, NULL));
	TAKEN_IS(64 * M);
	IS(CU(cuGraphLaunch)(exec, NULL), INVALID_VALUE);
	OK(CU(cuMemFree)(alloc.dptr));
	IS(CU(cuMemFree)(alloc.dptr), INVALID_VALUE);
	TAKEN_IS(64 * M);
	OK(CU(cuGraphLaunch)(exec, NULL));
	OK(CU(cuMemFreeAsync)(alloc.dptr, NULL));
	OK(CU(cuStreamSynchronize)(NULL));
	OK(CU(cuGraphExecDestroy)(exec));
	OK(CU(cuGraphDestroy)(graph));
	TAKEN_IS(64 * M);
	OK(CU(cuDeviceGraphMemTrim)(0));
	TAKEN_IS(0);
}
END_TEST

START_TEST(contexts_modules_and_limits_take_memory)
{
	static const char big[] = ".version 7.0\n.target sm_70\n"
				  ".visible .global .align 4 .b8 big[67108864];\n"
				  ".visible .entry k() { ret; }\n";
	CUcontext second, first = sim_context();
	CUmodule module;
	CUlibrary library;
	CUkernel kernel;
	CUdeviceptr address;
	size_t bytes;

	before = sim_free_bytes();
	OK(CU(cuCtxCreate)(&second, NULL, 0, 0));
	TAKEN_IS(526 * M);
	OK(CU(cuCtxDestroy)(second));
	OK(CU(cuCtxSetCurrent)(first));
	OK(CU(cuModuleLoadData)(&module, big));
	TAKEN_IS(64 * M);
	OK(CU(cuModuleGetGlobal)(&address, &bytes, module, "big"));
	ck_assert_uint_eq(bytes, 64 * M);
	OK(CU(cuModuleUnload)(module));
	OK(CU(cuLibraryLoadData)(&library, big, NULL, NULL, 0, NULL, NULL, 0));
	OK(CU(cuLibraryGetKernel)(&kernel, library, "k"));
	TAKEN_IS(0);
	OK(CU(cuLaunchKernel)((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	TAKEN_IS(64 * M);
	OK(CU(cuLibraryUnload)(library));
	OK(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096));
	TAKEN_IS(3072ull * 132 * 2048);
	OK(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 1024));
	TAKEN_IS(0);
	IS(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 512 * 1024), OUT_OF_MEMORY);
}
END_TEST

START_TEST(managed_memory_is_taken_when_the_device_touches_it)
{
	CUdeviceptr p;

	begin();
	OK(CU(cuMemAllocManaged)(&p, 20 * G, CU_MEM_ATTACH_GLOBAL));
	TAKEN_IS(0);
	*(volatile char *)(uintptr_t)p = 1;
	TAKEN_IS(0);
	OK(CU(cuMemsetD8)(p, 0, 100));
	ck_assert_uint_eq(sim_free_bytes(), 0);
	OK(CU(cuMemFree)(p));
	TAKEN_IS(0);
}
END_TEST

/* ---- between processes ---- */

struct exchange {
	volatile int step;
	CUipcMemHandle handle;
	int fd;
};

START_TEST(an_opened_handle_shows_the_same_bytes_and_keeps_the_memory)
{
	struct exchange *x = sim_common(sizeof(*x));
	CUdeviceptr p;
	unsigned char byte = 0;
	pid_t child = fork();

	if (child == 0) {
		sim_context();
		CU(cuMemAlloc)(&p, G);
		CU(cuMemsetD8)(p, 11, 4096);
		CU(cuIpcGetMemHandle)(&x->handle, p);
		x->step = 1;
		pause();
	}
	sim_wait_for(&x->step, 1);
	begin();
	OK(CU(cuIpcOpenMemHandle)(&p, x->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	TAKEN_IS(0);
	OK(CU(cuMemcpyDtoH)(&byte, p + 4095, 1));
	ck_assert_uint_eq(byte, 11);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	/* the other context is gone, the memory is not */
	ck_assert_uint_eq(sim_free_bytes(), before + 526 * M);
	OK(CU(cuIpcCloseMemHandle)(p));
	ck_assert_uint_eq(sim_free_bytes(), before + 526 * M + G);
}
END_TEST

START_TEST(an_exported_descriptor_keeps_the_memory_until_it_is_closed)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .requestedHandleTypes =
					    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle, imported;
	int fd;

	begin();
	OK(CU(cuMemCreate)(&handle, 32 * M, &prop, 0));
	OK(CU(cuMemExportToShareableHandle)(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					    0));
	OK(CU(cuMemImportFromShareableHandle)(&imported, (void *)(intptr_t)fd,
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	TAKEN_IS(32 * M);
	OK(CU(cuMemRelease)(handle));
	OK(CU(cuMemRelease)(imported));
	TAKEN_IS(32 * M);
	int copy = dup(fd);
	close(fd);
	TAKEN_IS(32 * M);
	close(copy);
	TAKEN_IS(0);
}
END_TEST

START_TEST(a_part_of_a_sparse_array_keeps_its_memory)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 4096,
					.Height = 4096,
					.Format = CU_AD_FORMAT_FLOAT,
					.NumChannels = 1,
					.Flags = CUDA_ARRAY3D_SPARSE};
	CUmemGenericAllocationHandle handle;
	CUarrayMapInfo map;

	begin();
	memset(&map, 0, sizeof(map));
	map.resourceType = CU_RESOURCE_TYPE_ARRAY;
	OK(CU(cuArray3DCreate)(&map.resource.array, &desc));
	OK(CU(cuMemCreate)(&handle, 2 * M, &prop, 0));
	map.subresource.sparseLevel.extentWidth = 128;
	map.subresource.sparseLevel.extentHeight = 128;
	map.subresource.sparseLevel.extentDepth = 1;
	map.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
	map.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
	map.memHandle.memHandle = handle;
	OK(CU(cuMemMapArrayAsync)(&map, 1, NULL));
	OK(CU(cuMemRelease)(handle));
	TAKEN_IS(2 * M);
	map.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
	OK(CU(cuMemMapArrayAsync)(&map, 1, NULL));
	TAKEN_IS(0);
}
END_TEST

START_TEST(a_pointer_imported_from_a_pool_takes_nothing)
{
	CUmemPoolProps props;
	CUmemoryPool pool, imported;
	CUmemPoolPtrExportData data;
	CUdeviceptr p, q;
	int fd;

	begin();
	memset(&props, 0, sizeof(props));
	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	OK(CU(cuMemPoolCreate)(&pool, &props));
	OK(CU(cuMemAllocFromPoolAsync)(&p, 64 * M, pool, NULL));
	OK(CU(cuMemPoolExportToShareableHandle)(&fd, pool, props.handleTypes, 0));
	OK(CU(cuMemPoolExportPointer)(&data, p));
	OK(CU(cuMemPoolImportFromShareableHandle)(&imported, (void *)(intptr_t)fd,
						  props.handleTypes, 0));
	OK(CU(cuMemPoolImportPointer)(&q, imported, &data));
	IS(CU(cuMemAllocFromPoolAsync)(&p, 64 * M, imported, NULL), INVALID_VALUE);
	TAKEN_IS(64 * M);
	OK(CU(cuMemFree)(q));
	OK(CU(cuMemFree)(p));
	OK(CU(cuMemPoolDestroy)(imported));
	OK(CU(cuMemPoolDestroy)(pool));
	close(fd);
	TAKEN_IS(0);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("sim_memory");
	TCase *tcase = tcase_create("memory");

	(void)argc;
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, sim_setup, sim_teardown);
	tcase_add_test(tcase, small_allocations_share_pages_of_2_MiB);
	tcase_add_test(tcase, out_of_memory_leaves_outputs_and_state_alone);
	tcase_add_test(tcase, a_pool_takes_chunks_of_32_MiB_and_keeps_them_up_to_its_threshold);
	tcase_add_test(tcase, a_pool_serves_a_hundred_rounds_from_one_chunk);
	tcase_add_test(tcase, a_physical_handle_lives_until_released_and_unmapped);
	tcase_add_test(tcase, handles_need_no_context_and_host_ones_no_device);
	tcase_add_test(tcase, arrays_take_their_padded_size);
	tcase_add_test(tcase, what_goes_into_device_memory_comes_out);
	tcase_add_test(tcase, graph_memory_is_taken_by_the_first_launch_and_kept_until_trimmed);
	tcase_add_test(tcase, contexts_modules_and_limits_take_memory);
	tcase_add_test(tcase, managed_memory_is_taken_when_the_device_touches_it);
	tcase_add_test(tcase, an_opened_handle_shows_the_same_bytes_and_keeps_the_memory);
	tcase_add_test(tcase, an_exported_descriptor_keeps_the_memory_until_it_is_closed);
	tcase_add_test(tcase, a_part_of_a_sparse_array_keeps_its_memory);
	tcase_add_test(tcase, a_pointer_imported_from_a_pool_takes_nothing);
	suite_add_tcase(suite, tcase);
	return sim_run(suite, argv[0]);
}
