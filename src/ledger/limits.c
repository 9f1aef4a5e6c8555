/*
 * What `cuota set` leaves for a group: a small text file beside the ledgers, because limits must
 * not lie where a tenant may write. "key = number" lines, written whole under a temporary name and
 * renamed.
 *
 *   mem = 8589934592          bytes, or none
 *   mem-per-process = none
 *   sm = 3000                 hundredths of a percent, or none
 *   weight = 100
 *   priority = 2              1 low, 2 normal, 3 high
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/group_name.h"
#include "base/size.h"
#include "ledger/live.h"
#include "ledger/open.h"
#include "ledger/protocol.h"

#define LIMITS_BYTES 1024

struct field {
	const char *name;
	size_t offset;
	unsigned bytes;
	uint64_t low, high, none; /* none 0: the word is not allowed */
};

static const struct field fields[] = {
	{"mem", offsetof(struct quota, mem_bytes), 8, 1, SIZE_MAX_BYTES, QUOTA_NONE},
	{"mem-per-process", offsetof(struct quota, mem_process_bytes), 8, 1, SIZE_MAX_BYTES,
	 QUOTA_NONE},
	{"sm", offsetof(struct quota, sm_bp), 4, 1, QUOTA_SM_NONE, QUOTA_SM_NONE},
	{"weight", offsetof(struct quota, weight), 4, 1, 10000, 0},
	{"priority", offsetof(struct quota, priority), 4, PRIORITY_LOW, PRIORITY_HIGH, 0},
};

#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

