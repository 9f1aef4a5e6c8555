/*
 * Exports and imports: charged once, to the exporter while it lives, and never to nobody (memory/shares.h).
 *
 * Whose export a file descriptor is travels with it (descriptors.h). IPC, fabric and pool pointer handles are bytes
 * that are the same on both sides: their hash is the key.
 */
#include "hooks/ipc.h"

#include "base/spin.h"
#include "hooks/descriptors.h"

static uint64_t key_of(const void *handle, size_t bytes)
{
	const unsigned char *at = handle;
	uint64_t key = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < bytes; i++)
		key = (key ^ at[i]) * 0x100000001b3ull;
	return key | 1; /* 0 is no key */
}

static struct shares *shares_of(struct memory *memory, struct device_tenant *tenant)
{
	struct shares *shares = &memory->shares[tenant->ordinal];

	if (!shares->file) {
		spin_lock(&memory->shares_lock);
		shares_open(shares, &tenant->member);
		spin_unlock(&memory->shares_lock);
	}
	return shares->file ? shares : NULL;
}

static struct shares *shares_of_device(struct memory *memory, unsigned device,
				       struct device_tenant **ret_tenant)
{
	*ret_tenant = tenant_of_device((CUdevice)device);
	return *ret_tenant ? shares_of(memory, *ret_tenant) : NULL;
}

/* ---- ends ------------------------------------------------------------------------------------------ */

/* within is the share's number + 1; 0: nobody knew whose it was. */
void share_import_ended(struct memory *memory, const struct charge *entry)
{
	struct device_tenant *tenant;
	struct shares *shares = shares_of_device(memory, entry->device, &tenant);
	int number = (int)entry->within - 1;

	if (!shares || number < 0 || number >= SHARES)
		return;
	if (!share_is_carried(shares, &tenant->member, number))
		atomic_fetch_sub(&memory->uncarried_bytes[entry->device],
				 share_bytes(shares, &tenant->member, number));
	if (share_let_go(shares, &tenant->member, number, 0))
		ledger_refund(&tenant->member, CHARGE_IMPORT,
			      share_bytes(shares, &tenant->member, number));
}

void share_own_ended(struct memory *memory, const struct charge *entry)
{
	struct device_tenant *tenant;
	struct shares *shares = shares_of_device(memory, entry->device, &tenant);
	int number = (int)entry->within - 1;

	if (!shares || number < 0 || number >= SHARES)
		return;
	if (share_has_descriptor(shares, number, descriptors_open())) {
		/* It keeps the memory: charged as if another process held it, until it is seen to be closed. */
		ledger_charge_forced(&tenant->member, CHARGE_IMPORT,
				     share_bytes(shares, &tenant->member, number));
		share_leave_to_descriptor(shares, number);
		atomic_store(&memory->descriptors_left[entry->device], 1);
	} else if (!share_let_go(shares, &tenant->member, number, 1)) {
		ledger_charge_forced(&tenant->member, CHARGE_IMPORT,
				     share_bytes(shares, &tenant->member, number));
	}
}

void share_keep(struct memory *memory, struct device_tenant *tenant)
{
	struct shares *shares = &memory->shares[tenant->ordinal];
	_Atomic uint32_t *left = &memory->descriptors_left[tenant->ordinal];
	struct shares_change change;

	if (!shares->file)
		return;
	if (atomic_load(left) && atomic_exchange(left, 0) &&
	    shares_end_descriptors(shares, &tenant->member, descriptors_open()))
		atomic_store(left, 1);
	shares_tick(shares, &tenant->member, &change);
	atomic_fetch_sub(&memory->uncarried_bytes[tenant->ordinal], change.adopt_bytes);
	if (change.adopt_bytes)
		ledger_charge_forced(&tenant->member, CHARGE_IMPORT, change.adopt_bytes);
	if (change.release_bytes)
		ledger_refund(&tenant->member, CHARGE_IMPORT, change.release_bytes);
}

/* ---- exports --------------------------------------------------------------------------------------- */

/* Enters an export; the entry that is charged for the memory learns its share. Returns the serial or 0. */
static uint32_t exported(struct memory *memory, enum charge_space space, const struct charge *entry,
			 uint64_t key, uint64_t bytes)
{
	struct device_tenant *tenant;
	struct shares *shares = shares_of_device(memory, entry->device, &tenant);
	struct charge before;
	uint32_t serial = 0;
	int number;

	if (!shares || entry->flags & CHARGE_IMPORTED)
		return 0;
	if (entry->flags & CHARGE_EXPORTED && entry->within)
		return atomic_load(&shares->file->share[entry->within - 1].serial);
	number = share_export(shares, &tenant->member, key, bytes, &serial);
	if (number < 0)
		return 0;
	charges_put_within(memory->charges, space, entry->key, (uint64_t)number + 1);
	charges_flag(memory->charges, space, entry->key, CHARGE_EXPORTED, 0, &before);
	return serial;
}

CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType handleType,
				      unsigned long long flags)
{
	CUresult result =
		real.cuMemExportToShareableHandle(shareableHandle, handle, handleType, flags);
	struct memory *memory = result == CUDA_SUCCESS ? mem_of_process() : NULL;
	struct charge object;
	uint32_t serial;

	if (!memory || object_of_handle(memory->charges, handle, &object))
		return result;
	if (handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		serial = exported(memory, AT_OBJECT, &object, 0, object.bytes);
		if (serial)
			descriptor_stamp(*(int *)shareableHandle, serial);
	}
#if CUDA_VERSION >= 12030
	if (handleType == CU_MEM_HANDLE_TYPE_FABRIC)
		exported(memory, AT_OBJECT, &object,
			 key_of(shareableHandle, sizeof(CUmemFabricHandle)), object.bytes);
#endif
	return result;
}

/* The allocation that an address is in: its entry, with the driver's help. */
static int entry_around(struct memory *memory, CUdeviceptr address, struct charge *ret)
{
	CUdeviceptr base;
	size_t bytes;

	if (!charges_get(memory->charges, AT_ADDRESS, address, ret))
		return 0;
	if (!real.cuMemGetAddressRange_v2 ||
	    real.cuMemGetAddressRange_v2(&base, &bytes, address) != CUDA_SUCCESS)
		return -1;
	return charges_get(memory->charges, AT_ADDRESS, base, ret);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	CUresult result = real.cuIpcGetMemHandle(pHandle, dptr);
	struct memory *memory = result == CUDA_SUCCESS ? mem_of_process() : NULL;
	struct charge entry;

	if (memory && !entry_around(memory, dptr, &entry))
		exported(memory, AT_ADDRESS, &entry, key_of(pHandle, sizeof(*pHandle)),
			 blocks_round(entry.bytes));
	return result;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
	CUresult result = real.cuMemPoolExportPointer(shareData_out, ptr);
	struct memory *memory = result == CUDA_SUCCESS ? mem_of_process() : NULL;
	struct charge entry;

	if (memory && !entry_around(memory, ptr, &entry))
		exported(memory, AT_ADDRESS, &entry, key_of(shareData_out, sizeof(*shareData_out)),
			 entry.bytes);
	return result;
}

/* ---- imports --------------------------------------------------------------------------------------- */

/* Holds the share, and its charge when nobody else carries it. 0, or -1: no room, let go of again. */
static int hold_share(struct shares *shares, struct mem_call *call, int number)
{
	struct member *member = &call->tenant->member;
	struct mem_want want = {call->tenant, share_bytes(shares, member, number), 0};
	struct relief relief = {.give_up = mem_give_up, .arg = &want};

	call->asked_bytes = want.bytes;
	if (!share_hold(shares, member, number)) {
		if (!share_is_carried(shares, member, number))
			atomic_fetch_add(&call->memory->uncarried_bytes[call->tenant->ordinal],
					 call->asked_bytes);
		return 0;
	}
	if (hold_take(&call->hold, member, CHARGE_IMPORT, call->asked_bytes, &relief,
		      &call->refusal)) {
		share_let_go(shares, member, number, 0);
		return -1;
	}
	share_carry(shares, member, number);
	return 0;
}

/* Whose export it is, as the descriptor tells. */
static struct stamp stamp_of(void *os_handle, CUmemAllocationHandleType type)
{
	if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return descriptor_read((int)(intptr_t)os_handle);
	return (struct stamp){0, 0};
}

static int share_of_import(struct shares *shares, const struct member *member, void *os_handle,
			   CUmemAllocationHandleType type, const struct stamp *stamp)
{
#if CUDA_VERSION >= 12030
	if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		return share_find(shares, key_of(os_handle, sizeof(CUmemFabricHandle)));
#endif
	(void)os_handle;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || stamp->pid <= 0 ||
	    stamp->serial <= 0)
		return -1;
	return share_find_serial(shares, member, (uint32_t)stamp->pid, (uint32_t)stamp->serial);
}

