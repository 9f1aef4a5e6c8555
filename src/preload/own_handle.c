/*
 * The vendor's library behind our own handle, see own_handle.h.
 *
 * The one exception to the rule that we never load the driver: a program that looks its functions up by our handle
 * has opened "the driver", and whoever gave it our handle may not have loaded the true one.
 */
#include "preload/own_handle.h"

#include <dlfcn.h>
#include <stddef.h>

#include "driver/loader.h"
#include "driver/real.h"
#include "base/text.h"

static const char *soname_of(const char *name)
{
	if (name[0] == 'c' && name[1] == 'u' &&
	    ((name[2] >= 'A' && name[2] <= 'Z') || text_starts(name, "cudbg")))
		return "libcuda.so.1";
	return text_starts(name, "nvml") ? "libnvidia-ml.so.1" : NULL;
}

int own_handle_asked(const void *handle, const char *name)
{
	return name && soname_of(name) && loader_is_our_handle(handle);
}

static void *look_up(void *handle, const char *name, const char *version)
{
	if (version)
		return loader_dlvsym() ? loader_dlvsym()(handle, name, version) : NULL;
	return loader_dlsym()(handle, name);
}

static void *in_object(const struct object *object, const char *name, const char *version)
{
	void *handle = loader_handle_of(object);

	return handle ? look_up(handle, name, version) : NULL;
}

void *own_handle_find(const char *name, const char *version)
{
	const char *soname = soname_of(name);
	void *found = look_up(RTLD_NEXT, name, version);
	struct object object;

	if (!found && name[0] == 'c' && real_object(&object) == 0)
		found = in_object(&object, name, version); /* the driver in use, of any soname */
	if (found)
		return found;
	/* Never closed: as found by a program that opens the driver and keeps it. */
	if (object_by_soname(soname, &object) && !loader_open(soname, RTLD_LAZY))
		return look_up(RTLD_NEXT, name,
			       version); /* for the error that names the function */
	if (object_by_soname(soname, &object) == 0)
		found = in_object(&object, name, version);
	return found ? found : look_up(RTLD_NEXT, name, version);
}
