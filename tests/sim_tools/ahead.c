/*
 * ahead HOW(host|stream) COUNT US [WARM_MS]
 *
 * Queues COUNT kernels of US microseconds on a stream that waits for a word, and only then has the word written: by a store of
 * the host, or by another stream behind a kernel of its own. A launch that waits for those before it would wait for ever.
 * Before that the kernel is run for WARM_MS, or merely loaded. Prints for how many milliseconds the longest of three rounds
 * of launches and the longest of three waits took.
 */
#include <string.h>

#include "spin.h"

#define ROUNDS 3
#define DEPTH  8

static volatile unsigned *word;
static CUdeviceptr word_address;

static void make_word(void)
{
	must(cuMemHostAlloc((void **)&word, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	must(cuMemHostGetDevicePointer(&word_address, (void *)word, 0));
	*word = 0;
}

/* In another shape, so that nothing is known of what it takes. */
static void load(CUfunction spin)
{
	unsigned long long ns = 1000;
	void *parameters[] = {&ns};

	must(cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	must(cuCtxSynchronize());
}

static void warm(CUfunction spin, CUstream stream, double us, double ms)
{
	double end = now_ms() + ms;

	while (now_ms() < end) {
		for (int i = 0; i < DEPTH; i++)
			spin_for(spin, us, stream);
		must(cuStreamSynchronize(stream));
	}
}

int main(int argc, char **argv)
{
	int by_host = argc > 1 && !strcmp(argv[1], "host");
	int count = argc > 2 ? atoi(argv[2]) : 200;
	double us = argc > 3 ? atof(argv[3]) : 500, launching = 0, waiting = 0;
	CUstream waits, other;
	CUfunction spin;

	use_device();
	spin = spin_kernel();
	must(cuStreamCreate(&waits, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	make_word();
	load(spin);
	warm(spin, waits, us, argc > 4 ? atof(argv[4]) : 0);
	for (unsigned round = 1; round <= ROUNDS; round++) {
		double from = now_ms(), launched;

		must(cuStreamWaitValue32(waits, word_address, round, CU_STREAM_WAIT_VALUE_GEQ));
		for (int i = 0; i < count; i++)
			spin_for(spin, us, waits);
		launched = now_ms();
		if (by_host) {
			*word = round;
		} else {
			spin_for(spin, us, other);
			must(cuStreamWriteValue32(other, word_address, round, 0));
		}
		must(cuStreamSynchronize(waits));
		launching = launched - from > launching ? launched - from : launching;
		waiting = now_ms() - launched > waiting ? now_ms() - launched : waiting;
	}
	printf("%.0f %.0f\n", launching, waiting);
	return 0;
}
