/*
 * forks US SECONDS
 *
 * A program that has used the device forks: one child that ends at once, one that ends by _exit without having called
 * anything, one that lives on and calls CUDA. The parent works before and after; prints the percentage of the time that
 * its kernels took, before and after, and what cuInit said in the child.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spin.h"

static double work(CUfunction spin, double us, double ms)
{
	double from = now_ms();
	unsigned done = 0;

	while (now_ms() < from + ms) {
		spin_for(spin, us, NULL);
		must(cuCtxSynchronize());
		done++;
	}
	return done * us / 10 / (now_ms() - from);
}

int main(int argc, char **argv)
{
	double us = argc > 1 ? atof(argv[1]) : 1000, ms = argc > 2 ? atof(argv[2]) * 1e3 : 1000,
	       before, after;
	int end[2], said = -1, status;
	pid_t lives, ends;
	CUfunction spin;

	use_device();
	spin = spin_kernel();
	work(spin, us, ms / 4);
	before = work(spin, us, ms);
	ends = fork();
	if (ends == 0)
		exit(0); /* with every destructor and atexit handler */
	if (waitpid(ends, &status, 0) != ends || status != 0 || pipe(end) != 0)
		return 1;
	lives = fork();
	if (lives == 0) {
		said = (int)cuInit(0);
		if (write(end[1], &said, sizeof(said)) != sizeof(said))
			_exit(1);
		pause();
	}
	if (read(end[0], &said, sizeof(said)) != sizeof(said))
		return 1;
	after = work(spin, us, ms);
	kill(lives, SIGKILL);
	waitpid(lives, &status, 0);
	printf("%.1f %.1f %d\n", before, after, said);
	return 0;
}
