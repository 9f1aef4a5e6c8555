/*
 * Small text files read by hand: the admin's policy, /proc entries, /etc/passwd as text. Nothing
 * here follows a link at the end of a path, waits for a FIFO, becomes a terminal's owner or leaks a
 * descriptor into a child.
 */
#ifndef CUOTA_BASE_FILE_H
#define CUOTA_BASE_FILE_H

#include <stddef.h>

#include "base/error.h"

/* Who may own what we believe. Nobody else may be able to write it, group included. */
enum file_trust {
	FILE_ANY,	     /* kernel files and world-readable databases */
	FILE_ROOT,	     /* root alone */
	FILE_ROOT_OR_CALLER, /* root or the effective user: for a file the user named himself */
};

/* Opens for reading, relative to dir_fd (AT_FDCWD). The descriptor, or -errno with the reason;
 * -ENOENT when the file is missing, -EPERM when it is not to be trusted. */
int file_open_text(int dir_fd, const char *path, enum file_trust trust, struct error *err);

/* Likewise for a directory; one that others may write is refused even if it is sticky. */
int file_open_dir(int dir_fd, const char *path, enum file_trust trust, struct error *err);

/* 0 if the open directory is to be trusted: a sticky one may be writable by all. -EPERM otherwise.
 */
int file_check_dir(int fd, enum file_trust trust, struct error *err);

/* At most bytes - 1 bytes from the start of fd into buf, terminated. 0, -EFBIG if there is more, or
 * -errno. */
int file_read_text(int fd, char *buf, size_t bytes, size_t *ret_length);

/* file_open_text(FILE_ANY) and file_read_text(): what fits of a kernel file, "" if it cannot be
 * read. */
void file_slurp(const char *path, char *buf, size_t bytes);

/*
 * The number of `name` in a text of /etc/passwd's or /etc/group's shape (name:x:NUMBER:...).
 * -ENOENT if it is not there: users of a directory service are not.
 */
int file_find_id(const char *path, const char *name, unsigned *ret_id);

#endif
