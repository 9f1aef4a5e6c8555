#include "memory/image.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FATBIN_MAGIC	  0xba55ed50u
#define WRAPPER_MAGIC	  0x466243b1u
#define FATBIN_COMPRESSED 0x2000u
#define PTX_MOST	  (64u << 20) /* text that is looked at */
#define DIMENSIONS	  4

enum { FATBIN_PTX = 1, FATBIN_ELF = 2 };

struct fatbin_header {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t body_bytes;
};

struct fatbin_entry {
	uint16_t kind, unknown;
	uint32_t header_bytes;
	uint64_t body_bytes;
	uint32_t compressed_bytes, options_at;
	uint32_t version, arch;
	uint32_t name_at, name_bytes;
	uint64_t flags;
};

struct fatbin_wrapper {
	uint32_t magic, version;
	const void *data;
	const void *file_name;
};

static uint64_t more(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static struct image_size elf_size(const unsigned char *image, uint64_t most)
{
	struct image_size size = {0, 0};
	Elf64_Ehdr header;

	memcpy(&header, image, sizeof(header));
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr) ||
	    header.e_shoff > most || header.e_shnum > (most - header.e_shoff) / sizeof(Elf64_Shdr))
		return size;
	for (unsigned i = 0; i < header.e_shnum; i++) {
		Elf64_Shdr section;

		memcpy(&section, image + header.e_shoff + i * sizeof(section), sizeof(section));
		if (!(section.sh_flags & SHF_ALLOC))
			continue;
		if (section.sh_flags & SHF_EXECINSTR)
			size.code_bytes = more(size.code_bytes, section.sh_size);
		else
			size.data_bytes = more(size.data_bytes, section.sh_size);
	}
	return size;
}

/* ---- PTX: the sum of module-scope .global arrays -------------------------------------------------- */

static unsigned type_bytes(const char *type)
{
	if (*type == 'b' || *type == 'u' || *type == 's' || *type == 'f')
		return (unsigned)atoi(type + 1) / 8;
	return 8;
}

/* ".global .align 4 .b8 name[1024][16];" from behind ".global"; all declarators up to the semicolon. */
static uint64_t variable_bytes(const char *text)
{
	uint64_t bytes = 4, total = 0, count = 1;
	unsigned vector = 1;

	for (; *text && *text != ';' && *text != '=' && *text != '{'; text++) {
		if (text[0] == '.' && strchr("busf", text[1]) && isdigit((unsigned char)text[2]))
			bytes = type_bytes(text + 1);
		else if (!strncmp(text, ".v2", 3) || !strncmp(text, ".v4", 3))
			vector = (unsigned)(text[2] - '0');
		else if (*text == '[' &&
			 __builtin_mul_overflow(count, strtoull(text + 1, NULL, 0), &count))
			return UINT64_MAX;
		else if (*text == ',') {
			total = more(total, count * bytes * vector);
			count = 1;
		}
	}
	if (__builtin_mul_overflow(count, bytes * vector, &count))
		return UINT64_MAX;
	return more(total, count);
}

/*
 * A declaration's ".global" stands after white space, an instruction's ("ld.global") does not. Text that does
 * not end within `most` bytes is not looked at.
 */
static struct image_size ptx_size(const char *text, uint64_t most)
{
	struct image_size size = {0, 0};
	const char *start = text;
	const char *end = memchr(text, 0, most < PTX_MOST ? (size_t)most : PTX_MOST);

	if (!end)
		return size;
	size.code_bytes = (uint64_t)(end - text);
	for (; (text = strstr(text, ".global")); text += 7)
		if (text == start || isspace((unsigned char)text[-1]))
			size.data_bytes = more(size.data_bytes, variable_bytes(text + 7));
	return size;
}

/* ---- fat binaries: the largest of the images inside, since one of them is loaded -------------------- */

static struct image_size larger(struct image_size a, struct image_size b)
{
	return more(a.code_bytes, a.data_bytes) > more(b.code_bytes, b.data_bytes) ? a : b;
}

static struct image_size fatbin_size(const unsigned char *image, uint64_t most)
{
	struct image_size size = {0, 0};
	struct fatbin_header header;
	const unsigned char *at, *end;

	memcpy(&header, image, sizeof(header));
	if (header.header_bytes > most || header.body_bytes > most - header.header_bytes)
		return size;
	at = image + header.header_bytes;
	end = at + header.body_bytes;
	while ((size_t)(end - at) >= sizeof(struct fatbin_entry)) {
		struct fatbin_entry entry;

		memcpy(&entry, at, sizeof(entry));
		if (entry.header_bytes < sizeof(entry) ||
		    entry.header_bytes > (uint64_t)(end - at) ||
		    entry.body_bytes > (uint64_t)(end - at) - entry.header_bytes)
			break;
		if (!(entry.flags & FATBIN_COMPRESSED) && !entry.compressed_bytes) {
			if (entry.kind == FATBIN_ELF)
				size = larger(size,
					      elf_size(at + entry.header_bytes, entry.body_bytes));
			else if (entry.kind == FATBIN_PTX)
				size = larger(size, ptx_size((const char *)at + entry.header_bytes,
							     entry.body_bytes));
		}
		at += entry.header_bytes + entry.body_bytes;
	}
	return size;
}

static struct image_size measure(const void *image, uint64_t most)
{
	const struct image_size nothing = {0, 0};
	uint32_t magic;

	if (!image || most < 4)
		return nothing;
	memcpy(&magic, image, sizeof(magic));
	if (magic == FATBIN_MAGIC)
		return most < sizeof(struct fatbin_header) ? nothing : fatbin_size(image, most);
	if (!memcmp(image, ELFMAG, SELFMAG))
		return most < sizeof(Elf64_Ehdr) ? nothing : elf_size(image, most);
	if (!isprint(*(const unsigned char *)image) && !isspace(*(const unsigned char *)image))
		return nothing;
	return ptx_size(image, most);
}

struct image_size image_measure(const void *image)
{
	struct fatbin_wrapper wrapper;
	uint32_t magic;

	if (!image)
		return (struct image_size){0, 0};
	memcpy(&magic, image, sizeof(magic));
	if (magic == WRAPPER_MAGIC) {
		memcpy(&wrapper, image, sizeof(wrapper));
		image = wrapper.data;
	}
	return measure(image, PTRDIFF_MAX);
}

struct image_size image_measure_file(const char *path)
{
	struct image_size size = {0, 0};
	struct statx
		status; /* not fstat(): its symbol is newer than the oldest C library we serve */
	int saved = errno, fd = open(path, O_RDONLY | O_CLOEXEC);
	void *start;

	if (fd >= 0 && !statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE, &status) &&
	    S_ISREG(status.stx_mode) && status.stx_size) {
		/* Behind a text that does not fill its last page there are zeros, which end it. */
		uint64_t most = (status.stx_size + 4095) / 4096 * 4096;

		start = mmap(NULL, most, PROT_READ, MAP_PRIVATE, fd, 0);
		if (start != MAP_FAILED) {
			size = measure(start, most);
			munmap(start, most);
		}
	}
	if (fd >= 0)
		close(fd);
	errno = saved;
	return size;
}
