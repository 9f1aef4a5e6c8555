/*
 * Setting the slots of deeply bound objects, see deepbind.h.
 *
 * A slot (GOT entry) is set when it names a hooked function and holds the address that we would swap: the
 * driver's, or the C library's dlsym. One that is bound lazily still points into its own object: it gets what
 * the loader would bind it to, swapped. Slots made read-only after relocation are made writable for the store.
 */
#include "preload/deepbind.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "driver/loader.h"
#include "driver/names.h"
#include "preload/dlsym.h"

#if defined(__x86_64__)
#define IS_SLOT(type) \
	((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || (type) == R_X86_64_64)
#elif defined(__aarch64__)
#define IS_SLOT(type) \
	((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || (type) == R_AARCH64_ABS64)
#endif

#define NEW_OBJECTS 256 /* in one open; more is a known bypass */
#define NOT_DUE	    UINT32_MAX
#define SPINS	    10000000u

static _Atomic uint32_t due = NOT_DUE;
static _Atomic uint32_t writing; /* no call into the loader while held */

struct list {
	unsigned seen, first, count;
	struct object object[NEW_OBJECTS];
};

static void store(const struct object *object, void **slot, void *value)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)slot & ~(page - 1);
	/* The loader protects whole pages: a last one that RELRO ends in stays writable. */
	int read_only =
		at >= (object->relro_start & ~(page - 1)) && at < (object->relro_end & ~(page - 1));
	uint32_t unlocked = 0;

	/* Microseconds, unless a fork copied the lock while it was held: then nobody will let it go. */
	for (unsigned spins = 0;
	     spins < SPINS && !atomic_compare_exchange_weak(&writing, &unlocked, 1); spins++) {
		unlocked = 0;
		cpu_relax();
	}
	if (!read_only || mprotect((void *)at, page, PROT_READ | PROT_WRITE) == 0) {
		__atomic_store_n(slot, value, __ATOMIC_RELEASE);
		if (read_only)
			mprotect((void *)at, page, PROT_READ);
	}
	atomic_store(&writing, 0);
}

/* What the slot should hold; its present value when that is right. */
static void *wanted(const struct object *object, const char *name, enum name_kind kind, void *held)
{
	void *bound = held, *handle = NULL;

	if (object_holds(object, held)) { /* bound at the first call */
		handle = loader_handle(object->path);
		bound = handle ? loader_dlsym()(handle, name) : NULL;
		loader_close(handle);
		if (!bound)
			return held;
	}
	void *ours = dlsym_swap(bound, name, kind);

	return ours == bound ? held : ours;
}

static void set_table(const struct object *object, const ElfW(Rela) * rela, size_t bytes)
{
	for (size_t i = 0; rela && i < bytes / sizeof(*rela); i++) {
		const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(rela[i].r_info)];
		void **slot = (void **)(object->base + rela[i].r_offset);
		const char *name = object->strings + symbol->st_name;
		enum name_kind kind;
		void *value;

		if (!IS_SLOT(ELF64_R_TYPE(rela[i].r_info)) || !ELF64_R_SYM(rela[i].r_info))
			continue;
		kind = name_kind(name);
		if (kind == NAME_OTHER || symbol->st_shndx != SHN_UNDEF)
			continue;
		value = wanted(object, name, kind, *slot);
		if (value != *slot)
			store(object, slot, value);
	}
}

static int collect(const struct object *object, void *data)
{
	struct list *list = data;

	if (list->seen++ >= list->first && list->count < NEW_OBJECTS)
		list->object[list->count++] = *object;
	return 0;
}

static int count(const struct object *object, void *data)
{
	(void)object;
	++*(unsigned *)data;
	return 0;
}

unsigned deepbind_objects(void)
{
	unsigned objects = 0;

	object_each(count, &objects);
	return objects;
}

void deepbind_set(unsigned first_new)
{
	struct list *list = mmap(NULL, sizeof(*list), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (list == MAP_FAILED)
		return;
	list->first = first_new;
	object_each(collect, list);
	for (unsigned i = 0; i < list->count; i++) {
		const struct object *object = &list->object[i];

		if (dlsym_is_driver_part(object, NULL))
			continue;
		set_table(object, object->rela, object->rela_bytes);
		set_table(object, object->plt_rela, object->plt_rela_bytes);
	}
	munmap(list, sizeof(*list));
	loader_clear_error();
}

void deepbind_later(unsigned first_new)
{
	uint32_t held = atomic_load(&due);

	while (first_new < held && !atomic_compare_exchange_weak(&due, &held, first_new))
		continue;
}

void deepbind_now_if_due(void)
{
	if (atomic_load_explicit(&due, memory_order_relaxed) == NOT_DUE)
		return;

	uint32_t first = atomic_exchange(&due, NOT_DUE);

	if (first != NOT_DUE)
		deepbind_set(first);
}
