/*
 * contexts HOW(other|green|primary) ROUNDS
 *
 * Contexts end while work goes on: "other" destroys the one that launched first while kernels of a second one are under way,
 * "green" makes green contexts and destroys them with work pending, the primary one with them, "primary" resets that. Each
 * goes on launching afterwards. Prints "ok".
 */
#include <string.h>
#include <time.h>

#include "spin.h"

#define KERNELS 40
#define US	300.0

static CUfunction spin;
static CUstream stream;

static void launch(int waits)
{
	for (int i = 0; i < KERNELS; i++) {
		spin_for(spin, US, stream);
		if (waits && i % 8 == 7)
			must(cuStreamSynchronize(stream));
	}
}

/* Of the current context. */
static void prepare(void)
{
	spin = spin_kernel();
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	launch(1);
}

static CUcontext make(CUdevice device)
{
	CUcontext context;

	must(cuCtxCreate(&context, NULL, 0, device));
	prepare();
	return context;
}

static void other_round(CUdevice device)
{
	CUcontext first = make(device), second = make(device);

	for (int i = 0; i < 4; i++) {
		launch(0);
		if (i == 1)
			must(cuCtxDestroy(first));
	}
	must(cuStreamSynchronize(stream));
	must(cuCtxDestroy(second));
}

static void green_round(CUdevice device)
{
	CUdevResource all, part;
	CUdevResourceDesc desc;
	CUgreenCtx green;
	CUcontext context;
	unsigned groups = 1;

	must(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
	must(cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, 8));
	must(cuDevResourceGenerateDesc(&desc, &part, 1));
	must(cuGreenCtxCreate(&green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
	must(cuCtxFromGreenCtx(&context, green));
	must(cuCtxSetCurrent(context));
	prepare();
	launch(0);
	must(cuGreenCtxDestroy(green));
	must(cuCtxSetCurrent(NULL));
}

static void primary_round(CUdevice device)
{
	CUcontext context;

	must(cuDevicePrimaryCtxRetain(&context, device));
	must(cuCtxSetCurrent(context));
	prepare();
	launch(0);
	must(cuDevicePrimaryCtxReset(device));
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "other";
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	/* The service thread looks now and then at words that may have gone. */
	struct timespec pause = {0, 5000000};
	CUdevice device;

	must(cuInit(0));
	must(cuDeviceGet(&device, 0));
	while (rounds-- > 0) {
		if (!strcmp(how, "other"))
			other_round(device);
		else if (!strcmp(how, "green"))
			green_round(device);
		else
			primary_round(device);
		nanosleep(&pause, NULL);
	}
	puts("ok");
	return 0;
}
