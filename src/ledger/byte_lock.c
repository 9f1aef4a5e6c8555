/*
 * See byte_lock.h. A question is asked through a descriptor opened for it, never through the one that holds
 * locks: own locks do not show there, and the host program may have closed it and reused its number.
 */
#include "ledger/byte_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "ledger/map.h"
#include "ledger/open.h"

static struct flock range_of(unsigned byte, short type)
{
	return (struct flock){.l_type = type,
			      .l_whence = SEEK_SET,
			      .l_start = (off_t)(sizeof(struct ledger_file) + byte),
			      .l_len = 1};
}

/* The ledger's file once more, if its path still leads there. */
static int open_again(const struct ledger *ledger)
{
	char path[PATH_MAX];
	struct file_status status;
	int fd, code;

	snprintf(path, sizeof(path), "%s/%s.ledger", ledger->place.dir, ledger->uuid);
	fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	code = file_status(fd, "", &status);
	if (code == 0 &&
	    (status.inode != ledger->place.inode || status.device != ledger->place.device))
		code = -ESTALE;
	if (code == 0)
		return fd;
	close(fd);
	return code;
}

int byte_lock_take(struct ledger *ledger, unsigned byte)
{
	struct flock range = range_of(byte, F_WRLCK);
	int saved_errno = errno, code = 1, fd;

	if (!ledger->place.dir[0])
		return 1; /* nobody else maps a private ledger */
	if (!ledger->lock_fd_plus_1) {
		fd = open_again(ledger);
		if (fd < 0)
			code = fd;
		else
			ledger->lock_fd_plus_1 = fd + 1;
	}
	if (code == 1 && fcntl(ledger->lock_fd_plus_1 - 1, F_OFD_SETLK, &range) != 0)
		code = errno == EAGAIN || errno == EACCES ? 0 : -errno;
	errno = saved_errno;
	return code;
}

void byte_lock_drop(struct ledger *ledger, unsigned byte)
{
	struct flock range = range_of(byte, F_UNLCK);
	int saved_errno = errno;

	if (ledger->lock_fd_plus_1)
		fcntl(ledger->lock_fd_plus_1 - 1, F_OFD_SETLK, &range);
	errno = saved_errno;
}

int byte_lock_is_held(const struct ledger *ledger, unsigned byte)
{
	struct flock range = range_of(byte, F_WRLCK);
	int saved_errno = errno, held = 1, fd;

	if (!ledger->place.dir[0])
		return 1;
	fd = open_again(ledger);
	if (fd >= 0) {
		if (fcntl(fd, F_OFD_GETLK, &range) == 0)
			held = range.l_type != F_UNLCK;
		close(fd);
	}
	errno = saved_errno;
	return held;
}

void byte_lock_close(struct ledger *ledger)
{
	int saved_errno = errno;

	/* In a forked child the number may be another file's by now. */
	if (ledger->lock_fd_plus_1 && map_is_here(ledger))
		close(ledger->lock_fd_plus_1 - 1);
	ledger->lock_fd_plus_1 = 0;
	errno = saved_errno;
}
