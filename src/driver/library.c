/*
 * Finding a library of the vendor's and filling the table of its entry points, see library.h.
 */
#include "driver/library.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "driver/loader.h"
#include "base/object.h"

unsigned library_fill(struct library *library, void *handle,
		      void *(*resolve)(void *handle, const char *name))
{
	unsigned found = 0;

	for (unsigned i = 0; i < library->count; i++) {
		void *address = resolve(handle, library->names[i]);

		if (!address)
			continue;
		atomic_store_explicit(&library->entries[i], address, memory_order_relaxed);
		found++;
	}
	return found;
}

static void *resolve_object(void *handle, const char *name)
{
	return object_symbol(handle, name);
}

static int fill_from(struct library *library, struct object *object)
{
	uintptr_t held = 0;

	if (!atomic_compare_exchange_strong(&library->start, &held, object->start) &&
	    held != object->start)
		return -EBUSY;
	atomic_store(&library->end, object->end);
	loader_pin(object->path);
	library_fill(library, object, resolve_object);
	atomic_store_explicit(&library->loaded, 1, memory_order_release);
	return 0;
}

int library_find(struct library *library)
{
	struct object object;

	if (atomic_load_explicit(&library->loaded, memory_order_acquire))
		return 0;
	if (object_by_soname(library->soname, &object))
		return -ENOENT;
	return fill_from(library, &object);
}

static int is_library(const struct library *library, const struct object *object)
{
	if (strcmp(object->soname, library->soname) == 0)
		return 1;
	for (const char *const *mark = library->marks; *mark; mark++)
		if (!object_symbol(object, *mark))
			return 0;
	return 1;
}

int library_find_at(struct library *library, const void *address)
{
	struct object object;

	if (atomic_load_explicit(&library->loaded, memory_order_acquire) &&
	    library_holds(library, address))
		return 0;
	if (object_of_address(address, &object) || !is_library(library, &object))
		return -ENOENT;
	return fill_from(library, &object);
}

int library_object(const struct library *library, struct object *ret)
{
	if (!atomic_load_explicit(&library->loaded, memory_order_acquire))
		return -ENOENT;
	return object_of_address((const void *)atomic_load(&library->start), ret);
}

int library_behind(struct library *library, struct object *ret)
{
	struct object front, found;

	if (library_object(library, &front) || strcmp(front.soname, library->soname) == 0 ||
	    loader_place(&front) == PLACE_LATER || object_by_soname(library->soname, &found))
		return -ENOENT;
	loader_pin(found.path);
	for (unsigned i = 0; i < library->count; i++) {
		void *held = atomic_load_explicit(&library->entries[i], memory_order_relaxed);
		void *address = library_has(library, held)
					? NULL
					: object_symbol(&found, library->names[i]);

		if (address)
			atomic_store_explicit(&library->entries[i], address, memory_order_relaxed);
	}
	*ret = found;
	return 0;
}

int library_holds(const struct library *library, const void *address)
{
	uintptr_t at = (uintptr_t)address;

	return at >= atomic_load(&library->start) && at < atomic_load(&library->end);
}

int library_has(const struct library *library, const void *entry)
{
	for (unsigned i = 0; i < library->stub_count; i++)
		if (library->stubs[i] == entry)
			return 0;
	return entry != NULL;
}
