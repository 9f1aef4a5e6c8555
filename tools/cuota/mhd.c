/* See mhd.h. */
#include "mhd.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

struct mhd mhd;

int mhd_load(struct error *err)
{
	void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return error_set(err, ENOENT, "no web server library: %s (Debian: libmicrohttpd12)",
				 dlerror());
#define X(name) \
	mhd.name = (__typeof__(mhd.name))dlsym(library, "MHD_" #name); \
	if (!mhd.name) \
		return error_set(err, ENOENT, "libmicrohttpd lacks MHD_" #name);
	MHD_FUNCTIONS(X)
#undef X
	return 0;
}
