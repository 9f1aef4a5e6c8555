/*
 * `escape script`: driver calls by name, one a line from standard input, so that a test reads as what a program
 * does. Each answers one line: the code, and what there is to say. Names stand for addresses and handles; pools are
 * also `default`, and `default1` of device 1. `both` is two threads at once, in the context that is current.
 *
 *	ctx DEVICE | newctx NAME DEVICE | use NAME | endctx NAME | release DEVICE | reset DEVICE | green NAME | endgreen NAME
 *	alloc NAME BYTES | alloc1 | managed NAME BYTES | pitch NAME WIDTH HEIGHT | free NAME | free1 NAME | freeasync NAME
 *	pool NAME [host | DEVICE] | async NAME BYTES [POOL] | trim POOL BYTES | keep POOL BYTES | endpool POOL
 *	create NAME BYTES [LOCATION-TYPE [ID]] | drop NAME | reserve NAME BYTES | map HANDLE ADDRESS BYTES | unmap ADDRESS BYTES
 *	retain NAME ADDRESS | sparse NAME | tile SPARSE HANDLE | array NAME BYTES | endarray NAME | mipmap NAME BYTES | endmipmap NAME | limit WHICH BYTES
 *	module NAME BYTES | endmodule NAME | graph NAME BYTES | launch NAME | endgraph NAME | graphtrim
 *	export HANDLE DESCRIPTOR | dup DESCRIPTOR NAME | close DESCRIPTOR
 *	send HANDLE SOCKET | receive NAME SOCKET | ipcget NAME | ipcopen NAME HEX | ipcclose NAME
 *	info | total DEVICE | sync | thread COMMAND... | both COMMAND... | forked COMMAND... | times COUNT COMMAND...
 */
#include "script.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct name {
	char text[32];
	uint64_t value;
};

static struct name names[4096];
static size_t name_count;

uint64_t *script_name(const char *text)
{
	for (size_t i = 0; i < name_count; i++)
		if (!strcmp(names[i].text, text))
			return &names[i].value;
	if (name_count == sizeof(names) / sizeof(names[0]))
		exit(3);
	snprintf(names[name_count].text, sizeof(names[0].text), "%s", text);
	return &names[name_count++].value;
}

/* 64M, 2G, or a number. */
uint64_t script_bytes(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	switch (*end) {
	case 'K': return value << 10;
	case 'M': return value << 20;
	case 'G': return value << 30;
	default: return value;
	}
}

static void run(int argc, char **argv);

struct errand {
	int argc;
	char **argv;
	CUcontext context; /* to be current there, or NULL */
};

static void *on_thread(void *arg)
{
	struct errand *errand = arg;

	if (errand->context)
		cu.cuCtxSetCurrent(errand->context);
	run(errand->argc, errand->argv);
	return NULL;
}

static void on_threads(unsigned count, struct errand *errand)
{
	pthread_t threads[2];

	for (unsigned i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, on_thread, errand);
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void run(int argc, char **argv)
{
	struct errand errand = {argc - 1, argv + 1, NULL};

	if (!strcmp(argv[0], "thread") && argc > 1) {
		on_threads(1, &errand);
	} else if (!strcmp(argv[0], "both") && argc > 1) {
		cu.cuCtxGetCurrent(&errand.context);
		on_threads(2, &errand);
	} else if (!strcmp(argv[0], "forked") && argc > 1) {
		pid_t child = fork();

		if (child == 0) {
			run(argc - 1, argv + 1);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	} else if (!strcmp(argv[0], "times") && argc > 2) {
		for (int i = atoi(argv[1]); i > 0; i--)
			run(argc - 2, argv + 2);
	} else {
		char note[256] = "";
		CUresult result = script_call(argc, argv, note, sizeof(note));

		printf("%s %d%s%s\n", argv[0], (int)result, *note ? " " : "", note);
		fflush(stdout);
	}
}

int script_run(void)
{
	char line[1024], *argv[16];

	if (driver_load())
		return 1;
	cu.cuInit(0);
	while (fgets(line, sizeof(line), stdin)) {
		int argc = 0;

		for (char *word = strtok(line, " \t\n"); word && argc < 15;
		     word = strtok(NULL, " \t\n"))
			argv[argc++] = word;
		argv[argc] = NULL;
		if (argc && argv[0][0] != '#')
			run(argc, argv);
	}
	return 0;
}
