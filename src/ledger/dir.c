/*
 * Which directory the ledgers are in. All processes on a GPU must come to the same answer, so the
 * order is fixed, and a configured directory that is missing is an error: made silently, it would
 * be a ledger that nobody else looks at.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "ledger/open.h"

#define DIR_ADMIN  "/run/cuota"
#define DIR_SHARED "/dev/shm/cuota"

/* 0 if it is a directory that this process may use; a link only where an admin alone could put it.
 */
static int usable(const char *dir, int mode, int follow)
{
	struct file_status status;
	int code = file_status(AT_FDCWD, dir, &status);

	if (code != 0)
		return code;
	if (S_ISLNK(status.mode) && !follow)
		return -ELOOP;
	if (!S_ISDIR(status.mode) && !S_ISLNK(status.mode))
		return -ENOTDIR;
	return faccessat(AT_FDCWD, dir, mode, AT_EACCESS) != 0 ? -errno : 0;
}

int dir_make_shared(const char *path)
{
	int fd, code = 0;

	if (mkdir(path, 0700) != 0)
		return -errno;
	/* By descriptor: a name can be made to lead elsewhere meanwhile. */
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fchmod(fd, 01777) != 0) /* whatever the umask */
		code = -errno;
	close(fd);
	return code;
}

/* Makes it under another name first, so that nobody meets it with the wrong mode. */
static int make_default(void)
{
	char temporary[64];
	uint64_t noise = file_noise();
	int code;

	snprintf(temporary, sizeof(temporary), "/dev/shm/.cuota.%016llx",
		 (unsigned long long)noise);
	code = dir_make_shared(temporary);
	if (code != 0)
		return code;
	if (syscall(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, DIR_SHARED, RENAME_NOREPLACE) !=
	    0) {
		code = errno == EEXIST ? 0 : -errno;
		rmdir(temporary);
	}
	return code;
}

int ledger_dir(const char *configured, char *ret_dir, struct error *err)
{
	int saved_errno = errno, code;
	const char *dir;

	if (configured && configured[0]) {
		dir = configured;
		/* Writing is ledger_open's to try: a file made beforehand needs none. */
		code = strnlen(dir, PATH_MAX) >= PATH_MAX ? -ENAMETOOLONG : usable(dir, X_OK, 1);
	} else if (usable(DIR_ADMIN, W_OK | X_OK, 1) == 0) {
		dir = DIR_ADMIN;
		code = 0;
	} else {
		dir = DIR_SHARED;
		code = usable(dir, W_OK | X_OK, 0);
		if (code == -ENOENT) {
			code = make_default();
			if (code == 0)
				code = usable(dir, W_OK | X_OK, 0);
		}
	}
	errno = saved_errno;
	if (code != 0)
		return error_set(err, code, "ledger directory %.128s: %s", dir, error_text(code));
	snprintf(ret_dir, PATH_MAX, "%s", dir);
	return 0;
}
