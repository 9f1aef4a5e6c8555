/*
 * Finding, making and checking the ledger file.
 *
 * A file gets its name only when it is whole (link of an unnamed or temporary file), so a file that
 * is there and not whole is damage, not a race. An existing one is opened without O_CREAT: with
 * fs.protected_regular even root may not do otherwise in a sticky directory. Space is allocated,
 * not promised: a full tmpfs is an error here instead of a SIGBUS later.
 */
#include "ledger/open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/byte_lock.h"
#include "ledger/map.h"
#include "ledger/protocol.h"

static int status_by(int fd, const char *path, int flags, struct file_status *ret)
{
	struct statx st; /* not fstat(): its symbol is newer than the oldest C library we serve */

	if (syscall(SYS_statx, fd, path, flags, STATX_BASIC_STATS, &st) != 0)
		return -errno;
	ret->mode = st.stx_mode;
	ret->uid = st.stx_uid;
	ret->bytes = st.stx_size;
	ret->inode = st.stx_ino;
	ret->device = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
	return 0;
}

int file_status(int fd, const char *path, struct file_status *ret)
{
	return status_by(fd, path, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, ret);
}

int file_status_followed(const char *path, struct file_status *ret)
{
	return status_by(AT_FDCWD, path, 0, ret);
}

uint64_t file_noise(void)
{
	uint64_t noise = 0;

	if (syscall(SYS_getrandom, &noise, sizeof(noise), GRND_NONBLOCK) < 0)
		noise = (uintptr_t)&noise ^ clock_now_ns() ^ (uint64_t)getpid() << 40;
	return noise;
}

static uint64_t fnv1a(const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	uint64_t hash = 0xcbf29ce484222325ull;

	while (count--)
		hash = (hash ^ *at++) * 0x100000001b3ull;
	return hash;
}

void ledger_header_make(struct ledger_header *ret, const char *uuid)
{
	memset(ret, 0, sizeof(*ret));
	ret->magic = LEDGER_MAGIC;
	ret->version = LEDGER_VERSION;
	ret->header_bytes = sizeof(*ret);
	ret->file_bytes = sizeof(struct ledger_file);
	ret->slots = LEDGER_SLOTS;
	ret->groups = LEDGER_GROUPS;
	ret->slot_bytes = sizeof(struct slot);
	ret->group_bytes = sizeof(struct group);
	memcpy(ret->uuid, uuid, strnlen(uuid, sizeof(ret->uuid) - 1));
	ret->checksum = fnv1a(ret, offsetof(struct ledger_header, checksum));
}

/* The header's fixed part must be, byte for byte, what this library would write. */
static int check_header(int fd, const char *path, const char *uuid, struct error *err)
{
	struct ledger_header found, wanted;
	size_t fixed = offsetof(struct ledger_header, device_bytes);

	if (pread(fd, &found, fixed, 0) != (ssize_t)fixed || found.magic != LEDGER_MAGIC)
		return error_set(err, EPROTO,
				 "%s: not a cuota ledger; if no program uses it, remove it", path);
	if (found.version != LEDGER_VERSION)
		return error_set(
			err, EPROTO,
			"%s: made by %s cuota (layout %u, this one knows %u); when none of its "
			"programs is left, remove it",
			path, found.version > LEDGER_VERSION ? "a newer" : "an older",
			found.version, LEDGER_VERSION);
	if (!uuid) { /* a reader takes the name the file gives itself */
		found.uuid[sizeof(found.uuid) - 1] = '\0';
		if (ledger_uuid_check(found.uuid, err) != 0)
			return -EPROTO;
		uuid = found.uuid;
	}
	ledger_header_make(&wanted, uuid);
	if (memcmp(&found, &wanted, fixed) != 0)
		return error_set(err, EPROTO,
				 "%s: damaged header; when none of its programs is left, remove it",
				 path);
	return 0;
}

int ledger_uuid_check(const char *uuid, struct error *err)
{
	size_t i;

	for (i = 0; uuid[i]; i++)
		if (i + 1 >= UUID_TEXT_BYTES ||
		    !strchr("-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
			    uuid[i]))
			break;
	if (i == 0 || uuid[i])
		return error_set(err, EINVAL, "not the UUID of a device");
	return 0;
}

/* An existing file, checked: a descriptor or -errno. */
static int open_existing(const char *path, const char *uuid, int flags, struct ledger *ret,
			 struct error *err)
{
	struct file_status status;
	int code, fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0)
		return error_set(err, errno, "%s: %s", path,
				 errno == ELOOP ? "a symbolic link is not followed"
						: error_text(errno));
	code = file_status(fd, "", &status);
	if (code != 0)
		code = error_set(err, code, "%s: %s", path, error_text(code));
	else if (!S_ISREG(status.mode))
		code = error_set(err, EPROTO, "%s: not a regular file", path);
	else if (status.bytes != sizeof(struct ledger_file))
		code = error_set(
			err, EPROTO,
			"%s: %llu bytes instead of %llu: damaged, or of another version; when none "
			"of its programs is left, remove it",
			path, (unsigned long long)status.bytes,
			(unsigned long long)sizeof(struct ledger_file));
	else
		code = check_header(fd, path, uuid, err);
	if (code != 0) {
		close(fd);
		return code;
	}
	ret->place.device = status.device;
	ret->place.inode = status.inode;
	return fd;
}

