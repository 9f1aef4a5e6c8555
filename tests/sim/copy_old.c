/*
 * Copies and fills of the first ABI, with 32-bit addresses and sizes.
 */
#include "sim.h"
#include "entries.h"

CUresult sim_cuMemcpyHtoD(CUdeviceptr_v1 to, const void *from, unsigned int bytes)
{
	return sim_cuMemcpyHtoD_v2(to, from, bytes);
}

CUresult sim_cuMemcpyDtoH(void *to, CUdeviceptr_v1 from, unsigned int bytes)
{
	return sim_cuMemcpyDtoH_v2(to, from, bytes);
}

CUresult sim_cuMemcpyDtoD(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int bytes)
{
	return sim_cuMemcpyDtoD_v2(to, from, bytes);
}

CUresult sim_cuMemcpyHtoDAsync(CUdeviceptr_v1 to, const void *from, unsigned int bytes,
			       CUstream stream)
{
	return sim_cuMemcpyHtoDAsync_v2(to, from, bytes, stream);
}

CUresult sim_cuMemcpyDtoHAsync(void *to, CUdeviceptr_v1 from, unsigned int bytes, CUstream stream)
{
	return sim_cuMemcpyDtoHAsync_v2(to, from, bytes, stream);
}

CUresult sim_cuMemcpyDtoDAsync(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int bytes,
			       CUstream stream)
{
	return sim_cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

CUresult sim_cuMemcpyDtoA(CUarray to, unsigned int offset, CUdeviceptr_v1 from, unsigned int bytes)
{
	return sim_cuMemcpyDtoA_v2(to, offset, from, bytes);
}

CUresult sim_cuMemcpyAtoD(CUdeviceptr_v1 to, CUarray from, unsigned int offset, unsigned int bytes)
{
	return sim_cuMemcpyAtoD_v2(to, from, offset, bytes);
}

CUresult sim_cuMemcpyHtoA(CUarray to, unsigned int offset, const void *from, unsigned int bytes)
{
	return sim_cuMemcpyHtoA_v2(to, offset, from, bytes);
}

CUresult sim_cuMemcpyAtoH(void *to, CUarray from, unsigned int offset, unsigned int bytes)
{
	return sim_cuMemcpyAtoH_v2(to, from, offset, bytes);
}

CUresult sim_cuMemcpyAtoA(CUarray to, unsigned int to_offset, CUarray from,
			  unsigned int from_offset, unsigned int bytes)
{
	return sim_cuMemcpyAtoA_v2(to, to_offset, from, from_offset, bytes);
}

CUresult sim_cuMemcpyHtoAAsync(CUarray to, unsigned int offset, const void *from,
			       unsigned int bytes, CUstream stream)
{
	return sim_cuMemcpyHtoAAsync_v2(to, offset, from, bytes, stream);
}

CUresult sim_cuMemcpyAtoHAsync(void *to, CUarray from, unsigned int offset, unsigned int bytes,
			       CUstream stream)
{
	return sim_cuMemcpyAtoHAsync_v2(to, from, offset, bytes, stream);
}

CUresult sim_cuMemsetD8(CUdeviceptr_v1 to, unsigned char value, unsigned int count)
{
	return sim_cuMemsetD8_v2(to, value, count);
}

CUresult sim_cuMemsetD16(CUdeviceptr_v1 to, unsigned short value, unsigned int count)
{
	return sim_cuMemsetD16_v2(to, value, count);
}

CUresult sim_cuMemsetD32(CUdeviceptr_v1 to, unsigned int value, unsigned int count)
{
	return sim_cuMemsetD32_v2(to, value, count);
}

CUresult sim_cuMemsetD2D8(CUdeviceptr_v1 to, unsigned int pitch, unsigned char value,
			  unsigned int width, unsigned int height)
{
	return sim_cuMemsetD2D8_v2(to, pitch, value, width, height);
}

CUresult sim_cuMemsetD2D16(CUdeviceptr_v1 to, unsigned int pitch, unsigned short value,
			   unsigned int width, unsigned int height)
{
	return sim_cuMemsetD2D16_v2(to, pitch, value, width, height);
}

CUresult sim_cuMemsetD2D32(CUdeviceptr_v1 to, unsigned int pitch, unsigned int value,
			   unsigned int width, unsigned int height)
{
	return sim_cuMemsetD2D32_v2(to, pitch, value, width, height);
}

static CUDA_MEMCPY2D widen_2d(const CUDA_MEMCPY2D_v1 *c)
{
	return (CUDA_MEMCPY2D){
		c->srcXInBytes, c->srcY,	  c->srcMemoryType, c->srcHost,
		c->srcDevice,	c->srcArray,	  c->srcPitch,	    c->dstXInBytes,
		c->dstY,	c->dstMemoryType, c->dstHost,	    c->dstDevice,
		c->dstArray,	c->dstPitch,	  c->WidthInBytes,  c->Height,
	};
}

CUresult sim_cuMemcpy2D(const CUDA_MEMCPY2D_v1 *copy)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY2D wide = widen_2d(copy);
	return sim_cuMemcpy2D_v2(&wide);
}

CUresult sim_cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1 *copy)
{
	return sim_cuMemcpy2D(copy);
}

CUresult sim_cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1 *copy, CUstream stream)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY2D wide = widen_2d(copy);
	return sim_cuMemcpy2DAsync_v2(&wide, stream);
}

static CUDA_MEMCPY3D widen_3d(const CUDA_MEMCPY3D_v1 *c)
{
	return (CUDA_MEMCPY3D){
		.srcXInBytes = c->srcXInBytes,
		.srcY = c->srcY,
		.srcZ = c->srcZ,
		.srcMemoryType = c->srcMemoryType,
		.srcHost = c->srcHost,
		.srcDevice = c->srcDevice,
		.srcArray = c->srcArray,
		.srcPitch = c->srcPitch,
		.srcHeight = c->srcHeight,
		.dstXInBytes = c->dstXInBytes,
		.dstY = c->dstY,
		.dstZ = c->dstZ,
		.dstMemoryType = c->dstMemoryType,
		.dstHost = c->dstHost,
		.dstDevice = c->dstDevice,
		.dstArray = c->dstArray,
		.dstPitch = c->dstPitch,
		.dstHeight = c->dstHeight,
		.WidthInBytes = c->WidthInBytes,
		.Height = c->Height,
		.Depth = c->Depth,
	};
}

CUresult sim_cuMemcpy3D(const CUDA_MEMCPY3D_v1 *copy)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D wide = widen_3d(copy);
	return sim_cuMemcpy3D_v2(&wide);
}

CUresult sim_cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1 *copy, CUstream stream)
{
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D wide = widen_3d(copy);
	return sim_cuMemcpy3DAsync_v2(&wide, stream);
}

CUresult sim_cuModuleGetGlobal(CUdeviceptr_v1 *ret_address, unsigned int *ret_bytes,
			       CUmodule module, const char *name)
{
	CUdeviceptr address;
	size_t bytes;
	CUresult result = sim_cuModuleGetGlobal_v2(&address, &bytes, module, name);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_address)
		*ret_address = (CUdeviceptr_v1)address;
	if (ret_bytes)
		*ret_bytes = (unsigned)bytes;
	return CUDA_SUCCESS;
}
