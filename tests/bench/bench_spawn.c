/*
 * What a preloaded library adds to a program that never uses CUDA: starts the command with and without
 * LD_PRELOAD, in turn, and waits for it.
 *
 *   bench_spawn SECONDS LIBRARY COMMAND [ARG...]
 *
 * One JSON line: raw_ns, asked_ns (with the library), added_ns of neighbouring pairs.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "samples.h"

static struct samples raw_ns, asked_ns, added_ns;
static posix_spawn_file_actions_t quiet;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double spawn(char **command, char **environment)
{
	uint64_t began = now_ns();
	int status = 0;
	pid_t pid;

	if (posix_spawnp(&pid, command[0], &quiet, NULL, command, environment) != 0) {
		fprintf(stderr, "bench_spawn: cannot start %s\n", command[0]);
		exit(1);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0) {
		fprintf(stderr, "bench_spawn: %s: status %d\n", command[0], status);
		exit(1);
	}
	return (double)(now_ns() - began);
}

/* The environment less LD_PRELOAD, with room for one. */
static char **environment_without(void)
{
	size_t count = 0, kept = 0;
	char **copy;

	while (environ[count])
		count++;
	copy = calloc(count + 2, sizeof(*copy));
	for (size_t i = 0; copy && i < count; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
			copy[kept++] = environ[i];
	return copy;
}

int main(int argc, char **argv)
{
	static char preload[4200];
	char **bare, **loaded;
	uint64_t end;

	if (argc < 4) {
		fprintf(stderr, "usage: bench_spawn SECONDS LIBRARY COMMAND [ARG...]\n");
		return 2;
	}
	if (access(argv[2], R_OK) != 0) {
		fprintf(stderr, "bench_spawn: no library %s\n", argv[2]);
		return 1;
	}
	bare = environment_without();
	loaded = environment_without();
	if (!bare || !loaded)
		return 1;
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", argv[2]);
	for (size_t i = 0;; i++) {
		if (!loaded[i]) {
			loaded[i] = preload;
			break;
		}
	}
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
	for (int i = 0; i < 4; i++) {
		spawn(argv + 3, bare);
		spawn(argv + 3, loaded);
	}
	end = now_ns() + (uint64_t)(atof(argv[1]) * 1e9);
	for (unsigned i = 0; now_ns() < end; i++) {
		double a, r;

		if (i & 1) {
			r = spawn(argv + 3, bare);
			a = spawn(argv + 3, loaded);
		} else {
			a = spawn(argv + 3, loaded);
			r = spawn(argv + 3, bare);
		}
		samples_add(&raw_ns, r);
		samples_add(&asked_ns, a);
		samples_add(&added_ns, a - r);
	}
	printf("{\"what\":\"%s\",", argv[3]);
	samples_print("raw_ns", &raw_ns);
	printf(",");
	samples_print("asked_ns", &asked_ns);
	printf(",");
	samples_print("added_ns", &added_ns);
	printf("}\n");
	return 0;
}
