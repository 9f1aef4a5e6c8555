/* Ways that are one family of calls each: linear, pools, arrays, virtual memory. */
#include "ways.h"

#include <stdlib.h>
#include <string.h>

CUdevice way_device;
CUstream way_stream;

#define NEED(symbol) \
	do { \
		if (!cu.symbol) \
			return NOT_HERE; \
	} while (0)

static CUresult alloc(uint64_t piece, uint64_t *ret)
{
	CUdeviceptr p;

	*ret = piece;
	return cu.cuMemAlloc_v2(&p, piece);
}

static CUresult alloc_v1(uint64_t piece, uint64_t *ret)
{
	CUdeviceptr_v1 p;

	NEED(cuMemAlloc);
	*ret = piece;
	return cu.cuMemAlloc(&p, (unsigned)piece);
}

static CUresult small(uint64_t piece, uint64_t *ret)
{
	CUdeviceptr p;

	(void)piece;
	*ret = 0;
	for (int i = 0; i < 256; i++) {
		CUresult result = cu.cuMemAlloc_v2(&p, 1 << 20);

		if (result)
			return result;
		*ret += 1 << 20;
	}
	return CUDA_SUCCESS;
}

static CUresult odd(uint64_t piece, uint64_t *ret)
{
	CUdeviceptr p;

	*ret = piece + (1 << 20) + 1;
	return cu.cuMemAlloc_v2(&p, piece + (1 << 20) + 1);
}

static CUresult pitch(uint64_t piece, uint64_t *ret)
{
	CUdeviceptr p;
	size_t row = 0;
	CUresult result = cu.cuMemAllocPitch_v2(&p, &row, 1, piece / 512, 4);

	*ret = row * (piece / 512);
	return result;
}

static CUresult pitch_v1(uint64_t piece, uint64_t *ret)
{
	CUdeviceptr_v1 p;
	unsigned row = 0;
	CUresult result;

	NEED(cuMemAllocPitch);
	result = cu.cuMemAllocPitch(&p, &row, 4096, (unsigned)(piece / 4096), 4);
	*ret = (uint64_t)row * (piece / 4096);
	return result;
}

static CUresult managed(uint64_t piece, uint64_t *ret)
{
	CUdeviceptr p;
	CUresult result = cu.cuMemAllocManaged(&p, piece, CU_MEM_ATTACH_GLOBAL);

	*ret = piece;
	if (result == CUDA_SUCCESS) {
		cu.cuMemsetD8_v2(p, 1, piece);
		cu.cuCtxSynchronize();
	}
	return result;
}

/* ---- pools ---------------------------------------------------------------------------------------- */

static CUresult async(uint64_t piece, uint64_t *ret)
{
	CUdeviceptr p;

	NEED(cuMemAllocAsync);
	*ret = piece;
	return cu.cuMemAllocAsync(&p, piece, way_stream);
}

static CUresult async_ptsz(uint64_t piece, uint64_t *ret)
{
	CUdeviceptr p;

	NEED(cuMemAllocAsync_ptsz);
	*ret = piece;
	return cu.cuMemAllocAsync_ptsz(&p, piece, NULL);
}

static CUresult make_pool(CUmemoryPool *ret)
{
	CUmemPoolProps props;

	NEED(cuMemPoolCreate);
	memset(&props, 0, sizeof(props));
	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	props.location.id = way_device;
	return cu.cuMemPoolCreate(ret, &props);
}

static CUresult own_pool(uint64_t piece, uint64_t *ret)
{
	static CUmemoryPool pool;
	CUresult result = pool ? CUDA_SUCCESS : make_pool(&pool);
	CUdeviceptr p;

	*ret = piece;
	return result ? result : cu.cuMemAllocFromPoolAsync(&p, piece, pool, way_stream);
}

static CUresult own_pool_ptsz(uint64_t piece, uint64_t *ret)
{
	static CUmemoryPool pool;
	CUresult result = pool ? CUDA_SUCCESS : make_pool(&pool);
	CUdeviceptr p;

	*ret = piece;
	return result ? result : cu.cuMemAllocFromPoolAsync_ptsz(&p, piece, pool, NULL);
}

