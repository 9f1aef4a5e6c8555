/*
 * Can the loader put the library into this command at all? Static programs have no loader, setuid
 * ones ignore LD_PRELOAD, programs of another architecture cannot map it: each would run with no
 * quota, and the loader would say nothing, or one line among many.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "run.h"

#define SCRIPT_DEPTH 4

/* Where execvp will find it; -ENOENT when nowhere. */
static int resolve(const char *command, char ret[PATH_MAX])
{
	const char *path = getenv("PATH");

	if (strchr(command, '/')) {
		snprintf(ret, PATH_MAX, "%s", command);
		return access(ret, X_OK) ? -errno : 0;
	}
	if (!path)
		path = "/bin:/usr/bin";
	while (*path) {
		size_t length = strcspn(path, ":");

		snprintf(ret, PATH_MAX, "%.*s%s%s", (int)length, path, length ? "/" : "", command);
		if (!access(ret, X_OK))
			return 0;
		path += length + (path[length] == ':');
	}
	return -ENOENT;
}

/* A script's own interpreter, one level. */
static int interpreter(const char *head, char ret[PATH_MAX])
{
	const char *start = head + 2 + strspn(head + 2, " \t");
	size_t length = strcspn(start, " \t\r\n");

	if (!length || length >= PATH_MAX)
		return -ENOEXEC;
	memcpy(ret, start, length);
	ret[length] = '\0';
	return 0;
}

static int has_interpreter(int fd, const Elf64_Ehdr *header)
{
	for (unsigned i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;
		off_t at = (off_t)(header->e_phoff + (Elf64_Off)i * header->e_phentsize);

		if (pread(fd, &segment, sizeof(segment), at) != sizeof(segment))
			return 1; /* unreadable: leave the verdict to exec */
		if (segment.p_type == PT_INTERP)
			return 1;
	}
	return 0;
}

static int machine_of(const char *path)
{
	Elf64_Ehdr header;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, &header, sizeof(header));

	if (fd >= 0)
		close(fd);
	return got == sizeof(header) ? header.e_machine : EM_NONE;
}

static int check_elf(int fd, const char *path, const char *library, struct error *ret_why)
{
	Elf64_Ehdr header;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header))
		return 0;
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != machine_of(library)) {
		error_set(ret_why, ENOEXEC, "%s is for another architecture than the library",
			  path);
		return 1;
	}
	if (header.e_phentsize >= sizeof(Elf64_Phdr) && !has_interpreter(fd, &header)) {
		error_set(ret_why, ENOEXEC,
			  "%s is statically linked, so no library can be preloaded", path);
		return 1;
	}
	return 0;
}

static int check_privilege(int fd, const char *path, struct error *ret_why)
{
	struct stat st;
	char capability[64];

	if (fstat(fd, &st))
		return 0;
	if (((st.st_mode & S_ISUID) && st.st_uid != getuid()) ||
	    ((st.st_mode & S_ISGID) && st.st_gid != getgid())) {
		error_set(ret_why, EPERM,
			  "%s is setuid or setgid, so the loader ignores LD_PRELOAD", path);
		return 1;
	}
	if (getuid() && fgetxattr(fd, "security.capability", capability, sizeof(capability)) > 0) {
		error_set(ret_why, EPERM,
			  "%s has file capabilities, so the loader ignores LD_PRELOAD", path);
		return 1;
	}
	return 0;
}

int run_preflight(const char *command, const char *library, struct error *ret_why)
{
	char path[PATH_MAX], head[256];
	int rc = resolve(command, path);

	for (int depth = 0; !rc && depth < SCRIPT_DEPTH; depth++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t got = fd < 0 ? -1 : pread(fd, head, sizeof(head) - 1, 0);
		int script = got > 2 && head[0] == '#' && head[1] == '!';

		if (got < 0) {
			rc = -errno;
		} else if (script) {
			head[got] = '\0';
			rc = interpreter(head, path);
		} else {
			rc = check_privilege(fd, path, ret_why);
			if (!rc && got >= SELFMAG && !memcmp(head, ELFMAG, SELFMAG))
				rc = check_elf(fd, path, library, ret_why);
		}
		if (fd >= 0)
			close(fd);
		if (!script)
			break;
	}
	return rc;
}
