/*
 * How long the dead keep what they had. One process holds memory and is killed; another of the same
 * group wants it.
 *
 *   bench_reclaim hold MIB       takes it, prints "held", sleeps until killed
 *   bench_reclaim claim MIB      says whether it is refused; then tries until it gets it
 *
 * claim prints one JSON line when ready: {"refused":true} (without a limit it is false: nothing to
 * measure), waits for a line on stdin, tries, and prints {"got_ns":MONOTONIC,"tries":N}.
 */
#include "driver.h"

#include <unistd.h>

#define GIVE_UP_NS 5000000000ull

static CUresult take(size_t bytes, CUdeviceptr *ret)
{
	return DRIVER_ASKED(cuMemAlloc)(ret, bytes);
}

_Noreturn static void hold(size_t bytes)
{
	CUdeviceptr at;

	driver_must(take(bytes, &at), "hold: cuMemAlloc");
	puts("held");
	fflush(stdout);
	for (;;)
		pause();
}

static int claim(size_t bytes)
{
	__typeof__(&cuMemAlloc) alloc = DRIVER_ASKED(cuMemAlloc);
	uint64_t end, now;
	unsigned long tries = 0;
	char line[16];
	CUdeviceptr at;
	CUresult rc = alloc(&at, bytes);

	printf("{\"refused\":%s}\n", rc == CUDA_SUCCESS ? "false" : "true");
	fflush(stdout);
	if (rc == CUDA_SUCCESS || !fgets(line, sizeof(line), stdin))
		return 0;
	end = driver_now_ns() + GIVE_UP_NS;
	do {
		rc = alloc(&at, bytes);
		now = driver_now_ns();
		tries++;
	} while (rc != CUDA_SUCCESS && now < end);
	printf("{\"got_ns\":%llu,\"tries\":%lu}\n",
	       rc == CUDA_SUCCESS ? (unsigned long long)now : 0ull, tries);
	return 0;
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 3 ? (size_t)strtoull(argv[2], NULL, 10) << 20 : 0;

	if (!bytes) {
		fprintf(stderr, "usage: bench_reclaim hold|claim MIB\n");
		return 2;
	}
	driver_start();
	if (!strcmp(argv[1], "hold"))
		hold(bytes);
	return claim(bytes);
}
