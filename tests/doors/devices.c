/*
 * What a program is told of each device that CUDA shows it, and that the quota it is told is the one that holds:
 * a row "ordinal uuid total-MiB" each. Ends with the error of cuInit when there is one.
 *
 *   devices            with 64 MiB held on every device meanwhile
 */
#include <dlfcn.h>
#include <unistd.h>

#include "doors/library.h"
#include "driver/cuda_abi.h"

static void *handle;

#define CALL(symbol, ...) (((__typeof__(symbol) *)dlsym(handle, #symbol))(__VA_ARGS__))

/* As nvidia-smi prints it. */
static void uuid_text(const CUuuid *uuid, int mig, char *ret)
{
	char *at = ret + sprintf(ret, "%s", mig ? "MIG-" : "GPU-");

	for (int i = 0; i < 16; i++)
		at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			      (unsigned char)uuid->bytes[i]);
}

static void show(int ordinal)
{
	size_t total = 0, info_free = 0, info_total = 0;
	CUcontext context;
	CUdevice device;
	CUdeviceptr at;
	CUuuid uuid;
	char text[48], name[128];

	CHECK(CALL(cuDeviceGet, &device, ordinal) == CUDA_SUCCESS, "device %d", ordinal);
	CHECK(CALL(cuDeviceGetUuid, &uuid, device) == CUDA_SUCCESS, "uuid of %d", ordinal);
	CHECK(CALL(cuDeviceTotalMem_v2, &total, device) == CUDA_SUCCESS, "total of %d", ordinal);
	CHECK(CALL(cuDevicePrimaryCtxRetain, &context, device) == CUDA_SUCCESS, "context of %d",
	      ordinal);
	CHECK(CALL(cuCtxSetCurrent, context) == CUDA_SUCCESS, "context of %d", ordinal);
	CHECK(CALL(cuMemGetInfo_v2, &info_free, &info_total) == CUDA_SUCCESS, "info of %d",
	      ordinal);
	CHECK(info_total == total, "two totals of %d: %zu, %zu", ordinal, info_total, total);
	CHECK(CALL(cuMemAlloc_v2, &at, total) == CUDA_ERROR_OUT_OF_MEMORY, "%d is not held",
	      ordinal);
	CHECK(CALL(cuMemAlloc_v2, &at, 64 << 20) == CUDA_SUCCESS, "%d gives nothing", ordinal);
	CHECK(CALL(cuDeviceGetName, name, sizeof(name), device) == CUDA_SUCCESS, "name of %d",
	      ordinal);
	uuid_text(&uuid, strstr(name, " MIG ") != NULL, text);
	printf("%d %s %zu\n", ordinal, text, total >> 20);
}

int main(void)
{
	CUresult rc;
	int count = 0;

	handle = dlopen("libcuda.so.1", RTLD_NOW);
	CHECK(handle, "%s", dlerror());
	rc = CALL(cuInit, 0);
	if (rc == CUDA_SUCCESS)
		rc = CALL(cuDeviceGetCount, &count);
	for (int i = 0; i < count; i++)
		show(i);
	if (rc != CUDA_SUCCESS)
		printf("cuInit %d\n", rc);
	return 0;
}
