/*
 * Mapped ELF objects, see object.h. The hash tables are read as the System V and GNU formats define
 * them; symbol versions are not looked at, because the driver has none.
 */
#include "driver/object.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>

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
		if (ph->p_type != PT_LOAD)
			continue;
		if (at < ret->start)
			ret->start = at;
		if (at + ph->p_memsz > ret->end)
			ret->end = at + ph->p_memsz;
	}
	return dynamic;
}

struct search {
	const void *address;
	const char *soname;
	struct object *ret;
};

static int matches(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct search *search = data;
	struct object object;

	const ElfW(Dyn) *dynamic = read_headers(info, &object);

	(void)bytes;
	if (!dynamic || (search->address && !object_holds(&object, search->address)))
		return 0;
	read_dynamic(&object, dynamic);
	if (!usable(&object))
		return 0;
	if (search->soname && strcmp(search->soname, object.soname) != 0)
		return 0;
	*search->ret = object;
	return 1;
}

int object_of_address(const void *address, struct object *ret)
{
	struct search search = {.address = address, .ret = ret};

	return address && dl_iterate_phdr(matches, &search) ? 0 : -ENOENT;
}

int object_by_soname(const char *soname, struct object *ret)
{
	struct search search = {.soname = soname, .ret = ret};

	return dl_iterate_phdr(matches, &search) ? 0 : -ENOENT;
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
	return strcmp(object->strings + symbol->st_name, name) == 0 ? symbol : NULL;
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

struct search_after {
	const struct object *object;
	const char *name;
	const ElfW(Dyn) * skip;
	int passed;
	void *found;
};

static int defines_after(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct search_after *search = data;
	struct object object;
	const ElfW(Dyn) *dynamic = read_headers(info, &object);

	(void)bytes;
	if (!dynamic || dynamic == search->skip)
		return 0;
	if (dynamic == search->object->dynamic) {
		search->passed = 1;
		return 0;
	}
	if (!search->passed)
		return 0;
	read_dynamic(&object, dynamic);
	search->found = usable(&object) ? object_symbol(&object, search->name) : NULL;
	return search->found != NULL;
}

void *object_symbol_after(const struct object *object, const char *name, const ElfW(Dyn) * skip)
{
	struct search_after search = {.object = object, .name = name, .skip = skip};

	dl_iterate_phdr(defines_after, &search);
	return search.found;
}