/* Room for the whole file, really there. */
static int allocate(int fd)
{
	static const char zeroes[LEDGER_PAGE];
	size_t at;

	if (fallocate(fd, 0, 0, sizeof(struct ledger_file)) == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	for (at = 0; at < sizeof(struct ledger_file); at += sizeof(zeroes)) /* NFS and the like */
		if (pwrite(fd, zeroes, sizeof(zeroes), (off_t)at) != (ssize_t)sizeof(zeroes))
			return errno ? -errno : -ENOSPC;
	return 0;
}

static int fill_new(int fd, const char *uuid)
{
	struct ledger_header header;
	int code;

	ledger_header_make(&header, uuid);
	code = allocate(fd);
	if (code != 0)
		return code;
	if (pwrite(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
		return errno ? -errno : -ENOSPC;
	return fchmod(fd, 0666) != 0 ? -errno : 0; /* whatever the umask */
}

/* Makes the file and gives it its name. 0 also when somebody else was first. */
static int create(const char *dir, const char *path, const char *uuid)
{
	char temporary[PATH_MAX], self[40];
	int code, fd;

	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0) {
		code = fill_new(fd, uuid);
		snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		if (code == 0 && linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) != 0)
			code = -errno;
		close(fd);
		if (code == 0 || code == -EEXIST)
			return 0;
		if (code != -ENOENT && code != -EPERM && code != -EACCES && code != -ELOOP)
			return code; /* else: no /proc here; the longer way */
	} else if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT) {
		return -errno;
	}
	if (snprintf(temporary, sizeof(temporary), "%s/.%s.%016llx", dir, uuid,
		     (unsigned long long)file_noise()) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	fd = open(temporary, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	code = fill_new(fd, uuid);
	if (code == 0 && link(temporary, path) != 0 && errno != EEXIST)
		code = -errno;
	unlink(temporary);
	close(fd);
	return code;
}

static int open_or_create(const char *dir, const char *path, const char *uuid, struct ledger *ret,
			  struct error *err)
{
	int code, fd, tries;

	for (tries = 0; tries < 8; tries++) {
		fd = open_existing(path, uuid, O_RDWR, ret, err);
		if (fd != -ENOENT)
			return fd;
		code = create(dir, path, uuid);
		if (code != 0)
			return error_set(err, code, "%s: cannot make the ledger: %s", path,
					 error_text(code));
	}
	return error_set(err, EAGAIN, "%s: somebody keeps removing it", path);
}

int ledger_open(const char *dir, const char *uuid, struct ledger *ret, struct error *err)
{
	struct ledger opened = {0};
	char path[PATH_MAX];
	int saved_errno = errno, code, fd;

	code = ledger_uuid_check(uuid, err);
	if (code != 0)
		return code;
	if (strnlen(dir, PATH_MAX) >= sizeof(opened.place.dir))
		return error_set(err, ENAMETOOLONG, "the ledger directory's name is too long");
	snprintf(opened.place.dir, sizeof(opened.place.dir), "%s", dir);
	snprintf(opened.uuid, sizeof(opened.uuid), "%s", uuid);
	snprintf(path, sizeof(path), "%s/%s.ledger", dir, uuid);
	fd = open_or_create(dir, path, uuid, &opened, err);
	if (fd < 0) {
		errno = saved_errno;
		return fd;
	}
	code = map_file(&opened, fd);
	close(fd);
	errno = saved_errno;
	if (code != 0)
		return error_set(err, code, "%s: cannot map: %s", path, error_text(code));
	*ret = opened;
	return 0;
}

int ledger_open_private(const char *uuid, struct ledger *ret, struct error *err)
{
	struct ledger opened = {.private_copy = 1};
	int code = ledger_uuid_check(uuid, err);

	if (code != 0)
		return code;
	snprintf(opened.uuid, sizeof(opened.uuid), "%s", uuid);
	code = map_file(&opened, -1);
	if (code != 0)
		return error_set(err, code, "a private ledger: %s", error_text(code));
	ledger_header_make(&opened.file->header, uuid);
	*ret = opened;
	return 0;
}

int ledger_open_read(const char *path, struct ledger *ret, struct error *err)
{
	struct ledger opened = {.read_only = 1};
	int saved_errno = errno, code, fd;

	fd = open_existing(path, NULL, O_RDONLY, &opened, err);
	if (fd < 0) {
		errno = saved_errno;
		return fd == -ENOENT ? error_set(err, ENOENT, "%s: no such ledger", path) : fd;
	}
	code = map_file(&opened, fd);
	close(fd);
	errno = saved_errno;
	if (code != 0)
		return error_set(err, code, "%s: cannot map: %s", path, error_text(code));
	memcpy(opened.uuid, opened.file->header.uuid, sizeof(opened.uuid));
	opened.uuid[sizeof(opened.uuid) - 1] = '\0';
	*ret = opened;
	return 0;
}

void ledger_close(struct ledger *ledger)
{
	byte_lock_close(ledger);
	map_remove(ledger);
}

int ledger_check_file(struct ledger *ledger)
{
	char path[PATH_MAX];
	struct file_status status;
	int saved_errno = errno, code;

	if (!ledger->place.dir[0])
		return 0;
	snprintf(path, sizeof(path), "%s/%s.ledger", ledger->place.dir, ledger->uuid);
	code = file_status(AT_FDCWD, path, &status);
	errno = saved_errno;
	if (code != 0 || status.inode != ledger->place.inode ||
	    status.device != ledger->place.device)
		return -ESTALE;
	if (status.bytes >= sizeof(struct ledger_file))
		return 0;
	map_cut_off(ledger);
	return -ENODATA;
}
