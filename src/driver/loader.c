/*
 * The loader's functions, see loader.h. The link map is only walked for objects that were there at start,
 * which are never unloaded; later ones are reached through dl_iterate_phdr (base/object.c).
 */
#include "driver/loader.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

static _Atomic(const struct link_map *) last_at_start, our_map;

static int is_us(const struct link_map *map)
{
	return map->l_ld == _DYNAMIC;
}

static void *symbol_of(const struct link_map *map, const char *name)
{
	struct object object;

	return !is_us(map) && object_of_map(map, &object) == 0 ? object_symbol(&object, name)
							       : NULL;
}

struct next {
	const char *name;
	int passed; /* this library */
	void *after,
		*other; /* the first definition after it, and the first anywhere outside of it */
};

static int find_next(const struct object *object, void *data)
{
	struct next *next = data;

	if (object->dynamic == _DYNAMIC) {
		next->passed = 1;
		return 0;
	}
	if (next->passed && !next->after)
		next->after = object_symbol(object, next->name);
	if (!next->passed && !next->other)
		next->other = object_symbol(object, next->name);
	return next->after != NULL;
}

void *loader_next(const char *name)
{
	struct next next = {.name = name};

	object_each(find_next, &next);
	return next.after ? next.after : next.other;
}

/* The address in *kept, looked up at the first call. */
static void *next_kept(_Atomic(void *) *kept, const char *name)
{
	void *found = atomic_load_explicit(kept, memory_order_acquire);

	if (!found) {
		found = loader_next(name);
		atomic_store_explicit(kept, found, memory_order_release);
	}
	return found;
}

void *(*loader_dlsym(void))(void *handle, const char *name)
{
	static _Atomic(void *) kept;

	return (void *(*)(void *, const char *))next_kept(&kept, "dlsym");
}

void *(*loader_dlvsym(void))(void *handle, const char *name, const char *version)
{
	static _Atomic(void *) kept;

	return (void *(*)(void *, const char *, const char *))next_kept(&kept, "dlvsym");
}

void *(*loader_dlopen(void))(const char *file, int flags)
{
	static _Atomic(void *) kept;

	return (void *(*)(const char *, int))next_kept(&kept, "dlopen");
}

/* In the C library, whoever hooks the name. */
static void *in_libc(const char *name)
{
	struct object libc;
	void *found = NULL;

	if (object_by_soname("libc.so.6", &libc) == 0)
		found = object_symbol(&libc, name);
	if (!found && object_by_soname("libdl.so.2", &libc) == 0)
		found = object_symbol(&libc, name);
	return found;
}

void *loader_open(const char *file, int flags)
{
	static _Atomic(void *) kept;
	void *open = atomic_load_explicit(&kept, memory_order_acquire);

	if (!open) {
		open = in_libc("dlopen");
		atomic_store_explicit(&kept, open, memory_order_release);
	}
	return open ? ((void *(*)(const char *, int))open)(file, flags) : NULL;
}

static void *open_loaded(const char *path, int flags)
{
	return path[0] ? loader_open(path, RTLD_LAZY | RTLD_NOLOAD | flags) : NULL;
}

void *loader_handle(const char *path)
{
	return open_loaded(path, 0);
}

void loader_close(void *handle)
{
	static _Atomic(void *) kept;
	int (*close)(void *) = (int (*)(void *))next_kept(&kept, "dlclose");

	if (close && handle)
		close(handle);
}

void loader_clear_error(void)
{
	static _Atomic(void *) kept;
	char *(*take_error)(void) = (char *(*)(void))next_kept(&kept, "dlerror");

	if (take_error)
		take_error();
}

void loader_pin(const char *path)
{
	open_loaded(path, RTLD_NODELETE);
}

void loader_mark_start(void)
{
	const struct link_map *map = object_first_map();

	const struct link_map *last = map;

	for (; map; map = map->l_next) {
		if (is_us(map))
			atomic_store_explicit(&our_map, map, memory_order_relaxed);
		last = map;
	}
	atomic_store_explicit(&last_at_start, last, memory_order_relaxed);
}

enum loader_place loader_place(const struct object *object)
{
	if (!atomic_load_explicit(&last_at_start, memory_order_relaxed))
		loader_mark_start(); /* asked by a constructor that ran before ours */

	const struct link_map *last = atomic_load_explicit(&last_at_start, memory_order_relaxed);
	enum loader_place place = PLACE_START_BEFORE;

	for (const struct link_map *map = last ? object_first_map() : NULL; map;
	     map = map->l_next) {
		if (map->l_ld == object->dynamic)
			return place;
		if (is_us(map))
			place = PLACE_START_AFTER;
		if (map == last)
			break;
	}
	return PLACE_LATER;
}

void *loader_between(const struct object *object, const char *name)
{
	const struct link_map *map = object_first_map();
	void *found = NULL;

	while (map && map->l_ld != object->dynamic)
		map = map->l_next;
	for (map = map ? map->l_next : NULL; map && !is_us(map) && !found; map = map->l_next)
		found = symbol_of(map, name);
	return found;
}

void *loader_after(const struct object *object, const char *name)
{
	return object_symbol_after(object, name, _DYNAMIC);
}

int loader_is_us(const void *address)
{
	extern const char __ehdr_start[] __attribute__((visibility("hidden")));
	extern const char _end[] __attribute__((visibility("hidden")));

	return (const char *)address >= __ehdr_start && (const char *)address < _end;
}

/* glibc's handle of an object is its entry in the link map, as dlinfo(RTLD_DI_LINKMAP) documents. */
int loader_is_our_handle(const void *handle)
{
	if (!atomic_load_explicit(&last_at_start, memory_order_relaxed))
		loader_mark_start();
	return handle && handle == atomic_load_explicit(&our_map, memory_order_relaxed);
}

void *loader_handle_of(const struct object *object)
{
	static _Atomic(void *) kept;
	int (*about)(const void *, Dl_info *, void **, int) =
		(int (*)(const void *, Dl_info *, void **, int))next_kept(&kept, "dladdr1");
	void *map = NULL;
	Dl_info info;

	return about && about(object->dynamic, &info, &map, RTLD_DL_LINKMAP) ? map : NULL;
}
