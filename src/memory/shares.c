#include "memory/shares.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEING_MADE UINT64_MAX

static uint64_t who_is(const struct member *member)
{
	return (uint64_t)member->generation << 32 | (member->slot + 1);
}

static int lives(const struct member *member, uint64_t who)
{
	uint64_t slot = (who & UINT32_MAX) - 1;
	const struct ledger *ledger = member->ledger;

	if (!who || who == BEING_MADE || slot >= LEDGER_SLOTS)
		return 0;
	if (who == who_is(member))
		return 1;
	return atomic_load(&ledger->file->live[slot].generation) == (uint32_t)(who >> 32) &&
	       slot_alive(ledger, (unsigned)slot);
}

/* ---- the file ------------------------------------------------------------------------------------- */

/* As the ledger's: no O_CREAT on what exists, an explicit mode, room that is really there. */
static int open_file(const char *path)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct statx status; /* fstat's symbol is newer than the oldest C library served */

	if (fd < 0 && errno == ENOENT) {
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno == EEXIST)
			fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		else if (fd >= 0 && fchmod(fd, 0666))
			errno = 0;
	}
	if (fd < 0)
		return -errno;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE, &status) ||
	    !S_ISREG(status.stx_mode) ||
	    (status.stx_size < sizeof(struct shares_file) &&
	     posix_fallocate(fd, 0, sizeof(struct shares_file)))) {
		close(fd);
		return -EPROTO;
	}
	return fd;
}

static int map_file(struct shares *shares, const struct member *member)
{
	const struct ledger *ledger = member->ledger;
	char path[PATH_MAX + UUID_TEXT_BYTES + 16];
	struct shares_file *file;
	int fd;

	if (!ledger->place.dir[0])
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%s.shares", ledger->place.dir, ledger->uuid);
	fd = open_file(path);
	if (fd < 0)
		return fd;
	file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return -ENOMEM;
	/* All zero is an empty table: whoever comes first names it. */
	if (!file->magic)
		file->magic = SHARES_MAGIC;
	if (file->magic != SHARES_MAGIC) {
		munmap(file, sizeof(*file));
		return -EPROTO;
	}
	shares->file = file;
	return 0;
}

int shares_open(struct shares *shares, const struct member *member)
{
	int saved = errno, result = shares->file ? 0 : -ENOENT;

	if (!shares->file && !shares->tried) {
		shares->tried = 1;
		result = map_file(shares, member);
	}
	errno = saved;
	return result;
}

void shares_close(struct shares *shares)
{
	if (shares->file)
		munmap(shares->file, sizeof(*shares->file));
	*shares = (struct shares){0};
}

/* ---- one share ------------------------------------------------------------------------------------ */

static int has_holders(const struct share *share, const struct member *member)
{
	for (unsigned i = 0; i < SHARE_HOLDERS; i++)
		if (lives(member, atomic_load(&share->holders[i])))
			return 1;
	return 0;
}

/* Nobody has it and nobody carries it: its place may be taken. */
static int is_over(const struct share *share, const struct member *member)
{
	uint64_t owner = atomic_load(&share->owner);

	if (!owner)
		return 1;
	if (owner == BEING_MADE || (lives(member, owner) && atomic_load(&share->exported)))
		return 0;
	return !lives(member, atomic_load(&share->carrier)) && !has_holders(share, member);
}

static void fill(struct shares_file *file, struct share *share, const struct member *member,
		 uint64_t key, uint64_t bytes)
{
	uint64_t born = atomic_fetch_add(&file->births, 1) + 1;

	for (unsigned i = 0; i < SHARE_HOLDERS; i++)
		atomic_store(&share->holders[i], 0);
	atomic_store(&share->carrier, who_is(member));
	atomic_store(&share->key, key);
	atomic_store(&share->bytes, bytes);
	atomic_store(&share->born, born);
	atomic_store(&share->serial, (uint32_t)(born % SHARE_SERIALS) + 1);
	atomic_store(&share->exported, EXPORT_HELD);
	atomic_store(&share->owner, who_is(member));
}

int share_export(struct shares *shares, const struct member *member, uint64_t key, uint64_t bytes,
		 uint32_t *ret_serial)
{
	if (!shares->file)
		return -ENOENT;
	for (int i = 0; i < SHARES; i++) {
		struct share *share = &shares->file->share[i];
		uint64_t owner = atomic_load(&share->owner);

		if (owner == BEING_MADE || !is_over(share, member) ||
		    !atomic_compare_exchange_strong(&share->owner, &owner, BEING_MADE))
			continue;
		fill(shares->file, share, member, key, bytes);
		*ret_serial = atomic_load(&share->serial);
		return i;
	}
	return -ENOSPC;
}

static int is_named(const struct share *share)
{
	uint64_t owner = atomic_load(&share->owner);

	return owner && owner != BEING_MADE;
}

int share_find(struct shares *shares, uint64_t key)
{
	int found = -ENOENT;
	uint64_t born = 0;

	for (int i = 0; shares->file && i < SHARES; i++) {
		const struct share *share = &shares->file->share[i];

		if (!is_named(share) || atomic_load(&share->key) != key ||
		    atomic_load(&share->born) < born)
			continue;
		born = atomic_load(&share->born);
		found = i;
	}
	return found;
}

