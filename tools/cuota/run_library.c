/*
 * Which libcuota.so `cuota run` preloads, and how it goes into LD_PRELOAD. The loader ignores a
 * preload file that it cannot open and runs the program without a quota: so the file is checked
 * here, before.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#define MACHINE	  EM_X86_64
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#define MACHINE	  EM_AARCH64
#else
#error "no library directory known for this architecture"
#endif

/* Relative to the directory of the command: the build tree, then an installation under any prefix.
 */
static const char *const places[] = {
	"libcuota.so",
	"../lib/" MULTIARCH "/libcuota.so",
	"../lib/libcuota.so",
	"../lib64/libcuota.so",
};

static int check(const char *path, struct error *err)
{
	Elf64_Ehdr header;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return error_set(err, errno, "cannot read %s: %s", path, strerror(errno));
	got = read(fd, &header, sizeof(header));
	close(fd);
	if (got != sizeof(header) || memcmp(header.e_ident, ELFMAG, SELFMAG))
		return error_set(err, ENOEXEC, "%s is no shared library", path);
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != MACHINE ||
	    header.e_type != ET_DYN)
		return error_set(err, ENOEXEC, "%s is no shared library for this machine", path);
	if (strpbrk(path, ": \t\n"))
		return error_set(err, EINVAL,
				 "LD_PRELOAD cannot hold the path '%s': copy the library to "
				 "one without spaces and colons and set CUOTA_LIBRARY",
				 path);
	return 0;
}

static int own_directory(char ret[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", ret, PATH_MAX - 1);
	char *slash;

	if (length < 0)
		return -errno;
	ret[length] = '\0';
	slash = strrchr(ret, '/');
	if (slash)
		*slash = '\0';
	return 0;
}

int run_library_find(char ret_path[PATH_MAX], struct error *err)
{
	const char *set = getenv("CUOTA_LIBRARY");
	char directory[PATH_MAX], candidate[PATH_MAX + 64];

	if (set && *set) {
		if (!realpath(set, ret_path))
			return error_set(err, errno, "CUOTA_LIBRARY='%s': %s", set,
					 strerror(errno));
		return check(ret_path, err);
	}
	if (own_directory(directory))
		return error_set(err, ENOENT,
				 "cannot tell where this command lies: set CUOTA_LIBRARY");
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(candidate, sizeof(candidate), "%s/%s", directory, places[i]);
		if (realpath(candidate, ret_path))
			return check(ret_path, err);
	}
	return error_set(err, ENOENT,
			 "libcuota.so is neither in %s nor in ../lib beside it: set "
			 "CUOTA_LIBRARY to its path",
			 directory);
}

static int is_ours(const char *entry, size_t length)
{
	size_t base = length;

	while (base && entry[base - 1] != '/')
		base--;
	return length - base >= 11 && !strncmp(entry + base, "libcuota.so", 11);
}

char *run_library_merge(const char *library, const char *existing)
{
	size_t bytes = strlen(library) + 1 + (existing ? strlen(existing) + 1 : 0);
	char *merged = malloc(bytes), *end;

	if (!merged)
		return NULL;
	end = stpcpy(merged, library);
	while (existing && *existing) {
		size_t length = strcspn(existing, ": ");

		if (length && !is_ours(existing, length)) {
			*end++ = ':';
			end = mempcpy(end, existing, length);
			*end = '\0';
		}
		existing += length + strspn(existing + length, ": ");
	}
	return merged;
}
