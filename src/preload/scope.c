/*
 * RTLD_DEFAULT and RTLD_NEXT without us, see scope.h.
 *
 * The real look-up asked from here, with RTLD_NEXT, searches the global scope after us: that, and what
 * stands before us, is the global scope without us.
 */
#include "preload/scope.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "driver/loader.h"

/* Fails as a real look-up fails, so that dlerror says so. */
static void *not_found(const char *name)
{
	static _Atomic(void *) libc;
	void *handle = atomic_load(&libc);

	if (!handle) {
		handle = loader_handle("libc.so.6"); /* kept open: closing it would clear dlerror */
		atomic_store(&libc, handle);
	}
	return loader_dlsym()(handle ? handle : RTLD_NEXT, name) ? NULL : NULL;
}

static void *in_own_scope(const struct object *from, const char *name)
{
	void *handle = loader_handle(from->path);
	void *found = handle ? loader_dlsym()(handle, name) : NULL;

	loader_close(handle);
	return found;
}

void *scope_default(const struct object *from, const char *name, const char *soname)
{
	void *(*real_dlsym)(void *, const char *) = loader_dlsym();
	void *found = real_dlsym(RTLD_DEFAULT, name);
	struct object driver;

	if (found && !loader_is_us(found))
		return found;
	found = real_dlsym(RTLD_NEXT, name);
	if (found || loader_place(from) != PLACE_LATER)
		return found;
	found = in_own_scope(from, name);
	if (!found && object_by_soname(soname, &driver) == 0)
		found = object_symbol(&driver, name);
	return found ? found : not_found(name);
}

void *scope_next(const struct object *from, const char *name)
{
	void *found;

	if (loader_place(from) == PLACE_START_BEFORE) {
		found = loader_between(from, name);
		return found ? found : loader_dlsym()(RTLD_NEXT, name);
	}
	found = loader_after(from, name);
	return found ? found : not_found(name);
}
