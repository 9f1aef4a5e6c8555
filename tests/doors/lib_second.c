/*
 * Another preload library that hooks dlsym, the usual way: it finds the next dlsym by dlvsym, counts look-ups, and
 * passes all of them on. Preloaded before or after cuota, both must work.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned counted;

void *dlsym(void *handle, const char *name)
{
	static void *(*next)(void *, const char *);

	if (!next) {
		next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
		if (!next)
			next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym",
								       "GLIBC_2.17");
	}
	counted++;
	return next(handle, name);
}

static void tell(void) __attribute__((destructor));

static void tell(void)
{
	if (getenv("SECOND_TELLS"))
		fprintf(stderr, "second: %s\n", counted ? "called" : "not called");
}
