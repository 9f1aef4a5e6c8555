/*
 * What the program is told about memory: the quota, never more than the card. A view succeeds whenever the
 * driver's does, and looks first at what this process's own pools gave back.
 */
#include "hooks/books.h"
#include "hooks/ipc.h"
#include "hooks/mem_pool.h"
#include "hooks/view.h"

/* Overhead from which on a view is worth NVML's 20 us. */
#define STALE_BYTES (64ull << 20)

static struct view_memory view_of(const struct device_tenant *tenant, uint64_t real_total,
				  uint64_t real_free)
{
	uint64_t group = ledger_group_cap(&tenant->member);
	uint64_t process = ledger_process_cap(&tenant->member);

	return view_memory(real_total, real_free, group < process ? group : process,
			   ledger_room(&tenant->member));
}

/* The tenant whose view it is; its pools' figures made new. */
static struct device_tenant *viewer(void)
{
	struct memory *memory = mem_of_process();
	struct device_tenant *tenant = memory ? tenant_of_current() : NULL;

	if (!tenant)
		return NULL;
	member_refresh(&tenant->member);
	/* What the dead of the group held is free. */
	if (ledger_others_hold(&tenant->member))
		ledger_reap(&tenant->ledger);
	if (atomic_load(&memory->descriptors_left[tenant->ordinal]))
		share_keep(memory, tenant);
	mem_pools_refresh(memory, (unsigned)tenant->ordinal);
	/* Overhead is of the last look, up to a second ago; a program that waits for room should see it go. */
	if (tenant->member.kind_bytes[CHARGE_OVERHEAD] >= STALE_BYTES)
		books_keep(tenant);
	return tenant;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	CUresult result = real.cuMemGetInfo_v2(free, total);
	struct device_tenant *tenant;
	struct view_memory view;

	if (result != CUDA_SUCCESS || !free || !total)
		return result;
	tenant = viewer();
	if (tenant) {
		view = view_of(tenant, *total, *free);
		*free = view.free_bytes;
		*total = view.total_bytes;
	}
	return result;
}

static unsigned int clamped(uint64_t bytes)
{
	return bytes > UINT32_MAX ? UINT32_MAX : (unsigned int)bytes;
}

/* The old ABI has 32 bits: the view is made from the real figures, then clamped. */
CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
	CUresult result = real.cuMemGetInfo(free, total);
	size_t real_free, real_total;
	struct device_tenant *tenant;
	struct view_memory view;

	if (result != CUDA_SUCCESS || !free || !total)
		return result;
	tenant = viewer();
	if (tenant && real.cuMemGetInfo_v2(&real_free, &real_total) == CUDA_SUCCESS) {
		view = view_of(tenant, real_total, real_free);
		*free = clamped(view.free_bytes);
		*total = clamped(view.total_bytes);
	}
	return result;
}

/* Needs no context: neither does a seat. */
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	CUresult result = real.cuDeviceTotalMem_v2(bytes, dev);
	struct device_tenant *tenant;
	struct view_memory view;

	if (result != CUDA_SUCCESS || !bytes || !mem_of_process())
		return result;
	tenant = tenant_of_device(dev);
	if (tenant) {
		member_refresh(&tenant->member);
		view = view_of(tenant, *bytes, *bytes);
		*bytes = view.total_bytes;
	}
	return result;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	CUresult result = real.cuDeviceTotalMem(bytes, dev);
	struct device_tenant *tenant;
	struct view_memory view;

	if (result != CUDA_SUCCESS || !bytes || !mem_of_process())
		return result;
	tenant = tenant_of_device(dev);
	if (tenant) {
		member_refresh(&tenant->member);
		view = view_of(tenant, tenant->device_bytes, tenant->device_bytes);
		*bytes = clamped(view.total_bytes);
	}
	return result;
}
