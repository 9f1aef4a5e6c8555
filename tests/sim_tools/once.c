/*
 * once COUNT US: launches COUNT kernels of US microseconds, waits for them and ends, as a short job does. Prints how many
 * milliseconds that took.
 */
#include "spin.h"

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;
	double us = argc > 2 ? atof(argv[2]) : 1000, from;
	CUfunction spin;

	use_device();
	spin = spin_kernel();
	from = now_ms();
	while (count-- > 0)
		spin_for(spin, us, NULL);
	must(cuCtxSynchronize());
	printf("%.1f\n", now_ms() - from);
	return 0;
}
