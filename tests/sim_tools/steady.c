/*
 * steady US DEPTH SECONDS
 *
 * Keeps DEPTH kernels of US microseconds under way (1: launches and waits), and tells every 100 ms what was done since:
 * "<time> <percent of it that its kernels took> <longest pause between two completions>", all times in
 * milliseconds, the first as in /proc/uptime.
 */
#include "spin.h"

#define DEPTH_MAX 64
#define WINDOW_MS 100

int main(int argc, char **argv)
{
	double us = argc > 1 ? atof(argv[1]) : 1000, end = argc > 3 ? atof(argv[3]) * 1e3 : 1000;
	unsigned depth = argc > 2 ? (unsigned)atoi(argv[2]) : 1, done = 0;
	double window, last, pause = 0;
	CUevent events[DEPTH_MAX];
	CUfunction spin;
	CUstream stream;

	if (depth < 1 || depth > DEPTH_MAX || us <= 0)
		return 2;
	use_device();
	spin = spin_kernel();
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < depth; i++)
		must(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
	window = last = now_ms();
	end += window;
	for (unsigned i = 0; last < end; i++) {
		if (i >= depth) {
			double now;

			must(cuEventSynchronize(events[i % depth]));
			now = now_ms();
			pause = now - last > pause ? now - last : pause;
			last = now;
			done++;
			if (now >= window + WINDOW_MS) {
				printf("%.0f %.1f %.1f\n", now, done * us / 10 / (now - window),
				       pause);
				fflush(stdout);
				window = now;
				done = 0;
				pause = 0;
			}
		}
		spin_for(spin, us, stream);
		must(cuEventRecord(events[i % depth], stream));
	}
	must(cuStreamSynchronize(stream));
	return 0;
}
