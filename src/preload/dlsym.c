/*
 * The look-ups by name. The real look-up answers, with the program's own arguments; an address of the
 * driver that we wrap is swapped for its wrapper, and everything else is passed through as it is.
 *
 * Never swapped: what the driver's own libraries look up, what another library defines under the same
 * name, and a function that this driver does not have though we export it.
 */
#include "preload/dlsym.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "driver/loader.h"
#include "driver/lookup.h"
#include "base/text.h"
#include "hooks/hooks.h"
#include "preload/deepbind.h"
#include "preload/own_handle.h"
#include "preload/scope.h"

extern void *dlsym(void *, const char *) __attribute__((visibility("default")));
extern void *dlvsym(void *, const char *, const char *) __attribute__((visibility("default")));
extern void *dlopen(const char *, int) __attribute__((visibility("default")));

int dlsym_is_driver_part(const struct object *object, const void *address)
{
	return real_holds(address) || text_starts(object->soname, "libcuda.so") ||
	       text_starts(object->soname, "libnvidia-ml.so") ||
	       text_starts(object->soname, "libnvidia-ptxjitcompiler.so") ||
	       text_starts(object->soname, "libcudadebugger.so");
}

/* Code that no object holds (a JIT's) counts as the program's, as for the C library. 0 or -ENOENT. */
static int caller_object(const void *caller, struct object *ret)
{
	return object_of_address(caller, ret) ? object_program(ret) : 0;
}

static const char *soname_of(enum name_kind kind)
{
	return kind == NAME_NVML ? "libnvidia-ml.so.1" : "libcuda.so.1";
}

/* Our own handle, taken for the driver's: see own_handle.h. */
static void *answer_own(void *handle, const char *name, const char *version, const void *caller)
{
	enum name_kind kind = name_kind(name);
	struct object from;
	void *found = own_handle_find(name, version);

	if (!found || caller_object(caller, &from) || dlsym_is_driver_part(&from, caller))
		return found;
	if (kind != NAME_OTHER) {
		dlsym_swap(found, name, kind); /* the table is filled from there, if not yet */
		found = loader_dlsym()(handle, name);
	}
	loader_clear_error();
	return found;
}

static void *our_loader_function(const char *name)
{
	if (text_same(name, "dlopen"))
		return (void *)dlopen;
	return text_same(name, "dlsym") ? (void *)dlsym : (void *)dlvsym;
}

static void *swap_loader_function(void *found, const char *name)
{
	struct object object;

	if (object_of_address(found, &object) ||
	    (!text_same(object.soname, "libc.so.6") && !text_same(object.soname, "libdl.so.2")))
		return found;
	return our_loader_function(name);
}

void *dlsym_swap(void *found, const char *name, enum name_kind kind)
{
	if (!found || loader_is_us(found))
		return found;
	switch (kind) {
	case NAME_LOADER: return swap_loader_function(found, name);
	case NAME_NVML: return hooks_load_nvml_at(found) ? found : lookup_swap(found);
	case NAME_CUDA: return hooks_swap(found);
	case NAME_OTHER: break;
	}
	return found;
}

/*
 * Programs that fetch dlsym by dlsym get ours, except those that define it themselves: what they ask
 * for is the next one in line, and ours may be the one that calls them.
 */
static void *answer_loader(void *handle, const char *name, const struct object *from,
			   void **ret_answer)
{
	void *(*real_dlsym)(void *, const char *) = loader_dlsym();

	if (handle == RTLD_NEXT && loader_place(from) == PLACE_START_BEFORE &&
	    !loader_between(from, name)) {
		*ret_answer = our_loader_function(name);
		loader_clear_error();
		return NULL;
	}
	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || object_symbol(from, name))
		return (void *)real_dlsym;
	*ret_answer = dlsym_swap(real_dlsym(handle, name), name, NAME_LOADER);
	return NULL;
}

void *dlsym_answer(void *handle, const char *name, const void *caller, void **ret_answer)
{
	void *(*real_dlsym)(void *, const char *) = loader_dlsym();
	enum name_kind kind = name_kind(name);
	struct object from;
	void *found;

	deepbind_now_if_due();
	*ret_answer = NULL;
	if (real_dlsym && own_handle_asked(handle, name)) {
		*ret_answer = answer_own(handle, name, NULL, caller);
		return NULL;
	}
	if (kind == NAME_OTHER || !real_dlsym)
		return (void *)real_dlsym;
	if (caller_object(caller, &from) || dlsym_is_driver_part(&from, caller))
		return (void *)real_dlsym;
	if (kind == NAME_LOADER)
		return answer_loader(handle, name, &from, ret_answer);
	if (handle == RTLD_NEXT)
		found = scope_next(&from, name);
	else if (handle == RTLD_DEFAULT)
		found = scope_default(&from, name, soname_of(kind));
	else
		found = real_dlsym(handle, name);
	/* A handle of the program itself searches the global scope, in which we stand. */
	if (found && loader_is_us(found) && handle != RTLD_NEXT)
		found = scope_default(&from, name, soname_of(kind));
	*ret_answer = dlsym_swap(found, name, kind);
	if (found && (handle == RTLD_NEXT || handle == RTLD_DEFAULT))
		loader_clear_error(); /* of the ways that did not lead there, and of calls before */
	return NULL;
}

void *dlvsym_answer(void *handle, const char *name, const char *version, const void *caller,
		    void **ret_answer)
{
	void *(*real_dlvsym)(void *, const char *, const char *) = loader_dlvsym();
	enum name_kind kind = name_kind(name);
	struct object from;
	void *found;

	deepbind_now_if_due();
	*ret_answer = NULL;
	if (real_dlvsym && own_handle_asked(handle, name)) {
		*ret_answer = answer_own(handle, name, version, caller);
		return NULL;
	}
	if (kind == NAME_OTHER || !real_dlvsym)
		return (void *)real_dlvsym;
	if (caller_object(caller, &from) || dlsym_is_driver_part(&from, caller))
		return (void *)real_dlvsym;
	if (kind == NAME_LOADER) {
		/* As for dlsym: what we export has no version, and so answers every one. */
		void *next = answer_loader(handle, name, &from, ret_answer);

		return next ? (void *)real_dlvsym : NULL;
	}
	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT)
		found = real_dlvsym(RTLD_NEXT, name, version);
	else
		found = real_dlvsym(handle, name, version);
	if (!found)
		return (void *)real_dlvsym; /* for its own error text, with the caller kept */
	*ret_answer = dlsym_swap(found, name, kind);
	return NULL;
}

/* A path without $ORIGIN means the same whoever opens it; a bare name is searched for the caller. */
static int caller_matters(const char *file)
{
	return !strchr(file, '/') || strchr(file, '$');
}

void *dlopen_answer(const char *file, int flags, const void *caller, void **ret_answer)
{
	void *(*real_dlopen)(const char *, int) = loader_dlopen();
	unsigned first_new;

	(void)caller;
	deepbind_now_if_due();
	*ret_answer = NULL;
	if (!(flags & RTLD_DEEPBIND) || flags & RTLD_NOLOAD || !file || !real_dlopen)
		return (void *)real_dlopen;
	first_new = deepbind_objects();
	if (caller_matters(file)) {
		deepbind_later(first_new);
		return (void *)real_dlopen;
	}
	*ret_answer = real_dlopen(file, flags);
	if (*ret_answer)
		deepbind_set(first_new);
	return NULL;
}