/* A pool each time, whose block is freed and which keeps what it reserved. */
static CUresult kept_pools(uint64_t piece, uint64_t *ret)
{
	cuuint64_t all = UINT64_MAX;
	CUmemoryPool pool;
	CUdeviceptr p;
	CUresult result = make_pool(&pool);

	*ret = 0;
	if (!result)
		result = cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
	if (!result)
		result = cu.cuMemAllocFromPoolAsync(&p, piece, pool, way_stream);
	if (!result)
		result = cu.cuMemFreeAsync(p, way_stream);
	if (!result)
		result = cu.cuStreamSynchronize(way_stream);
	/* Before a refusal our own pools are trimmed, so this may go on for ever: it holds one at most. */
	return result;
}

/* The pool is destroyed while its block lives on. */
static CUresult dead_pools(uint64_t piece, uint64_t *ret)
{
	CUmemoryPool pool;
	CUdeviceptr p;
	CUresult result = make_pool(&pool);

	*ret = piece;
	if (!result)
		result = cu.cuMemAllocFromPoolAsync(&p, piece, pool, way_stream);
	if (!result)
		result = cu.cuMemPoolDestroy(pool);
	return result;
}

/* ---- virtual memory ------------------------------------------------------------------------------- */

static CUresult create_memory(uint64_t piece, CUmemAllocationHandleType type,
			      CUmemGenericAllocationHandle *ret)
{
	CUmemAllocationProp prop;

	NEED(cuMemCreate);
	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.requestedHandleTypes = type;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = way_device;
	return cu.cuMemCreate(ret, piece, &prop, 0);
}

static CUresult create(uint64_t piece, uint64_t *ret)
{
	CUmemGenericAllocationHandle handle;

	*ret = piece;
	return create_memory(piece, CU_MEM_HANDLE_TYPE_NONE, &handle);
}

/* A mapping keeps what its handle no longer does. */
static CUresult map_release(uint64_t piece, uint64_t *ret)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr p;
	CUresult result = create_memory(piece, CU_MEM_HANDLE_TYPE_NONE, &handle);

	*ret = piece;
	if (!result)
		result = cu.cuMemAddressReserve(&p, piece, 0, 0, 0);
	if (!result)
		result = cu.cuMemMap(p, piece, 0, handle, 0);
	if (!result)
		result = cu.cuMemRelease(handle);
	return result;
}

/* A handle that was got back from a mapping keeps what the mapping no longer does. */
static CUresult map_retain(uint64_t piece, uint64_t *ret)
{
	CUmemGenericAllocationHandle handle, again;
	CUdeviceptr p;
	CUresult result = create_memory(piece, CU_MEM_HANDLE_TYPE_NONE, &handle);

	*ret = piece;
	if (!result)
		result = cu.cuMemAddressReserve(&p, piece, 0, 0, 0);
	if (!result)
		result = cu.cuMemMap(p, piece, 0, handle, 0);
	if (!result)
		result = cu.cuMemRelease(handle);
	if (!result)
		result = cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(p + piece / 2));
	if (!result)
		result = cu.cuMemUnmap(p, piece);
	return result;
}

