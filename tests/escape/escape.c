/*
 * Does any way to take device memory get round the cap?
 *
 *   escape list
 *   escape script                             calls by name from standard input: script.c
 *   escape one WAY [want MiB] [piece MiB]     takes until refused, prints what it got, keeps it until stdin ends
 *   escape model SEED STEPS [THREADS [DEVICES]]   random calls against an oracle: model.c
 *   escape table LIBRARY CAP-MiB [processes [piece MiB]]
 *                                             each way in processes of its own under LD_PRELOAD=LIBRARY and
 *                                             CUOTA_MEM, judged from outside; "-" as LIBRARY: without
 *
 * The judge is not under cuota: it adds up what the driver granted, and reads the device's use through NVML.
 * Exit status 1 when a way got more than the cap, or was refused with anything but out of memory.
 */
#include "model.h"
#include "script.h"
#include "ways.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB	   (1ull << 20)
#define WANT_MIB   8192ull
#define WANT_TEXT  "8192"
#define PIECE_TEXT "256"

/* The driver takes memory in pages of this: what may be beyond the cap, for an instant. */
#define GRANULARITY_MIB 2

enum { PROCESSES_MOST = 16 };

static const struct way *find_way(const char *name)
{
	for (size_t i = 0; i < ways_count; i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	return NULL;
}

/* ---- one way ---------------------------------------------------------------------------------------- */

static CUresult prepare(void)
{
	CUcontext context;
	CUresult result;

	if (driver_load())
		return NOT_HERE;
	result = cu.cuInit(0);
	if (!result)
		result = cu.cuDevicePrimaryCtxRetain(&context, way_device);
	if (!result)
		result = cu.cuCtxSetCurrent(context);
	if (!result)
		result = cu.cuStreamCreate(&way_stream, CU_STREAM_NON_BLOCKING);
	return result;
}

static int run_one(const char *name, uint64_t want, uint64_t piece)
{
	const struct way *way = find_way(name);
	uint64_t took = 0, bytes;
	unsigned calls = 0;
	CUresult result;
	char end;

	if (!way) {
		fprintf(stderr, "no such way: %s\n", name);
		return 2;
	}
	if (strstr(name, "peer"))
		peer_start();
	result = prepare();
	while (result == CUDA_SUCCESS && took < want && calls < 2 * want / piece) {
		bytes = 0;
		result = way->take(piece, &bytes);
		calls++;
		/* Granted in part counts too: 256 small ones may end in the middle. */
		if (result == CUDA_SUCCESS || strstr(name, " x 1 MiB"))
			took += bytes;
	}
	printf("%llu %d %u\n", (unsigned long long)took, (int)result, calls);
	fflush(stdout);
	while (read(STDIN_FILENO, &end, 1) > 0)
		;
	peer_stop();
	_exit(0);
}

/* ---- the judge -------------------------------------------------------------------------------------- */

struct memory_info {
	unsigned long long total, free, used;
};

static int (*nvml_memory)(void *device, struct memory_info *ret);
static void *nvml_device;

static void nvml_open(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*init)(void);
	int (*by_index)(unsigned, void **);

	if (!library)
		return;
	*(void **)&init = dlsym(library, "nvmlInit_v2");
	*(void **)&by_index = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&nvml_memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
	if (!init || !by_index || init() || by_index(0, &nvml_device))
		nvml_memory = NULL;
}

/* MiB in use on the first device, or -1. */
static long device_used(void)
{
	struct memory_info info;

	if (!nvml_memory || nvml_memory(nvml_device, &info))
		return -1;
	return (long)(info.used / MIB);
}

struct child {
	pid_t pid;
	int to, from;
	uint64_t took;
	int code;
	unsigned calls;
};

static int start(struct child *child, const char *self, const char *way, const char *library,
		 const char *piece)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) ||
	    pipe2(out, O_CLOEXEC)) /* other children must not keep them open */
		return -1;
	child->pid = fork();
	if (child->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[0]);
		close(in[1]);
		close(out[0]);
		close(out[1]);
		if (strcmp(library, "-"))
			setenv("LD_PRELOAD", library, 1);
		execl(self, self, "one", way, WANT_TEXT, piece, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	child->to = in[1];
	child->from = out[0];
	return child->pid < 0 ? -1 : 0;
}

static void collect(struct child *child)
{
	char line[128] = "";
	unsigned long long took = 0;
	size_t at = 0;

	while (at < sizeof(line) - 1 && read(child->from, &line[at], 1) == 1 && line[at] != '\n')
		at++;
	if (sscanf(line, "%llu %d %u", &took, &child->code, &child->calls) != 3)
		child->code = -1;
	child->took = took;
}

