/*
 * Virtual memory management: charged at cuMemCreate, refunded when neither a handle nor a mapping is left
 * (memory/objects.h). Reserving addresses costs nothing and is not intercepted.
 *
 * The device is the property struct's, never the current context's: there may be none.
 */
#include "hooks/ipc.h"
#include "hooks/mem_call.h"
#include "hooks/mem_virtual.h"

/* What the driver refused is as it was; what it let go of for good is refunded. */
void mem_object_ended(struct memory *memory, const struct object_end *end, CUresult result)
{
	if (end->gone.space == AT_NOTHING)
		return;
	if (result != CUDA_SUCCESS)
		object_put_back(memory->charges, end);
	else if (end->last)
		mem_object_refund(memory, &end->object);
}

static CUresult create_end(struct mem_call *call, CUmemGenericAllocationHandle handle)
{
	struct charge old;
	struct object_end end;
	uint64_t object = atomic_fetch_add(&call->memory->next_object, 1);

	/* A handle that we still know was released past us. */
	if (!charges_get(call->memory->charges, AT_HANDLE, handle, &old)) {
		object_release(call->memory->charges, handle, &end);
		mem_object_ended(call->memory, &end, CUDA_SUCCESS);
	}
	return object_create(call->memory->charges, object, handle, (unsigned)call->tenant->ordinal,
			     call->hold.bytes, 0)
		       ? CUDA_ERROR_OUT_OF_MEMORY
		       : CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
	struct memory *memory = mem_of_process();
	struct object_end end;
	CUresult result;

	if (!memory)
		return real.cuMemRelease(handle);
	object_release(memory->charges, handle, &end);
	result = real.cuMemRelease(handle);
	mem_object_ended(memory, &end, result);
	return result;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct mem_call call;
	CUmemGenericAllocationHandle made = 0;
	CUresult result;

	if (!handle || !prop || !size || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return real.cuMemCreate(handle, size, prop, flags);
	switch (mem_begin_on(&call, prop->location.id, CHARGE_VIRTUAL, size)) {
	case MEM_PASS: return real.cuMemCreate(handle, size, prop, flags);
	case MEM_REFUSED: return CUDA_ERROR_OUT_OF_MEMORY;
	case MEM_HELD: break;
	}
	result = real.cuMemCreate(&made, size, prop, flags);
	if (result != CUDA_SUCCESS)
		return mem_drop(&call, result);
	if (create_end(&call, made) != CUDA_SUCCESS) {
		real.cuMemRelease(made);
		return mem_refuse(&call);
	}
	if (mem_outgrown(&call)) {
		release(made);
		return mem_refuse_made(&call);
	}
	*handle = made;
	return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	return release(handle);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	struct memory *memory = mem_of_process();
	CUresult result = real.cuMemRetainAllocationHandle(handle, addr);

	if (memory && result == CUDA_SUCCESS)
		object_retain_address(memory->charges, (uint64_t)(uintptr_t)addr, *handle);
	return result;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags)
{
	struct memory *memory = mem_of_process();
	CUresult result = real.cuMemMap(ptr, size, offset, handle, flags);
	struct object_end replaced;

	if (memory && result == CUDA_SUCCESS) {
		object_map(memory->charges, handle, ptr, size, 0, &replaced);
		mem_object_ended(memory, &replaced, CUDA_SUCCESS);
	}
	return result;
}

enum { MAPPINGS_AT_ONCE = 64 };

/* Of the mappings in [ptr, ptr + size), as many as fit; *ret_next is where the next batch starts. */
static unsigned take_mappings(struct memory *memory, uint64_t ptr, uint64_t end,
			      struct object_end ends[MAPPINGS_AT_ONCE], uint64_t *ret_next)
{
	unsigned count = 0;

	while (ptr < end && count < MAPPINGS_AT_ONCE) {
		uint64_t bytes = object_unmap(memory->charges, ptr, &ends[count]);

		if (!bytes)
			break; /* not ours, or a hole: the driver's to judge */
		count++;
		ptr += bytes;
	}
	*ret_next = ptr;
	return count;
}

/* One call may end many mappings, one after the other. */
CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	struct memory *memory = mem_of_process();
	struct object_end ends[MAPPINGS_AT_ONCE];
	uint64_t next;
	unsigned count;
	CUresult result;

	if (!memory)
		return real.cuMemUnmap(ptr, size);
	count = take_mappings(memory, ptr, ptr + size, ends, &next);
	result = real.cuMemUnmap(ptr, size);
	for (;;) {
		for (unsigned i = 0; i < count; i++)
			mem_object_ended(memory, &ends[i], result);
		if (result != CUDA_SUCCESS || count < MAPPINGS_AT_ONCE)
			return result;
		/* Longer ranges: a later mapping at these addresses cannot be told apart for an instant. */
		count = take_mappings(memory, next, ptr + size, ends, &next);
	}
}

void mem_object_refund(struct memory *memory, const struct charge *object)
{
	struct member *member = mem_member_of(object->device);

	if (object->flags & CHARGE_IMPORTED) {
		share_import_ended(memory, object);
		return;
	}
	if (object->flags & CHARGE_EXPORTED)
		share_own_ended(memory, object);
	if (member)
		ledger_refund(member, CHARGE_VIRTUAL, object->bytes);
}
