/*
 * Mapped ELF objects: who holds an address, what an object is called, what it exports.
 *
 * Read straight from memory, not through dlsym: it leaves the program's dlerror alone, takes no loader
 * lock that a constructor of another thread may hold, and knows nothing of who asks. All of it is public
 * ELF and debugger ABI (PT_DYNAMIC, DT_GNU_HASH, DT_DEBUG), no private name of the C library.
 *
 * Any thread. What a struct object points to lives as long as the object stays mapped.
 */
#ifndef CUOTA_BASE_OBJECT_H
#define CUOTA_BASE_OBJECT_H

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

struct object {
	uintptr_t base;	      /* added to every address in the file */
	uintptr_t start, end; /* first and last + 1 mapped byte; 0, 0 when taken from a link map */
	const char *path;     /* as the loader knows it; "" for the program itself */
	const char *soname;   /* "" when it has none */
	const ElfW(Dyn) * dynamic;
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash, *hash;    /* at least one, or the object exports nothing */
	const ElfW(Rela) * rela, *plt_rela; /* relocations; NULL when none */
	size_t rela_bytes, plt_rela_bytes;
	uintptr_t relro_start, relro_end; /* read-only since relocated; 0, 0 when none */
};

/* The object that an address lies in. 0 or -ENOENT. */
int object_of_address(const void *address, struct object *ret);

/* The program itself. 0 or -ENOENT. */
int object_program(struct object *ret);

/* The first object of this soname, in load order. 0 or -ENOENT. */
int object_by_soname(const char *soname, struct object *ret);

/* Calls visit for each object in load order until it answers nonzero. The loader's list is locked meanwhile: only
 * read memory in it. */
void object_each(int (*visit)(const struct object *object, void *data), void *data);

/* From an entry of the link map: for start-up, when no other thread loads or unloads. 0 or -ENOENT. */
int object_of_map(const struct link_map *map, struct object *ret);

/* The head of the link map of the program, found through DT_DEBUG; NULL when there is none. */
struct link_map *object_first_map(void);

/* A function or variable that the object itself defines; NULL when it does not. */
void *object_symbol(const struct object *object, const char *name);

/* The same in the objects loaded after `object`, in load order, leaving out the one whose dynamic section
 * is `skip`; what dlsym(RTLD_NEXT) would find for a caller in `object`. */
void *object_symbol_after(const struct object *object, const char *name, const ElfW(Dyn) * skip);

/* 1 when the address lies in the object; 0 also when its extent is not known. */
int object_holds(const struct object *object, const void *address);

#endif