static uint64_t field_get(const struct quota *quota, const struct field *field)
{
	uint64_t wide = 0;
	uint32_t narrow;

	if (field->bytes == 8) {
		memcpy(&wide, (const char *)quota + field->offset, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, (const char *)quota + field->offset, sizeof(narrow));
	return narrow;
}

static void field_set(struct quota *quota, const struct field *field, uint64_t value)
{
	uint32_t narrow = (uint32_t)value;

	if (field->bytes == 8)
		memcpy((char *)quota + field->offset, &value, sizeof(value));
	else
		memcpy((char *)quota + field->offset, &narrow, sizeof(narrow));
}

/* One line, cut at its newline already. */
static int parse_line(char *line, struct quota *quota, struct error *err)
{
	char *equals = strstr(line, " = ");
	uint64_t value = 0;
	size_t i;

	if (!line[0])
		return 0;
	if (!equals)
		return error_set(err, EINVAL, "not 'name = value'");
	*equals = '\0';
	for (i = 0; i < FIELD_COUNT; i++)
		if (strcmp(line, fields[i].name) == 0)
			break;
	if (i == FIELD_COUNT)
		return error_set(err, EINVAL, "an unknown name");
	if (fields[i].none && strcmp(equals + 3, "none") == 0)
		value = fields[i].none;
	else if (number_parse(equals + 3, fields[i].low, fields[i].high, &value, err) != 0)
		return -EINVAL;
	field_set(quota, &fields[i], value);
	return 0;
}

static int parse(char *text, struct quota *ret, struct error *err)
{
	struct quota quota = {0};
	char *line, *end;

	for (line = text; *line; line = end) {
		end = strchr(line, '\n');
		if (!end)
			return error_set(err, EINVAL, "its last line has no end");
		*end++ = '\0';
		if (parse_line(line, &quota, err) != 0)
			return -EINVAL;
	}
	*ret = quota;
	return 0;
}

static int limits_path(const char *dir, const char *group, char *ret_path, struct error *err)
{
	int code = group_name_check(group, err);

	if (code != 0)
		return code;
	if (snprintf(ret_path, PATH_MAX, "%s/limits/%s.limits", dir, group) >= PATH_MAX)
		return error_set(err, ENAMETOOLONG, "the ledger directory's name is too long");
	return 0;
}

/* Whose the file is, and that nobody else may write it. */
static int check_trust(int fd, unsigned euid, struct error *err)
{
	struct file_status status;
	int code = file_status(fd, "", &status);

	if (code != 0)
		return error_set(err, code, "%s", error_text(code));
	if (!S_ISREG(status.mode))
		return error_set(err, EPERM, "not a regular file");
	if (status.uid != 0 && status.uid != euid)
		return error_set(err, EPERM, "belongs to user %u, who has no say here", status.uid);
	if (status.mode & (S_IWGRP | S_IWOTH))
		return error_set(err, EPERM, "others may write it");
	return 0;
}

int limits_read(const char *dir, const char *group, unsigned euid, struct quota *ret,
		struct error *err)
{
	char path[PATH_MAX], text[LIMITS_BYTES];
	int saved_errno = errno, code, fd;
	size_t length;

	code = dir[0] ? limits_path(dir, group, path, err) : -ENOENT;
	if (code != 0)
		return code;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	code = fd < 0 ? -errno : check_trust(fd, euid, err);
	if (fd < 0)
		error_set(err, code, "%s", error_text(code));
	if (code == 0) {
		code = file_read_text(fd, text, sizeof(text), &length);
		if (code != 0)
			error_set(err, code, "%s", error_text(code));
	}
	if (fd >= 0)
		close(fd);
	errno = saved_errno;
	if (code == 0)
		code = parse(text, ret, err);
	if (code != 0)
		error_prefix(err, "%s", path);
	return code;
}

static size_t format(const struct quota *quota, char *text, size_t bytes)
{
	size_t i, used = 0;
	uint64_t value;

	text[0] = '\0';
	for (i = 0; i < FIELD_COUNT; i++) {
		value = field_get(quota, &fields[i]);
		if (value == 0)
			continue;
		if (fields[i].none && value == fields[i].none)
			used += (size_t)snprintf(text + used, bytes - used, "%s = none\n",
						 fields[i].name);
		else
			used += (size_t)snprintf(text + used, bytes - used, "%s = %llu\n",
						 fields[i].name, (unsigned long long)value);
	}
	return used;
}

/* Tells the members of the group in every ledger of the directory. */
static void bump(const char *dir, const char *group)
{
	struct ledger ledger;
	struct dirent *entry;
	char uuid[UUID_TEXT_BYTES], name[GROUP_NAME_BYTES];
	DIR *listing = opendir(dir);
	size_t length;
	unsigned g;

	while (listing && (entry = readdir(listing))) {
		length = strlen(entry->d_name);
		if (length <= 7 || length - 7 >= sizeof(uuid) ||
		    strcmp(entry->d_name + length - 7, ".ledger") != 0)
			continue;
		memcpy(uuid, entry->d_name, length - 7);
		uuid[length - 7] = '\0';
		if (ledger_open(dir, uuid, &ledger, NULL) != 0)
			continue;
		for (g = 0; g < LEDGER_GROUPS; g++) {
			words_load(ledger.file->group[g].name, GROUP_NAME_BYTES / 8, name);
			if (strcmp(name, group) == 0)
				atomic_fetch_add(&ledger.file->group[g].limits_gen, 1);
		}
		ledger_close(&ledger);
	}
	if (listing)
		closedir(listing);
}

static int write_whole(const char *dir, const char *path, const struct quota *quota)
{
	char temporary[PATH_MAX], text[LIMITS_BYTES];
	size_t bytes = format(quota, text, sizeof(text));
	int code, fd;

	if (snprintf(temporary, sizeof(temporary), "%s/limits", dir) >= PATH_MAX - 32)
		return -ENAMETOOLONG;
	code = dir_make_shared(temporary);
	if (code != 0 && code != -EEXIST)
		return code;
	code = 0;
	snprintf(temporary + strlen(temporary), 32, "/.%016llx", (unsigned long long)file_noise());
	fd = open(temporary, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, text, bytes) != (ssize_t)bytes || fchmod(fd, 0644) != 0 ||
	    rename(temporary, path) != 0)
		code = errno ? -errno : -ENOSPC;
	close(fd);
	if (code != 0)
		unlink(temporary);
	return code;
}

int limits_write(const char *dir, const char *group, const struct quota *quota, struct error *err)
{
	struct quota before = {0}, after;
	char path[PATH_MAX];
	int saved_errno = errno, code;

	code = limits_path(dir, group, path, err);
	if (code != 0)
		return code;
	code = limits_read(dir, group, geteuid(), &before, NULL);
	if (code != 0)
		memset(&before, 0, sizeof(before));
	after = quota_fill(*quota, before);
	code = write_whole(dir, path, &after);
	if (code != 0)
		error_set(err, code, "%s: %s", path, error_text(code));
	else
		bump(dir, group);
	errno = saved_errno;
	return code;
}
