/*
 * Allocations that more than one process knows (IPC handles, exported VMM handles).
 *
 * A descriptor that stands for a share is one of the state file, positioned at, and holding an OFD
 * lock on, the byte of that share: the kernel drops the lock with the last copy of the descriptor,
 * wherever it was passed, and so everyone can see when it is gone.
 *
 * The contents are in a memory file of the process that shared first; the others open it through
 * /proc. Who comes when that process is gone, or cannot see it, finds zeros.
 */
#include "shared_state.h"
#include "shared_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHARE_BASE (1ll << 41) /* the byte of share 0 */

/* Memory files with the contents of shares that this process refers to; 0 elsewhere. */
static int data_fd[SIM_MAX_SHARES];

static void data_name(uint32_t share, char *name, size_t size)
{
	snprintf(name, size, "cuota-sim-share-%u-%u", share, sim_shared->share[share].generation);
}

/* The holder's memory file, through /proc; checked by name, for process ids get reused. */
static int open_holders(uint32_t share)
{
	const struct sim_share *s = &sim_shared->share[share];
	char path[64], name[64], target[128];

	if (!s->holder_pid)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", s->holder_pid, s->holder_fd);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	data_name(share, name, sizeof(name));
	if (strstr(target, name))
		return fd;
	close(fd);
	return -1;
}

int state_share_data(uint32_t share)
{
	struct sim_share *s = &sim_shared->share[share];
	char name[64];

	if (data_fd[share] > 0)
		return data_fd[share];
	int fd = open_holders(share);
	if (fd < 0) {
		data_name(share, name, sizeof(name));
		fd = memfd_create(name, MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, (off_t)s->bytes) != 0)
			return -errno;
		s->holder_pid = getpid();
		s->holder_fd = fd;
	}
	data_fd[share] = fd;
	return fd;
}

static void drop_data(uint32_t share)
{
	if (data_fd[share] > 0)
		close(data_fd[share]);
	data_fd[share] = 0;
}

static void share_free(uint32_t share)
{
	sim_shared->share[share].holder_pid = 0;
	sim_shared->share[share].used = 0;
}

static bool descriptor_open(uint32_t share)
{
	struct flock ask = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = SHARE_BASE + share,
		.l_len = 1,
	};
	return fcntl(state_fd, F_OFD_GETLK, &ask) == 0 && ask.l_type != F_UNLCK;
}

int state_share_new(uint32_t process, uint32_t device, uint64_t bytes)
{
	for (uint32_t i = 0; i < SIM_MAX_SHARES; i++) {
		struct sim_share *share = &sim_shared->share[i];
		if (share->used)
			continue;
		memset(share->refs, 0, sizeof(share->refs));
		share->device = device;
		share->exported = 0;
		share->holder_pid = 0;
		share->owner = process;
		share->bytes = bytes;
		share->generation++;
		share->refs[process] = 1;
		share->used = 1;
		if (sim_shared->share_top < i + 1)
			sim_shared->share_top = i + 1;
		return (int)i;
	}
	return -EAGAIN;
}

bool state_share_get(uint32_t share, uint32_t generation, uint32_t process)
{
	if (share >= SIM_MAX_SHARES)
		return false;
	struct sim_share *s = &sim_shared->share[share];
	if (!s->used || s->generation != generation)
		return false;
	s->refs[process]++;
	if (s->owner == SIM_NOBODY) {
		uint64_t *orphans = &sim_shared->device[s->device].orphan_bytes;
		*orphans -= s->bytes < *orphans ? s->bytes : *orphans;
		s->owner = process;
		sim_shared->process[process].usage[s->device].memory_bytes += s->bytes;
	}
	return true;
}

/* The bytes go to another process that refers to them, or to nobody. */
static void move_on(struct sim_share *s, uint32_t from)
{
	state_give_bytes(from, s->device, s->bytes);
	for (uint32_t i = 0; i < sim_shared->process_top; i++) {
		if (!s->refs[i])
			continue;
		s->owner = i;
		sim_shared->process[i].usage[s->device].memory_bytes += s->bytes;
		return;
	}
	s->owner = SIM_NOBODY;
	sim_shared->device[s->device].orphan_bytes += s->bytes;
}

void state_share_put(uint32_t share, uint32_t process)
{
	struct sim_share *s = &sim_shared->share[share];
	if (!s->used || !s->refs[process] || --s->refs[process])
		return;
	if ((int)process == state_slot)
		drop_data(share);
	if (s->owner == process)
		move_on(s, process);
	shares_reap();
}

void shares_reap(void)
{
	for (uint32_t i = 0; i < sim_shared->share_top; i++) {
		struct sim_share *s = &sim_shared->share[i];
		if (!s->used || s->owner != SIM_NOBODY || (s->exported && descriptor_open(i)))
			continue;
		uint64_t *orphans = &sim_shared->device[s->device].orphan_bytes;
		*orphans -= s->bytes < *orphans ? s->bytes : *orphans;
		share_free(i);
	}
}

int state_share_export(uint32_t share)
{
	char path[4096];
	state_path(path, sizeof(path));
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	/* A read lock: several descriptors may stand for the same share. */
	struct flock hold = {
		.l_type = F_RDLCK,
		.l_whence = SEEK_SET,
		.l_start = SHARE_BASE + share,
		.l_len = 1,
	};
	if (fcntl(fd, F_OFD_SETLK, &hold) != 0 || lseek(fd, SHARE_BASE + share, SEEK_SET) < 0) {
		int error = -errno;
		close(fd);
		return error;
	}
	sim_shared->share[share].exported = 1;
	return fd;
}

int state_share_of(int fd)
{
	off_t at = lseek(fd, 0, SEEK_CUR);
	if (at < SHARE_BASE || at >= SHARE_BASE + SIM_MAX_SHARES)
		return -1;
	uint32_t share = (uint32_t)(at - SHARE_BASE);
	return sim_shared->share[share].used ? (int)share : -1;
}
