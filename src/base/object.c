/*
 * Mapped ELF objects, see object.h. The hash tables are read as the System V and GNU formats define
 * them; symbol versions are not looked at, because the driver has none.
 */
#include "base/object.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/auxv.h>

#include "base/text.h"

/* ld.so rewrites these entries to addresses in place, except in the objects it maps read-only (vdso). */
static const void *dynamic_address(const struct object *object, ElfW(Addr) value)
{
	return (const void *)(value < object->base ? object->base + value : value);
}

static void read_dynamic(struct object *object, const ElfW(Dyn) * dynamic)
{
	ElfW(Word) soname = 0;

	object->dynamic = dynamic;
	object->soname = "";
	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		const void *at = dynamic_address(object, dynamic->d_un.d_ptr);

		switch (dynamic->d_tag) {
		case DT_SYMTAB: object->symbols = at; break;
		case DT_STRTAB: object->strings = at; break;
		case DT_HASH: object->hash = at; break;
		case DT_GNU_HASH: object->gnu_hash = at; break;
		case DT_RELA: object->rela = at; break;
		case DT_RELASZ: object->rela_bytes = dynamic->d_un.d_val; break;
		case DT_JMPREL: object->plt_rela = at; break;
		case DT_PLTRELSZ: object->plt_rela_bytes = dynamic->d_un.d_val; break;
		case DT_SONAME: soname = (ElfW(Word))dynamic->d_un.d_val; break;
		default: break;
		}
	}
	if (soname && object->strings)
		object->soname = object->strings + soname;
}

static int usable(const struct object *object)
{
	return object->symbols && object->strings && (object->gnu_hash || object->hash);
}

/* Extent and dynamic section, without looking into either. */
static const ElfW(Dyn) * read_headers(const struct dl_phdr_info *info, struct object *ret)
{
	const ElfW(Dyn) *dynamic = NULL;

	*ret = (struct object){
		.base = info->dlpi_addr, .path = info->dlpi_name, .start = UINTPTR_MAX};
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)at;
		if (ph->p_type == PT_GNU_RELRO) {
			ret->relro_start = at;
			ret->relro_end = at + ph->p_memsz;
		}
		if (ph->p_type != PT_LOAD)
			continue;
		if (at < ret->start)
			ret->start = at;
		if (at + ph->p_memsz > ret->end)
			ret->end = at + ph->p_memsz;
	}
	return dynamic;
}

struct walk {
	int (*visit)(const struct object *object, void *data);
	void *data;
	const void *holding; /* only the object that holds this address; NULL = all */
};

static int visit_info(struct dl_phdr_info *info, size_t bytes, void *data)
{
	const struct walk *walk = data;
	struct object object;
	const ElfW(Dyn) *dynamic = read_headers(info, &object);

	(void)bytes;
	if (!dynamic || (walk->holding && !object_holds(&object, walk->holding)))
		return 0;
	read_dynamic(&object, dynamic);
	return usable(&object) ? walk->visit(&object, walk->data) : 0;
}

/*
 * The C library's own dl_iterate_phdr: a sanitizer in the program replaces it, and is asked for names before
 * its replacement is ready.
 */
typedef int iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *);

static iterate_phdr *find_iterate(void)
{
	static _Atomic(iterate_phdr *) kept;
	iterate_phdr *found = atomic_load_explicit(&kept, memory_order_relaxed);
	struct object libc;

	for (struct link_map *map = found ? NULL : object_first_map(); map; map = map->l_next)
		if (!object_of_map(map, &libc) && text_same(libc.soname, "libc.so.6"))
			found = (iterate_phdr *)object_symbol(&libc, "dl_iterate_phdr");
	if (!found)
		found = dl_iterate_phdr;
	atomic_store_explicit(&kept, found, memory_order_relaxed);
	return found;
}

void object_each(int (*visit)(const struct object *object, void *data), void *data)
{
	struct walk walk = {.visit = visit, .data = data};

	find_iterate()(visit_info, &walk);
}

static int take(const struct object *object, void *data)
{
	*(struct object *)data = *object;
	return 1;
}

int object_of_address(const void *address, struct object *ret)
{
	struct walk walk = {.visit = take, .data = ret, .holding = address};

	return address && find_iterate()(visit_info, &walk) ? 0 : -ENOENT;
}

int object_program(struct object *ret)
{
	return object_of_address((const void *)getauxval(AT_ENTRY), ret);
}

struct named {
	const char *soname;
	struct object *ret;
	int found;
};

