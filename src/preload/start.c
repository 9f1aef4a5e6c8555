/*
 * What runs when the library is loaded: two walks of the link map, about a microsecond. No file, no thread, no
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
}
