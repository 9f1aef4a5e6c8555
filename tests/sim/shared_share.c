/*
 * Allocations that more than one process knows (IPC handles, exported VMM handles).
 *
 * A descriptor that stands for a share is one of the state file, positioned at, and holding an OFD
 * lock on, the byte of that share: the kernel drops the lock with the last copy of the descriptor,
 * wherever it was passed, and so everyone can see when it is gone.
 */
#include "shared_state.h"
#include "shared_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SHARE_BASE (1ll << 41) /* the byte of share 0 */

static void data_path(uint32_t share, char *path, size_t size)
{
	char state[4000];
	state_path(state, sizeof(state));
	snprintf(path, size, "%s.share-%u", state, share);
}

int state_share_data(uint32_t share)
{
	char path[4096];
	data_path(share, path, sizeof(path));
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)sim_shared->share[share].bytes) != 0) {
		int error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

static void share_free(uint32_t share)
{
	char path[4096];
	data_path(share, path, sizeof(path));
	unlink(path);
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
