/*
 * Batches of copies, prefetches and discards: one after the other, up to the first that fails.
 */
#include "array.h"
#include "entries.h"

CUresult sim_cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
				   CUmemcpyAttributes *attributes, size_t *attribute_of,
				   size_t attribute_count, CUstream stream)
{
	(void)attribute_of;
	if (!to || !from || !sizes || !count || !attributes || !attribute_count || !stream)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		CUresult result = sim_cuMemcpyAsync(to[i], from[i], sizes[i], stream);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return CUDA_SUCCESS;
}

CUresult sim_cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
				CUmemcpyAttributes *attributes, size_t *attribute_of,
				size_t attribute_count, size_t *ret_failed, CUstream stream)
{
	CUresult result = sim_cuMemcpyBatchAsync_v2(to, from, sizes, count, attributes,
						    attribute_of, attribute_count, stream);
	if (result != CUDA_SUCCESS && ret_failed)
		*ret_failed = SIZE_MAX;
	return result;
}

static unsigned element_bytes(const CUDA_MEMCPY3D_BATCH_OP *op)
{
	CUarray handle = op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY	? op->src.op.array.array
			 : op->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? op->dst.op.array.array
									: NULL;
	struct array *array = array_of(handle);
	return array ? array_channel_bytes(array->desc.Format) * array->desc.NumChannels : 1;
}

/* One operation; extents and offsets count elements of the array in it, else bytes. */
static CUresult copy_3d(const CUDA_MEMCPY3D_BATCH_OP *op, CUstream stream)
{
	unsigned element = element_bytes(op);
	const CUmemcpy3DOperand *s = &op->src, *d = &op->dst;
	CUDA_MEMCPY3D c = {
		.WidthInBytes = op->extent.width * element,
		.Height = op->extent.height,
		.Depth = op->extent.depth,
	};
	if (s->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
		c.srcArray = s->op.array.array;
		c.srcXInBytes = s->op.array.offset.x * element;
		c.srcY = s->op.array.offset.y;
		c.srcZ = s->op.array.offset.z;
	} else {
		c.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
		c.srcDevice = s->op.ptr.ptr;
		c.srcPitch = s->op.ptr.rowLength ? s->op.ptr.rowLength * element : c.WidthInBytes;
		c.srcHeight = s->op.ptr.layerHeight ? s->op.ptr.layerHeight : c.Height;
	}
	if (d->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		c.dstArray = d->op.array.array;
		c.dstXInBytes = d->op.array.offset.x * element;
		c.dstY = d->op.array.offset.y;
		c.dstZ = d->op.array.offset.z;
	} else {
		c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
		c.dstDevice = d->op.ptr.ptr;
		c.dstPitch = d->op.ptr.rowLength ? d->op.ptr.rowLength * element : c.WidthInBytes;
		c.dstHeight = d->op.ptr.layerHeight ? d->op.ptr.layerHeight : c.Height;
	}
	return sim_cuMemcpy3DAsync_v2(&c, stream);
}

CUresult sim_cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops,
				     unsigned long long flags, CUstream stream)
{
	if (!count || !ops || flags || !stream)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		CUresult result = copy_3d(&ops[i], stream);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return CUDA_SUCCESS;
}

CUresult sim_cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *ret_failed,
				  unsigned long long flags, CUstream stream)
{
	CUresult result = sim_cuMemcpy3DBatchAsync_v2(count, ops, flags, stream);
	if (result != CUDA_SUCCESS && ret_failed)
		*ret_failed = SIZE_MAX;
	return result;
}

CUresult sim_cuMemPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
				     CUmemLocation *locations, size_t *location_of,
				     size_t location_count, unsigned long long flags,
				     CUstream stream)
{
	if (!addresses || !sizes || !count || !locations || !location_of || !location_count ||
	    flags)
		return CUDA_ERROR_INVALID_VALUE;
	size_t which = 0;
	for (size_t i = 0; i < count; i++) {
		while (which + 1 < location_count && location_of[which + 1] <= i)
			which++;
		CUresult result = sim_cuMemPrefetchAsync_v2(addresses[i], sizes[i],
							    locations[which], 0, stream);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return CUDA_SUCCESS;
}

/* The contents may go; the memory stays. */
CUresult sim_cuMemDiscardBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
				    unsigned long long flags, CUstream handle)
{
	struct stream *stream;
	if (!addresses || !sizes || !count || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_resolve(handle, &stream);
}

CUresult sim_cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
					       CUmemLocation *locations, size_t *location_of,
					       size_t location_count, unsigned long long flags,
					       CUstream stream)
{
	return sim_cuMemPrefetchBatchAsync(addresses, sizes, count, locations, location_of,
					   location_count, flags, stream);
}