static CUresult enter_import(struct memory *memory, CUmemGenericAllocationHandle handle,
			     void *os_handle, CUmemAllocationHandleType type,
			     const struct stamp *stamp)
{
	struct mem_call call = {.memory = memory};
	CUmemAllocationProp prop;
	struct shares *shares;
	struct charge known;
	uint64_t object = atomic_fetch_add(&memory->next_object, 1);
	int number = -1;

	if (!charges_get(memory->charges, AT_HANDLE, handle, &known)) {
		object_retain(memory->charges, handle); /* the same handle once more */
		return CUDA_SUCCESS;
	}
	if (!real.cuMemGetAllocationPropertiesFromHandle ||
	    real.cuMemGetAllocationPropertiesFromHandle(&prop, handle) != CUDA_SUCCESS ||
	    prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_SUCCESS;
	shares = shares_of_device(memory, (unsigned)prop.location.id, &call.tenant);
	if (!call.tenant)
		return CUDA_SUCCESS;
	if (shares)
		number = share_of_import(shares, &call.tenant->member, os_handle, type, stamp);
	if (number >= 0 && hold_share(shares, &call, number))
		return mem_refuse(&call);
	object_create(memory->charges, object, handle, (unsigned)call.tenant->ordinal,
		      number >= 0 ? call.asked_bytes : 0, CHARGE_IMPORTED);
	if (number >= 0)
		charges_put_within(memory->charges, AT_OBJECT, object, (uint64_t)number + 1);
	return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
					CUmemAllocationHandleType shHandleType)
{
	struct memory *memory = mem_of_process();
	CUmemGenericAllocationHandle made = 0;
	struct stamp stamp;
	CUresult result;

	if (!memory || !handle)
		return real.cuMemImportFromShareableHandle(handle, osHandle, shHandleType);
	stamp = stamp_of(osHandle, shHandleType);
	result = real.cuMemImportFromShareableHandle(&made, osHandle, shHandleType);
	if (result != CUDA_SUCCESS)
		return result;
	result = enter_import(memory, made, osHandle, shHandleType, &stamp);
	if (result != CUDA_SUCCESS) {
		real.cuMemRelease(made);
		return result;
	}
	*handle = made;
	return CUDA_SUCCESS;
}

/* Imported addresses: IPC and pool pointers. */
static CUresult enter_address(struct memory *memory, CUdeviceptr address, uint64_t key)
{
	struct mem_call call = {.memory = memory, .tenant = tenant_of_current()};
	struct shares *shares = call.tenant ? shares_of(memory, call.tenant) : NULL;
	int number = shares ? share_find(shares, key) : -1;
	struct charge entry = {.key = address, .refs = 1, .space = AT_IMPORT};

	if (number < 0)
		return CUDA_SUCCESS;
	entry.device = (uint8_t)call.tenant->ordinal;
	entry.within = (uint64_t)number + 1;
	/* Opened once more: the driver counts too, and answers the same address. */
	if (!charges_add(memory->charges, AT_IMPORT, address, 1, 0, &entry))
		return CUDA_SUCCESS;
	if (hold_share(shares, &call, number))
		return mem_refuse(&call);
	if (real.cuCtxGetCurrent && real.cuCtxGetCurrent(&call.context) == CUDA_SUCCESS)
		entry.owner = (uint64_t)(uintptr_t)call.context;
	atomic_store(&memory->imports, 1);
	charges_ref(memory->charges, &entry);
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	struct memory *memory = pdptr ? mem_of_process() : NULL;
	CUdeviceptr address = 0;
	CUresult result;

	if (!memory)
		return real.cuIpcOpenMemHandle_v2(pdptr, handle, Flags);
	result = real.cuIpcOpenMemHandle_v2(&address, handle, Flags);
	if (result != CUDA_SUCCESS)
		return result;
	result = enter_address(memory, address, key_of(&handle, sizeof(handle)));
	if (result == CUDA_SUCCESS)
		*pdptr = address;
	else
		real.cuIpcCloseMemHandle(address);
	return result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	struct memory *memory = pdptr ? mem_of_process() : NULL;
	CUdeviceptr address = 0;
	CUresult result;

	if (!memory)
		return real.cuIpcOpenMemHandle(pdptr, handle, Flags);
	result = real.cuIpcOpenMemHandle(&address, handle, Flags);
	if (result != CUDA_SUCCESS)
		return result;
	result = enter_address(memory, address, key_of(&handle, sizeof(handle)));
	if (result == CUDA_SUCCESS)
		*pdptr = address;
	else
		real.cuIpcCloseMemHandle(address);
	return result;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	struct memory *memory = mem_of_process();
	CUresult result = real.cuIpcCloseMemHandle(dptr);
	struct charge entry;

	if (memory && result == CUDA_SUCCESS &&
	    !charges_add(memory->charges, AT_IMPORT, dptr, -1, 0, &entry) && !entry.refs)
		share_import_ended(memory, &entry);
	return result;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool,
				CUmemPoolPtrExportData *shareData)
{
	struct memory *memory = ptr_out && shareData ? mem_of_process() : NULL;
	CUdeviceptr address = 0;
	uint64_t key;
	CUresult result;

	if (!memory)
		return real.cuMemPoolImportPointer(ptr_out, pool, shareData);
	key = key_of(shareData, sizeof(*shareData));
	result = real.cuMemPoolImportPointer(&address, pool, shareData);
	if (result != CUDA_SUCCESS)
		return result;
	result = enter_address(memory, address, key);
	if (result == CUDA_SUCCESS)
		*ptr_out = address;
	else
		real.cuMemFree_v2(address);
	return result;
}