/* The process whose number that is, in our PID namespace. */
static int is_process(const struct member *member, uint64_t who, uint32_t pid)
{
	const struct ledger_file *file = member->ledger->file;
	uint64_t slot = (who & UINT32_MAX) - 1;

	return slot < LEDGER_SLOTS && atomic_load(&file->slot[slot].pid) == pid &&
	       atomic_load(&file->slot[slot].pid_ns_inode) ==
		       atomic_load(&file->slot[member->slot].pid_ns_inode);
}

int share_find_serial(struct shares *shares, const struct member *member, uint32_t pid,
		      uint32_t serial)
{
	int found = -ENOENT;
	uint64_t born = 0;

	for (int i = 0; shares->file && serial && i < SHARES; i++) {
		const struct share *share = &shares->file->share[i];

		if (!is_named(share) || atomic_load(&share->serial) != serial ||
		    atomic_load(&share->key) || atomic_load(&share->born) < born ||
		    !is_process(member, atomic_load(&share->owner), pid))
			continue;
		born = atomic_load(&share->born);
		found = i;
	}
	return found;
}

uint64_t share_bytes(struct shares *shares, const struct member *member, int number)
{
	uint64_t most = atomic_load(&member->ledger->file->header.device_bytes);
	uint64_t bytes = atomic_load(&shares->file->share[number].bytes);

	return bytes < most ? bytes : most;
}

int share_hold(struct shares *shares, const struct member *member, int number)
{
	struct share *share = &shares->file->share[number];

	for (unsigned i = 0; i < SHARE_HOLDERS; i++) {
		uint64_t there = atomic_load(&share->holders[i]);

		if (!lives(member, there) &&
		    atomic_compare_exchange_strong(&share->holders[i], &there, who_is(member)))
			break;
	}
	return !lives(member, atomic_load(&share->carrier));
}

void share_carry(struct shares *shares, const struct member *member, int number)
{
	atomic_store(&shares->file->share[number].carrier, who_is(member));
}

int share_is_carried(struct shares *shares, const struct member *member, int number)
{
	return atomic_load(&shares->file->share[number].carrier) == who_is(member);
}

int share_let_go(struct shares *shares, const struct member *member, int number, int as_owner)
{
	struct share *share = &shares->file->share[number];
	uint64_t self = who_is(member);

	if (as_owner)
		atomic_store(&share->exported, EXPORT_OVER);
	for (unsigned i = 0; !as_owner && i < SHARE_HOLDERS; i++) {
		uint64_t expected = self;

		if (atomic_compare_exchange_strong(&share->holders[i], &expected, 0))
			break;
	}
	if (atomic_load(&share->carrier) != self || has_holders(share, member) ||
	    (atomic_load(&share->owner) == self && atomic_load(&share->exported)))
		return 0;
	return atomic_compare_exchange_strong(&share->carrier, &self, 0);
}

int share_has_descriptor(struct shares *shares, int number, uint64_t open)
{
	const struct share *share = &shares->file->share[number];
	uint32_t serial = atomic_load(&share->serial);

	return !atomic_load(&share->key) && serial - 1 < SHARE_SERIALS && open >> (serial - 1) & 1;
}

void share_leave_to_descriptor(struct shares *shares, int number)
{
	atomic_store(&shares->file->share[number].exported, EXPORT_DESCRIPTOR);
}

int shares_end_descriptors(struct shares *shares, const struct member *member, uint64_t open)
{
	int more = 0;

	for (int i = 0; shares->file && i < SHARES; i++) {
		struct share *share = &shares->file->share[i];
		uint32_t left = EXPORT_DESCRIPTOR;

		if (atomic_load(&share->owner) != who_is(member) ||
		    atomic_load(&share->exported) != left)
			continue;
		if (share_has_descriptor(shares, i, open))
			more = 1;
		else
			atomic_compare_exchange_strong(&share->exported, &left, EXPORT_OVER);
	}
	return more;
}

/* The first living holder takes what nobody carries. */
static int adopts(struct share *share, const struct member *member)
{
	uint64_t carrier = atomic_load(&share->carrier), self = who_is(member);

	if (lives(member, carrier))
		return 0;
	for (unsigned i = 0; i < SHARE_HOLDERS; i++) {
		uint64_t holder = atomic_load(&share->holders[i]);

		if (!lives(member, holder))
			continue;
		return holder == self &&
		       atomic_compare_exchange_strong(&share->carrier, &carrier, self);
	}
	return 0;
}

void shares_tick(struct shares *shares, const struct member *member, struct shares_change *ret)
{
	uint64_t self = who_is(member);

	*ret = (struct shares_change){0, 0};
	for (int i = 0; shares->file && i < SHARES; i++) {
		struct share *share = &shares->file->share[i];
		uint64_t carrier = self;

		if (!is_named(share))
			continue;
		if (adopts(share, member))
			ret->adopt_bytes += share_bytes(shares, member, i);
		else if (atomic_load(&share->carrier) == self && !has_holders(share, member) &&
			 !(atomic_load(&share->owner) == self && atomic_load(&share->exported)) &&
			 atomic_compare_exchange_strong(&share->carrier, &carrier, 0))
			ret->release_bytes += share_bytes(shares, member, i);
	}
	/* The file may say anything; more than the device has cannot be true. */
	if (ret->adopt_bytes > atomic_load(&member->ledger->file->header.device_bytes))
		ret->adopt_bytes = atomic_load(&member->ledger->file->header.device_bytes);
}
