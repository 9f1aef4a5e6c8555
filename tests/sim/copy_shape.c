/*
 * Copies in two and three dimensions, and to and from arrays: each becomes one box of rows.
 */
#include "array.h"
#include "entries.h"

/* One end of a copy. */
struct end {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	uint64_t x, y, z, pitch, height;
};

static CUresult place(const struct end *e, CUdeviceptr *ret_at, uint64_t *ret_pitch,
		      uint64_t *ret_slice, bool *ret_array)
{
	*ret_array = e->type == CU_MEMORYTYPE_ARRAY;
	if (*ret_array) {
		struct array *array = array_of(e->array);
		if (!array)
			return CUDA_ERROR_INVALID_HANDLE;
		if (!array->base)
			return CUDA_ERROR_INVALID_VALUE;
		*ret_pitch = array->pitch;
		*ret_slice = array->slice;
		*ret_at = array->base + e->z * array->slice + e->y * array->pitch + e->x;
		return CUDA_SUCCESS;
	}
	uint64_t base = e->type == CU_MEMORYTYPE_HOST ? (uint64_t)e->host : e->device;
	*ret_pitch = e->pitch;
	*ret_slice = e->pitch * e->height;
	*ret_at = base + e->z * *ret_slice + e->y * e->pitch + e->x;
	return base ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult copy_box(const struct end *to, const struct end *from, uint64_t width,
			 uint64_t height, uint64_t depth, CUstream stream, bool synchronous)
{
	struct copy_rows c = {.width = width, .height = height, .depth = depth};
	CUresult result = place(to, &c.to, &c.to_pitch, &c.to_slice, &c.to_array);
	if (result == CUDA_SUCCESS)
		result = place(from, &c.from, &c.from_pitch, &c.from_slice, &c.from_array);
	if (result != CUDA_SUCCESS)
		return result;
	if ((!c.to_pitch || !c.from_pitch) && height > 1)
		return CUDA_ERROR_INVALID_VALUE;
	return copy_rows(stream, &c, synchronous);
}

#define END_2D(c, side) \
	{ \
		(c)->side##MemoryType, (c)->side##Host, (c)->side##Device, (c)->side##Array, \
			(c)->side##XInBytes, (c)->side##Y, 0, (c)->side##Pitch, 1 \
	}
#define END_3D(c, side) \
	{ \
		(c)->side##MemoryType, (c)->side##Host, (c)->side##Device, (c)->side##Array, \
			(c)->side##XInBytes, (c)->side##Y, (c)->side##Z, (c)->side##Pitch, \
			(c)->side##Height \
	}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool synchronous)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	struct end to = END_2D(c, dst), from = END_2D(c, src);
	if (!to.pitch)
		to.pitch = c->WidthInBytes;
	if (!from.pitch)
		from.pitch = c->WidthInBytes;
	return copy_box(&to, &from, c->WidthInBytes, c->Height, 1, stream, synchronous);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c, CUstream stream, bool synchronous)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	struct end to = END_3D(c, dst), from = END_3D(c, src);
	return copy_box(&to, &from, c->WidthInBytes, c->Height, c->Depth, stream, synchronous);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *c, CUstream stream, bool synchronous)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	struct end to = END_3D(c, dst), from = END_3D(c, src);
	return copy_box(&to, &from, c->WidthInBytes, c->Height, c->Depth, stream, synchronous);
}

CUresult sim_cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
	return copy_2d(copy, NULL, true);
}

CUresult sim_cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *copy)
{
	return copy_2d(copy, NULL, true);
}

CUresult sim_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	return copy_2d(copy, stream, false);
}

CUresult sim_cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
	return copy_3d(copy, NULL, true);
}

CUresult sim_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	return copy_3d(copy, stream, false);
}

CUresult sim_cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy)
{
	return copy_3d_peer(copy, NULL, true);
}

CUresult sim_cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	return copy_3d_peer(copy, stream, false);
}

/* ---- one-dimensional copies of arrays: offsets are bytes of the first row ---- */

static struct end array_end(CUarray array, size_t offset)
{
	return (struct end){.type = CU_MEMORYTYPE_ARRAY, .array = array, .x = offset};
}

static struct end host_end(const void *host)
{
	return (struct end){.type = CU_MEMORYTYPE_HOST, .host = host};
}

static struct end device_end(CUdeviceptr device)
{
	return (struct end){.type = CU_MEMORYTYPE_DEVICE, .device = device};
}

static CUresult copy_line(struct end to, struct end from, size_t bytes, CUstream stream, bool sync)
{
	return copy_box(&to, &from, bytes, 1, 1, stream, sync);
}

CUresult sim_cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes)
{
	return copy_line(array_end(to, offset), device_end(from), bytes, NULL, true);
}

CUresult sim_cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes)
{
	return copy_line(device_end(to), array_end(from, offset), bytes, NULL, true);
}

CUresult sim_cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t bytes)
{
	return copy_line(array_end(to, offset), host_end(from), bytes, NULL, true);
}

CUresult sim_cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t bytes)
{
	return copy_line(host_end(to), array_end(from, offset), bytes, NULL, true);
}

CUresult sim_cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset,
			     size_t bytes)
{
	return copy_line(array_end(to, to_offset), array_end(from, from_offset), bytes, NULL, true);
}

CUresult sim_cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes,
				  CUstream stream)
{
	return copy_line(array_end(to, offset), host_end(from), bytes, stream, false);
}

CUresult sim_cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes,
				  CUstream stream)
{
	return copy_line(host_end(to), array_end(from, offset), bytes, stream, false);
}
