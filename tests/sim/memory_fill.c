/*
 * cuMemset* in all widths and shapes.
 */
#include "memory.h"
#include "entries.h"

static CUresult fill(CUdeviceptr to, uint64_t pitch, uint32_t value, unsigned value_bytes,
		     uint64_t width, uint64_t height, CUstream stream, bool synchronous)
{
	struct fill_rows f = {
		.to = to,
		.to_pitch = pitch,
		.width = width * value_bytes,
		.height = height,
		.value = value,
		.value_bytes = value_bytes,
	};
	return fill_rows(stream, &f, synchronous);
}

CUresult sim_cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
	return fill(to, 0, value, 1, count, 1, NULL, true);
}

CUresult sim_cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count)
{
	return fill(to, 0, value, 2, count, 1, NULL, true);
}

CUresult sim_cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count)
{
	return fill(to, 0, value, 4, count, 1, NULL, true);
}

CUresult sim_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
	return fill(to, 0, value, 1, count, 1, stream, false);
}

CUresult sim_cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
	return fill(to, 0, value, 2, count, 1, stream, false);
}

CUresult sim_cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
	return fill(to, 0, value, 4, count, 1, stream, false);
}

CUresult sim_cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
			     size_t height)
{
	return fill(to, pitch, value, 1, width, height, NULL, true);
}

CUresult sim_cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
			      size_t height)
{
	return fill(to, pitch, value, 2, width, height, NULL, true);
}

CUresult sim_cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
			      size_t height)
{
	return fill(to, pitch, value, 4, width, height, NULL, true);
}

CUresult sim_cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
			       size_t height, CUstream stream)
{
	return fill(to, pitch, value, 1, width, height, stream, false);
}

CUresult sim_cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
				size_t height, CUstream stream)
{
	return fill(to, pitch, value, 2, width, height, stream, false);
}

CUresult sim_cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
				size_t height, CUstream stream)
{
	return fill(to, pitch, value, 4, width, height, stream, false);
}
