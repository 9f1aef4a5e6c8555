/*
 * Files as they may be found: the input is laid over a good ledger's header, its size is changed, or it is the whole
 * file; likewise the text of a limits file. Opening says yes or no, and what it says yes to can be read.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "ledger/open.h"

#define UUID "GPU-f022f022-0000-0000-0000-000000000001"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char dir[64] = "/dev/shm/cuota-fuzz.XXXXXX", path[160], limits[160];
static int fd = -1, limits_fd = -1;

static void require(int holds)
{
	if (!holds)
		abort();
}

static void remove_dir(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if (system(command) != 0)
		perror(command);
}

static void begin(void)
{
	struct ledger ledger;

	if (fd >= 0)
		return;
	require(mkdtemp(dir) != NULL);
	atexit(remove_dir);
	require(ledger_open(dir, UUID, &ledger, NULL) == 0);
	ledger_close(&ledger);
	snprintf(path, sizeof(path), "%s/%s.ledger", dir, UUID);
	snprintf(limits, sizeof(limits), "%s/limits", dir);
	require(mkdir(limits, 0755) == 0);
	snprintf(limits, sizeof(limits), "%s/limits/train.limits", dir);
	fd = open(path, O_RDWR);
	limits_fd = open(limits, O_CREAT | O_RDWR, 0644);
	require(fd >= 0 && limits_fd >= 0);
}

/* Puts the input at `offset` of a good file; 1 if the file is as it was. */
static int lay_over(const uint8_t *data, size_t bytes, off_t offset, off_t size)
{
	struct ledger_header header;
	unsigned char before[sizeof(header)], after[sizeof(header)];
	size_t fixed = offsetof(struct ledger_header, device_bytes);

	ledger_header_make(&header, UUID);
	memset(before, 0, sizeof(before));
	memcpy(before, &header, sizeof(header));
	require(ftruncate(fd, sizeof(struct ledger_file)) == 0);
	require(pwrite(fd, before, sizeof(before), 0) == sizeof(before));
	require(pwrite(fd, data, bytes, offset) == (ssize_t)bytes);
	require(pread(fd, after, sizeof(after), 0) == sizeof(after));
	require(ftruncate(fd, size) == 0);
	return size == sizeof(struct ledger_file) && memcmp(before, after, fixed) == 0;
}

static void try_to_open(int good)
{
	static struct ledger_view view;
	struct ledger ledger;
	struct member member;
	struct error err = {""};
	int code = ledger_open(dir, UUID, &ledger, &err);

	require((code == 0) == good);
	require(code == 0 || err.text[0]);
	if (code == 0) {
		/* A lock that nobody holds is a second's wait: tested elsewhere. */
		atomic_store(&ledger.file->header.join_lock, 0);
		if (ledger_join(&ledger, "train", NULL, NULL, &member, NULL) == 0)
			ledger_leave(&member);
		ledger_close(&ledger);
	}
	if (ledger_open_read(path, &ledger, &err) == 0) {
		ledger_view(&ledger, &view);
		require(strlen(ledger.uuid) < sizeof(ledger.uuid));
		ledger_close(&ledger);
	}
}

static void read_limits(const uint8_t *data, size_t bytes)
{
	struct quota quota = {0};
	struct error err = {""};
	int code;

	require(ftruncate(limits_fd, 0) == 0);
	require(pwrite(limits_fd, data, bytes, 0) == (ssize_t)bytes);
	code = limits_read(dir, "train", geteuid(), &quota, &err);
	require(code == 0 || err.text[0]);
	require(code != 0 || (quota.sm_bp <= QUOTA_SM_NONE && quota.weight <= 10000 &&
			      quota.priority <= PRIORITY_HIGH));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	off_t whole = sizeof(struct ledger_file);

	begin();
	if (bytes < 2)
		return 0;
	switch (data[0] % 4) {
	case 0: try_to_open(lay_over(data + 2, bytes - 2, data[1], whole)); break;
	case 1: try_to_open(lay_over(data + 2, bytes - 2, 4 * data[1], whole)); break;
	case 2: try_to_open(lay_over(data + 2, bytes - 2, 0, whole + data[1] - 128)); break;
	default: read_limits(data + 1, bytes - 1);
	}
	return 0;
}
