#include "ceiling.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ASIDE  "survivor-"
#define SUFFIX ".conf"

static void print_spec(FILE *file, const char *key, const struct spec *spec)
{
	char text[REQUEST_TEXT_BYTES];

	if (request_text(spec, text))
		fprintf(file, "%s = %s\n", key, text);
}

int ceiling_write(const char *dir, const char *group, const struct request *request,
		  struct error *err)
{
	char path[PATH_MAX], temporary[PATH_MAX];
	FILE *file;
	int r = 0, fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s" SUFFIX, dir, group) >= sizeof(path) ||
	    (size_t)snprintf(temporary, sizeof(temporary), "%s/.%s.%ld", dir, group,
			     (long)getpid()) >= sizeof(temporary))
		return error_set(err, ENAMETOOLONG, "%.128s: path too long", dir);
	fd = open(temporary, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return error_set(err, errno, "%.128s: %s", temporary, error_text(errno));
	fchmod(fd, 0644);
	fprintf(file, "[group %s]\n", group);
	print_spec(file, "mem", &request->mem);
	print_spec(file, "sm", &request->sm);
	if (fclose(file) || rename(temporary, path)) {
		r = error_set(err, errno, "%.128s: %s", path, error_text(errno));
		unlink(temporary);
	}
	return r;
}

static int in_use(const struct survivors *survivors, const char *group)
{
	for (unsigned i = 0; i < survivors->count; i++)
		if (!strcmp(survivors->list[i].group, group))
			return 1;
	return 0;
}

static int older_than_boot(int dir, const char *name)
{
	struct timespec up, now;
	struct stat status;

	clock_gettime(CLOCK_BOOTTIME, &up);
	clock_gettime(CLOCK_REALTIME, &now);
	return !fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) &&
	       status.st_mtime < now.tv_sec - up.tv_sec;
}

/* "slurm-12.0" from "slurm-12.0.conf" or "survivor-slurm-12.0.conf"; 0 for any other file. */
static int parse_name(const char *name, char group[GROUP_NAME_BYTES], int *ret_aside)
{
	size_t length;

	*ret_aside = !strncmp(name, ASIDE, strlen(ASIDE));
	if (*ret_aside)
		name += strlen(ASIDE);
	length = strlen(name);
	if (strncmp(name, "slurm-", 6) != 0 || length <= strlen(SUFFIX) ||
	    strcmp(name + length - strlen(SUFFIX), SUFFIX) != 0 ||
	    length - strlen(SUFFIX) >= GROUP_NAME_BYTES)
		return 0;
	snprintf(group, GROUP_NAME_BYTES, "%.*s", (int)(length - strlen(SUFFIX)), name);
	return 1;
}

void ceiling_remove(const char *dir, unsigned job, const struct survivors *survivors)
{
	DIR *handle = opendir(dir);
	struct dirent *entry;

	while (handle && (entry = readdir(handle))) {
		char group[GROUP_NAME_BYTES],
			aside[sizeof(ASIDE) + GROUP_NAME_BYTES + sizeof(SUFFIX)];
		int fd = dirfd(handle), is_aside;

		if (!parse_name(entry->d_name, group, &is_aside))
			continue;
		if (!is_aside &&
		    !(job ? group_is_job(group, job) : older_than_boot(fd, entry->d_name)))
			continue;
		if (!in_use(survivors, group)) {
			unlinkat(fd, entry->d_name, 0);
		} else if (!is_aside) {
			snprintf(aside, sizeof(aside), ASIDE "%s" SUFFIX, group);
			renameat(fd, entry->d_name, fd, aside);
		}
	}
	if (handle)
		closedir(handle);
}
