/*
 * Trust is checked on the open descriptor, so that nothing can be swapped between check and use;
 * statx() because fstat() carries a newer symbol version than we may need.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"

/*
 * In a user namespace that does not map the host's root (rootless containers), files of that root
 * show the overflow uid. Outside of one, that uid is just nobody.
 */
static int is_unmapped_root(unsigned uid)
{
	static const char all_ids[] = "4294967295";
	char text[4096];
	uint64_t overflow;
	size_t length;

	file_slurp("/proc/sys/kernel/overflowuid", text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	if (number_parse(text, 0, UINT_MAX, &overflow, NULL) < 0 || uid != overflow)
		return 0;
	file_slurp("/proc/self/uid_map", text, sizeof(text));
	length = strcspn(text, "\n");
	return length < sizeof(all_ids) ||
	       strncmp(text + length - (sizeof(all_ids) - 1), all_ids, sizeof(all_ids) - 1) != 0;
}

/* allow_writable: others may have write permission (a sticky directory). */
static int check_trust(const struct statx *info, enum file_trust trust, int allow_writable,
		       struct error *err)
{
	int is_root, is_caller;

	if (trust == FILE_ANY)
		return 0;
	is_root = info->stx_uid == 0 || is_unmapped_root(info->stx_uid);
	is_caller = trust == FILE_ROOT_OR_CALLER && info->stx_uid == geteuid();
	if (!is_root && !is_caller)
		return error_set(err, EPERM, "owned by uid %u: it must belong to root%s",
				 info->stx_uid, trust == FILE_ROOT_OR_CALLER ? " or to you" : "");
	if (!allow_writable && (info->stx_mode & (S_IWGRP | S_IWOTH)))
		return error_set(err, EPERM, "others may write it (mode %04o): chmod go-w",
				 (unsigned)info->stx_mode & 07777);
	return 0;
}

static int get_info(int fd, struct statx *ret)
{
	return statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE | STATX_UID, ret) < 0 ? -errno
											  : 0;
}

static int open_checked(int dir_fd, const char *path, enum file_trust trust, mode_t type,
			struct error *err)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	struct statx info;
	int fd, r;

	fd = openat(dir_fd, path, type == S_IFDIR ? flags | O_DIRECTORY : flags);
	if (fd < 0)
		return error_set(err, errno, "%s", error_text(errno));
	r = get_info(fd, &info);
	if (r < 0)
		error_set(err, r, "%s", error_text(r));
	else if ((info.stx_mode & S_IFMT) != type)
		r = error_set(err, EINVAL, "not a regular file");
	else
		r = check_trust(&info, trust, 0, err);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

int file_check_dir(int fd, enum file_trust trust, struct error *err)
{
	struct statx info;
	int r = get_info(fd, &info);

	if (r < 0)
		return error_set(err, r, "%s", error_text(r));
	return check_trust(&info, trust, info.stx_mode & S_ISVTX, err);
}

int file_open_text(int dir_fd, const char *path, enum file_trust trust, struct error *err)
{
	return open_checked(dir_fd, path, trust, S_IFREG, err);
}

int file_open_dir(int dir_fd, const char *path, enum file_trust trust, struct error *err)
{
	return open_checked(dir_fd, path, trust, S_IFDIR, err);
}

int file_read_text(int fd, char *buf, size_t bytes, size_t *ret_length)
{
	size_t length = 0;
	ssize_t n;

	for (;;) {
		n = read(fd, buf + length, bytes - length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		length += (size_t)n;
		if (length == bytes) {
			buf[bytes - 1] = '\0';
			return -EFBIG;
		}
		if (n == 0)
			break;
	}
	buf[length] = '\0';
	*ret_length = length;
	return 0;
}

void file_slurp(const char *path, char *buf, size_t bytes)
{
	int fd = file_open_text(AT_FDCWD, path, FILE_ANY, NULL);
	size_t length;
	int r;

	buf[0] = '\0';
	if (fd < 0)
		return;
	r = file_read_text(fd, buf, bytes, &length);
	if (r < 0 && r != -EFBIG)
		buf[0] = '\0';
	close(fd);
}

/* "name:x:NUMBER" at the start of line, which may be changed. */
static int line_has_id(char *line, const char *name, unsigned *ret_id)
{
	size_t length = strlen(name);
	uint64_t id;
	char *field;

	if (strncmp(line, name, length) != 0 || line[length] != ':')
		return 0;
	field = strchr(line + length + 1, ':');
	if (!field)
		return 0;
	field++;
	field[strcspn(field, ":")] = '\0';
	if (number_parse(field, 0, UINT_MAX, &id, NULL) < 0)
		return 0;
	*ret_id = (unsigned)id;
	return 1;
}

int file_find_id(const char *path, const char *name, unsigned *ret_id)
{
	char buf[4096]; /* longer lines (groups with many members) keep their start, all we need */
	size_t used = 0;
	int in_line_start = 1, r = -ENOENT;
	int fd = file_open_text(AT_FDCWD, path, FILE_ANY, NULL);
	ssize_t n;

	if (fd < 0)
		return fd;
	while (r == -ENOENT && (n = read(fd, buf + used, sizeof(buf) - 1 - used)) > 0) {
		char *line = buf, *end;

		used += (size_t)n;
		buf[used] = '\0';
		while (r == -ENOENT && (end = strchr(line, '\n')) != NULL) {
			*end = '\0';
			if (in_line_start && line_has_id(line, name, ret_id))
				r = 0;
			in_line_start = 1;
			line = end + 1;
		}
		used -= (size_t)(line - buf);
		memmove(buf, line, used + 1);
		if (used == sizeof(buf) - 1) {
			if (r == -ENOENT && in_line_start && line_has_id(buf, name, ret_id))
				r = 0;
			in_line_start = 0;
			used = 0;
		}
	}
	if (r == -ENOENT && used && in_line_start && line_has_id(buf, name, ret_id))
		r = 0; /* a last line without a newline */
	close(fd);
	return r;
}
