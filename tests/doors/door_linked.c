/*
 * The table of doors in a program that is linked to the driver: each call goes through its own PLT slot or data
 * reference. Prints and returns as door.c does.
 */
#include "doors/abi.h"
#include "doors/library.h"

static const struct {
	struct abi abi;
	void *function;
} rows[] = {
#define ROW(symbol, base, version, ptds, take) \
	{{#symbol, base, version, ptds, take}, (void *)symbol},
	ABI_ROWS(ROW)};

int main(void)
{
	int missed = 0;
	CUcontext context;
	CUdeviceptr at;

	CHECK(cuInit(0) == CUDA_SUCCESS, "cuInit");
	CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS, "context");
	CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS, "context");
	CHECK(cuMemAlloc_v2(&at, (size_t)4 << 30) == CUDA_ERROR_OUT_OF_MEMORY, "not held");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CUresult over = rows[i].abi.take(rows[i].function, (size_t)4 << 30);
		CUresult small = rows[i].abi.take(rows[i].function, (size_t)4 << 20);

		printf("  %-22s over %d, small %d\n", rows[i].abi.symbol, over, small);
		if (small != CUDA_ERROR_NOT_SUPPORTED)
			missed += over != CUDA_ERROR_OUT_OF_MEMORY || small != CUDA_SUCCESS;
	}
	return missed != 0;
}
