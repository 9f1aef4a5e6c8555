/*
 * The driver's functions that the escape programs call, by exact name through dlsym, typed by the vendor's
 * header; so that one binary runs on the simulated driver and on a card, with and without cuota.
 */
#ifndef ESCAPE_DRIVER_H
#define ESCAPE_DRIVER_H

#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>

#define DRIVER_FUNCTIONS(F) \
	F(cuInit) \
	F(cuDeviceGetCount) \
	F(cuDeviceGetAttribute) \
	F(cuDevicePrimaryCtxRetain) \
	F(cuCtxSetCurrent) \
	F(cuCtxGetCurrent) \
	F(cuCtxCreate_v2) \
	F(cuCtxSetLimit) \
	F(cuCtxSynchronize) \
	F(cuDeviceGetDevResource) \
	F(cuDevSmResourceSplitByCount) \
	F(cuDevResourceGenerateDesc) \
	F(cuGreenCtxCreate) \
	F(cuGreenCtxDestroy) \
	F(cuCtxFromGreenCtx) \
	F(cuMemGetInfo_v2) \
	F(cuMemAlloc) \
	F(cuMemAlloc_v2) \
	F(cuMemFree_v2) \
	F(cuMemAllocPitch) \
	F(cuMemAllocPitch_v2) \
	F(cuMemAllocManaged) \
	F(cuMemsetD8_v2) \
	F(cuMemAllocAsync) \
	F(cuMemAllocAsync_ptsz) \
	F(cuMemFreeAsync) \
	F(cuMemAllocFromPoolAsync) \
	F(cuMemAllocFromPoolAsync_ptsz) \
	F(cuMemPoolCreate) \
	F(cuMemPoolSetAttribute) \
	F(cuMemPoolDestroy) \
	F(cuMemPoolTrimTo) \
	F(cuDeviceGetDefaultMemPool) \
	F(cuMemCreate) \
	F(cuMemRelease) \
	F(cuMemMap) \
	F(cuMemUnmap) \
	F(cuMemSetAccess) \
	F(cuMemRetainAllocationHandle) \
	F(cuMemAddressReserve) \
	F(cuMemExportToShareableHandle) \
	F(cuMemImportFromShareableHandle) \
	F(cuMemMapArrayAsync) \
	F(cuArrayGetSparseProperties) \
	F(cuArrayCreate) \
	F(cuArrayCreate_v2) \
	F(cuArray3DCreate) \
	F(cuArray3DCreate_v2) \
	F(cuMipmappedArrayCreate) \
	F(cuStreamCreate) \
	F(cuStreamSynchronize) \
	F(cuStreamBeginCapture_v2) \
	F(cuStreamEndCapture) \
	F(cuGraphCreate) \
	F(cuGraphAddMemAllocNode) \
	F(cuGraphInstantiateWithFlags) \
	F(cuGraphLaunch) \
	F(cuGraphUpload) \
	F(cuModuleLoadData) \
	F(cuModuleGetFunction) \
	F(cuModuleGetGlobal_v2) \
	F(cuLibraryLoadData) \
	F(cuLibraryGetGlobal) \
	F(cuLaunchKernel) \
	F(cuCtxDestroy_v2) \
	F(cuDevicePrimaryCtxRelease_v2) \
	F(cuDevicePrimaryCtxReset_v2) \
	F(cuDeviceTotalMem_v2) \
	F(cuMemFree) \
	F(cuArrayDestroy) \
	F(cuMipmappedArrayDestroy) \
	F(cuModuleUnload) \
	F(cuGraphExecDestroy) \
	F(cuGraphAddMemFreeNode) \
	F(cuDeviceGraphMemTrim) \
	F(cuMemPoolGetAttribute) \
	F(cuDeviceGetGraphMemAttribute) \
	F(cuGraphDestroy) \
	F(cuMemAddressFree) \
	F(cuIpcGetMemHandle) \
	F(cuIpcOpenMemHandle_v2) \
	F(cuIpcCloseMemHandle)

struct driver {
#define F(symbol) __typeof__(symbol) *symbol;
	DRIVER_FUNCTIONS(F)
#undef F
};

/* All of them; NULL where this driver lacks one. */
extern struct driver cu;

/* 0, or 1 when there is no driver: then the reason has been printed. */
int driver_load(void);

#endif
