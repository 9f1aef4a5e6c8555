/*
 * Stream memory operations: waits on a value in memory, and writes of one. Waits are polled, so a
 * plain store by any thread opens them; writes happen at their simulated time.
 */
#include "sim.h"
#include "entries.h"

#define WRITE_COST_NS 500ull

/* Where the driver's pointer is in this process: the same address, for mapped and device memory. */
static void *host_view(CUdeviceptr address)
{
	return memory_view(address);
}

bool wait_value_open(const struct op *op)
{
	uint64_t mask = op->wide ? UINT64_MAX : UINT32_MAX;
	uint64_t now = op->wide ? __atomic_load_n((uint64_t *)op->data, __ATOMIC_ACQUIRE)
				: __atomic_load_n((uint32_t *)op->data, __ATOMIC_ACQUIRE);
	switch (op->value_flags & 7) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return op->wide ? (int64_t)(now - op->value) >= 0
				: (int32_t)(uint32_t)(now - op->value) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ: return now == (op->value & mask);
	case CU_STREAM_WAIT_VALUE_AND: return (now & op->value) != 0;
	default: /* NOR */ return (~(now | op->value) & mask) != 0;
	}
}

void wait_value_write(const struct op *op)
{
	if (op->wide)
		__atomic_store_n((uint64_t *)op->data, op->value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)op->data, (uint32_t)op->value, __ATOMIC_RELEASE);
}

static CUresult check(CUdeviceptr address, uint64_t size)
{
	if (!address || address % size || !host_view(address))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult add(CUstream handle, enum op_kind kind, CUdeviceptr address, uint64_t value,
		    unsigned flags, bool wide)
{
	struct stream *stream;
	CUresult result = stream_resolve(handle, &stream);
	if (result == CUDA_SUCCESS)
		result = check(address, wide ? 8 : 4);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->capture) {
		struct op captured = {
			.kind = kind,
			.address = address,
			.data = host_view(address),
			.value = value,
			.value_flags = flags,
			.wide = wide,
		};
		return capture_mem_op(stream, &captured);
	}
	struct op *op = op_new(kind, kind == OP_WRITE_VALUE ? WRITE_COST_NS : 0);
	op->address = address;
	op->data = host_view(address);
	op->value = value;
	op->value_flags = flags;
	op->wide = wide;
	queue_add(stream, op);
	return CUDA_SUCCESS;
}

CUresult sim_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
				    unsigned int flags)
{
	return add(stream, OP_WAIT_VALUE, address, value, flags, false);
}

CUresult sim_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
				    unsigned int flags)
{
	return add(stream, OP_WAIT_VALUE, address, value, flags, true);
}

CUresult sim_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
				     unsigned int flags)
{
	return add(stream, OP_WRITE_VALUE, address, value, flags, false);
}

CUresult sim_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
				     unsigned int flags)
{
	return add(stream, OP_WRITE_VALUE, address, value, flags, true);
}

static CUresult add_one(CUstream stream, const CUstreamBatchMemOpParams *p)
{
	switch (p->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		return add(stream, OP_WAIT_VALUE, p->waitValue.address, p->waitValue.value,
			   p->waitValue.flags, false);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return add(stream, OP_WAIT_VALUE, p->waitValue.address, p->waitValue.value64,
			   p->waitValue.flags, true);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return add(stream, OP_WRITE_VALUE, p->writeValue.address, p->writeValue.value,
			   p->writeValue.flags, false);
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return add(stream, OP_WRITE_VALUE, p->writeValue.address, p->writeValue.value64,
			   p->writeValue.flags, true);
	case CU_STREAM_MEM_OP_BARRIER:
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult sim_cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
				   CUstreamBatchMemOpParams *params, unsigned int flags)
{
	if (!count || count > 256 || !params || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		CUresult result = add_one(stream, &params[i]);
		if (result != CUDA_SUCCESS)
			return result;
	}
	return CUDA_SUCCESS;
}
