/*
 * What runs when the library is loaded: a few walks of the link map, microseconds. No file, no thread, no
 * signal, no environment, no driver: all that waits for the first CUDA call that matters.
 */
#include "driver/loader.h"

static void start(void) __attribute__((constructor));

static void start(void)
{
	/* Now, while one thread runs and only what the program was linked to is loaded. */
	loader_mark_start();
	loader_dlsym();
	loader_dlvsym();
	loader_dlopen();
}