/* Exported, imported again by the same process, and let go of. */
static CUresult export_import(uint64_t piece, uint64_t *ret)
{
	CUmemGenericAllocationHandle handle, again;
	int fd = -1;
	CUresult result = create_memory(piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, &handle);

	*ret = piece;
	if (!result)
		result = cu.cuMemExportToShareableHandle(
			&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (!result)
		result = cu.cuMemImportFromShareableHandle(
			&again, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (!result)
		result = cu.cuMemRelease(handle);
	return result;
}

/* ---- arrays --------------------------------------------------------------------------------------- */

static CUresult array(uint64_t piece, uint64_t *ret)
{
	CUDA_ARRAY_DESCRIPTOR d = {.Width = 16384,
				   .Height = piece / 16384 / 4,
				   .Format = CU_AD_FORMAT_FLOAT,
				   .NumChannels = 1};
	CUarray a;

	*ret = piece;
	return cu.cuArrayCreate_v2(&a, &d);
}

static CUresult array_v1(uint64_t piece, uint64_t *ret)
{
	CUDA_ARRAY_DESCRIPTOR_v1 d = {.Width = 16384,
				      .Height = (unsigned)(piece / 16384 / 4),
				      .Format = CU_AD_FORMAT_FLOAT,
				      .NumChannels = 1};
	CUarray a;

	NEED(cuArrayCreate);
	*ret = piece;
	return cu.cuArrayCreate(&a, &d);
}

static CUresult array_3d(uint64_t piece, uint64_t *ret)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 1024,
				     .Height = 1024,
				     .Depth = piece >> 22,
				     .Format = CU_AD_FORMAT_FLOAT,
				     .NumChannels = 1};
	CUarray a;

	*ret = piece;
	return cu.cuArray3DCreate_v2(&a, &d);
}

static CUresult array_3d_v1(uint64_t piece, uint64_t *ret)
{
	CUDA_ARRAY3D_DESCRIPTOR_v1 d = {.Width = 1024,
					.Height = 1024,
					.Depth = (unsigned)(piece >> 22),
					.Format = CU_AD_FORMAT_FLOAT,
					.NumChannels = 1};
	CUarray a;

	NEED(cuArray3DCreate);
	*ret = piece;
	return cu.cuArray3DCreate(&a, &d);
}

static CUresult mipmap(uint64_t piece, uint64_t *ret)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 16384,
				     .Height = piece / 16384 / 4,
				     .Format = CU_AD_FORMAT_FLOAT,
				     .NumChannels = 1};
	CUmipmappedArray a;

	*ret = piece;
	return cu.cuMipmappedArrayCreate(&a, &d, 4);
}

const struct way ways[] = {
	{"cuMemAlloc_v2", alloc},
	{"cuMemAlloc", alloc_v1},
	{"cuMemAlloc_v2, 256 x 1 MiB", small},
	{"cuMemAlloc_v2, odd sizes", odd},
	{"cuMemAllocPitch_v2, narrow rows", pitch},
	{"cuMemAllocPitch", pitch_v1},
	{"cuMemAllocManaged, touched", managed},
	{"cuMemAllocAsync", async},
	{"cuMemAllocAsync_ptsz", async_ptsz},
	{"cuMemAllocFromPoolAsync, own pool", own_pool},
	{"cuMemAllocFromPoolAsync_ptsz", own_pool_ptsz},
	{"pools that keep what was freed", kept_pools},
	{"pools destroyed with live blocks", dead_pools},
	{"cuMemCreate", create},
	{"cuMemCreate, map, release", map_release},
	{"map, release, retain, unmap", map_retain},
	{"export, import, release", export_import},
	{"cuArrayCreate_v2", array},
	{"cuArrayCreate", array_v1},
	{"cuArray3DCreate_v2", array_3d},
	{"cuArray3DCreate", array_3d_v1},
	{"cuMipmappedArrayCreate", mipmap},
	{"sparse array tiles, handles released", take_sparse},
	{"graph memory nodes", take_graph},
	{"cuMemAllocAsync under capture", take_captured},
	{"graph memory nodes, uploaded", take_uploaded},
	{"malloc heap limit", take_heap},
	{"printf buffer limit", take_printf},
	{"stack limit x threads", take_stack},
	{"local memory x threads at a launch", take_local},
	{"globals of modules", take_module},
	{"globals of libraries", take_library},
	{"contexts", take_context},
	{"green contexts", take_green},
	{"second device, no context there", take_second_device},
	{"exported to a peer, then released", take_by_peer},
	{"exported and released, the descriptor kept", take_by_descriptor},
};
const size_t ways_count = sizeof(ways) / sizeof(ways[0]);
