/*
 * rounds COUNT US
 *
 * Two processes that wait for one another on the device itself, in each of COUNT rounds: three kernels of US microseconds, a word
 * written for the other, its word waited for, three kernels more, and then the host waits. As ranks of one job on one device.
 * Prints how many milliseconds the rounds took.
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spin.h"

enum { KERNELS = 3, APART = 64 };

static void one_round(CUfunction spin, double us, CUstream stream, CUdeviceptr words, int me,
		      unsigned round)
{
	for (int i = 0; i < KERNELS; i++)
		spin_for(spin, us, stream);
	must(cuStreamWriteValue32(stream, words + (CUdeviceptr)(APART * me), round, 0));
	must(cuStreamWaitValue32(stream, words + (CUdeviceptr)(APART * (1 - me)), round,
				 CU_STREAM_WAIT_VALUE_GEQ));
	for (int i = 0; i < KERNELS; i++)
		spin_for(spin, us, stream);
	must(cuStreamSynchronize(stream));
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
	double us = argc > 2 ? atof(argv[2]) : 100, from;
	void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t other = fork();
	CUdeviceptr words;
	CUfunction spin;
	CUstream stream;
	int status = 0;

	use_device();
	spin = spin_kernel();
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	must(cuMemHostRegister(shared, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
	must(cuMemHostGetDevicePointer(&words, shared, 0));
	spin_for(spin, us, stream);
	must(cuStreamSynchronize(stream));
	from = now_ms();
	for (unsigned round = 1; round <= count; round++)
		one_round(spin, us, stream, words, other == 0, round);
	if (other == 0)
		return 0;
	printf("%.0f\n", now_ms() - from);
	return waitpid(other, &status, 0) != other || status != 0;
}