static int take_named(const struct object *object, void *data)
{
	struct named *named = data;

	if (!text_same(named->soname, object->soname))
		return 0;
	*named->ret = *object;
	return named->found = 1;
}

int object_by_soname(const char *soname, struct object *ret)
{
	struct named named = {.soname = soname, .ret = ret};

	object_each(take_named, &named);
	return named.found ? 0 : -ENOENT;
}

int object_of_map(const struct link_map *map, struct object *ret)
{
	struct object found = {.base = map->l_addr, .path = map->l_name};

	if (!map->l_ld)
		return -ENOENT;
	read_dynamic(&found, map->l_ld);
	if (!usable(&found))
		return -ENOENT;
	*ret = found;
	return 0;
}

struct link_map *object_first_map(void)
{
	const ElfW(Phdr) *ph = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	unsigned long count = getauxval(AT_PHNUM);
	const ElfW(Dyn) *dynamic = NULL;
	uintptr_t base = 0;

	if (!ph)
		return NULL;
	for (unsigned long i = 0; i < count; i++)
		if (ph[i].p_type == PT_PHDR)
			base = (uintptr_t)ph - ph[i].p_vaddr;
	for (unsigned long i = 0; i < count; i++)
		if (ph[i].p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)(base + ph[i].p_vaddr);
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
		if (dynamic->d_tag == DT_DEBUG && dynamic->d_un.d_ptr)
			return ((const struct r_debug *)dynamic->d_un.d_ptr)->r_map;
	return NULL;
}

int object_holds(const struct object *object, const void *address)
{
	return (uintptr_t)address >= object->start && (uintptr_t)address < object->end;
}

static const ElfW(Sym) * defined_as(const struct object *object, uint32_t index, const char *name)
{
	const ElfW(Sym) *symbol = &object->symbols[index];

	if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value)
		return NULL;
	return text_same(object->strings + symbol->st_name, name) ? symbol : NULL;
}

static const ElfW(Sym) * find_gnu(const struct object *object, const char *name)
{
	const uint32_t *table = object->gnu_hash;
	uint32_t buckets = table[0], first = table[1], bloom_words = table[2], shift = table[3];
	const ElfW(Addr) *bloom = (const ElfW(Addr) *)&table[4];
	const uint32_t *bucket = (const uint32_t *)&bloom[bloom_words];
	const uint32_t *chain = &bucket[buckets];
	const unsigned bits = 8 * sizeof(ElfW(Addr));
	uint32_t h = 5381;

	for (const char *c = name; *c; c++)
		h = h * 33 + (unsigned char)*c;
	ElfW(Addr) word = bloom[(h / bits) % bloom_words];
	if (!(word >> (h % bits) & word >> ((h >> shift) % bits) & 1))
		return NULL;
	for (uint32_t i = buckets ? bucket[h % buckets] : 0; i >= first && i; i++) {
		const ElfW(Sym) *symbol =
			(chain[i - first] ^ h) >> 1 ? NULL : defined_as(object, i, name);

		if (symbol)
			return symbol;
		if (chain[i - first] & 1)
			break;
	}
	return NULL;
}

static const ElfW(Sym) * find_sysv(const struct object *object, const char *name)
{
	uint32_t buckets = object->hash[0];
	const uint32_t *bucket = &object->hash[2], *chain = &bucket[buckets];
	uint32_t h = 0;

	for (const char *c = name; *c; c++) {
		h = (h << 4) + (unsigned char)*c;
		h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
	}
	for (uint32_t i = buckets ? bucket[h % buckets] : 0; i; i = chain[i]) {
		const ElfW(Sym) *symbol = defined_as(object, i, name);

		if (symbol)
			return symbol;
	}
	return NULL;
}

void *object_symbol(const struct object *object, const char *name)
{
	const ElfW(Sym) *symbol =
		object->gnu_hash ? find_gnu(object, name) : find_sysv(object, name);

	if (!symbol || ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
		return NULL;
	return (void *)(object->base + symbol->st_value);
}

struct after {
	const struct object *object;
	const char *name;
	const ElfW(Dyn) * skip;
	int passed;
	void *found;
};

static int defines_after(const struct object *object, void *data)
{
	struct after *after = data;

	if (after->passed && object->dynamic != after->skip)
		after->found = object_symbol(object, after->name);
	if (object->dynamic == after->object->dynamic)
		after->passed = 1;
	return after->found != NULL;
}

void *object_symbol_after(const struct object *object, const char *name, const ElfW(Dyn) * skip)
{
	struct after after = {.object = object, .name = name, .skip = skip};

	object_each(defines_after, &after);
	return after.found;
}