static void stop(struct child *child)
{
	close(child->to);
	close(child->from);
	waitpid(child->pid, NULL, 0);
}

struct tally {
	unsigned held, escaped, not_here, odd;
};

/* The first ABIs of 32 bits answer "invalid context" in a context of today, with or without cuota. */
static int is_not_here(const struct child *child)
{
	return child->code == (int)NOT_HERE || child->code == CUDA_ERROR_NOT_SUPPORTED ||
	       (child->code == CUDA_ERROR_INVALID_CONTEXT && !child->took && child->calls == 1);
}

static const char *judge(const struct child *children, unsigned count, long real, uint64_t cap_mib,
			 struct tally *tally, int has_cap)
{
	uint64_t took = 0;

	for (unsigned i = 0; i < count; i++) {
		if (is_not_here(&children[i])) {
			tally->not_here++;
			return "not here";
		}
		took += children[i].took;
	}
	if (took > cap_mib * MIB || real > (long)cap_mib + GRANULARITY_MIB) {
		tally->escaped++;
		return has_cap ? "ESCAPED" : "no cap";
	}
	for (unsigned i = 0; i < count; i++) {
		if (children[i].code != CUDA_ERROR_OUT_OF_MEMORY &&
		    children[i].code != CUDA_SUCCESS) {
			tally->odd++;
			return "WRONG CODE";
		}
	}
	tally->held++;
	return "held";
}

static void try_way(const char *self, const struct way *way, const char *library, uint64_t cap_mib,
		    unsigned count, const char *piece, struct tally *tally)
{
	struct child children[PROCESSES_MOST] = {0};
	long before = device_used(), real = -1;
	uint64_t took = 0;
	const char *verdict;
	char group[64];

	snprintf(group, sizeof(group), "escape-%d-%td", (int)getpid(), way - ways);
	setenv("CUOTA_GROUP", group, 1);
	for (unsigned i = 0; i < count; i++)
		if (start(&children[i], self, way->name, library, piece))
			exit(2);
	for (unsigned i = 0; i < count; i++) {
		collect(&children[i]);
		took += children[i].took;
	}
	if (before >= 0)
		real = device_used() - before;
	verdict = judge(children, count, real, cap_mib, tally, strcmp(library, "-"));
	for (unsigned i = 0; i < count; i++)
		stop(&children[i]);
	printf("%-36s %-10s %6llu MiB granted, %6ld MiB on the device, last code %d\n", way->name,
	       verdict, (unsigned long long)(took / MIB), real, children[0].code);
	fflush(stdout);
}

static int run_table(const char *self, const char *library, uint64_t cap_mib, unsigned count,
		     const char *piece)
{
	struct tally tally = {0};
	char cap[32];

	if (count < 1 || count > PROCESSES_MOST)
		count = 1;
	nvml_open();
	snprintf(cap, sizeof(cap), "%lluM", (unsigned long long)cap_mib);
	setenv("CUOTA_MEM", cap, 1);
	printf("asked for %llu MiB in each of %u process%s under a cap of %llu MiB\n", WANT_MIB,
	       count, count == 1 ? "" : "es", (unsigned long long)cap_mib);
	for (size_t i = 0; i < ways_count; i++)
		try_way(self, &ways[i], library, cap_mib, count, piece, &tally);
	printf("%u held, %u escaped, %u wrong code, %u not here\n", tally.held, tally.escaped,
	       tally.odd, tally.not_here);
	return tally.escaped || tally.odd || !tally.held;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc >= 3 && !strcmp(argv[1], "one"))
		return run_one(argv[2], (argc > 3 ? strtoull(argv[3], NULL, 0) : WANT_MIB) * MIB,
			       strtoull(argc > 4 ? argv[4] : PIECE_TEXT, NULL, 0) * MIB);
	if (argc >= 4 && !strcmp(argv[1], "table"))
		return run_table("/proc/self/exe", argv[2], strtoull(argv[3], NULL, 0),
				 argc > 4 ? (unsigned)atoi(argv[4]) : 1,
				 argc > 5 ? argv[5] : PIECE_TEXT);
	if (argc >= 4 && !strcmp(argv[1], "model"))
		return model_run(argc, argv);
	if (argc == 2 && !strcmp(argv[1], "script"))
		return script_run();
	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (size_t i = 0; i < ways_count; i++)
			puts(ways[i].name);
		return 0;
	}
	fprintf(stderr, "usage: escape list | script | one WAY [want [piece]] | table LIBRARY CAP "
			"[processes [piece]]\n");
	return 2;
}
