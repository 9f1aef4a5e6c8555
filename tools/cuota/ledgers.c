/*
 * See ledgers.h. Looks for <dir>/<UUID>.ledger in every directory that may hold ledgers; creates
 * nothing.
 */
#include "ledgers.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX ".ledger"

static int add(struct ledger_list *list, const char *dir, const char *name)
{
	struct ledger_entry *more = realloc(list->entries,
					    (list->count + 1) * sizeof(*list->entries)),
			    *entry;
	int rc;

	if (!more)
		return -ENOMEM;
	list->entries = more;
	entry = &more[list->count++];
	memset(entry, 0, sizeof(*entry));
	if ((size_t)snprintf(entry->path, sizeof(entry->path), "%s/%s", dir, name) >=
	    sizeof(entry->path))
		return error_set(&entry->problem, ENAMETOOLONG, "the path is too long"), 0;
	rc = ledger_open_read(entry->path, &entry->ledger, &entry->problem);
	if (rc && !entry->problem.text[0])
		error_set(&entry->problem, -rc, "%s: %s", entry->path, strerror(-rc));
	return 0;
}

static int read_directory(struct ledger_list *list, const char *dir)
{
	struct dirent *entry;
	DIR *handle = opendir(dir);
	int rc = 0;

	if (!handle)
		return -errno;
	while (!rc && (entry = readdir(handle))) {
		size_t length = strlen(entry->d_name), suffix = strlen(SUFFIX);

		if (entry->d_name[0] != '.' && length > suffix &&
		    !strcmp(entry->d_name + length - suffix, SUFFIX))
			rc = add(list, dir, entry->d_name);
	}
	closedir(handle);
	return rc;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct ledger_entry *)a)->path,
		      ((const struct ledger_entry *)b)->path);
}

int ledgers_open(struct ledger_list *ret, struct error *err)
{
	memset(ret, 0, sizeof(*ret));
	cli_ledger_dirs(&ret->dirs);
	for (unsigned i = 0; i < ret->dirs.count; i++) {
		int rc = read_directory(ret, ret->dirs.path[i]);

		if (!rc || rc == -ENOENT)
			continue;
		ledgers_close(ret);
		return error_set(err, -rc, "cannot read %s: %s", ret->dirs.path[i], strerror(-rc));
	}
	if (ret->count > 1)
		qsort(ret->entries, ret->count, sizeof(*ret->entries), by_path);
	return 0;
}

void ledgers_close(struct ledger_list *list)
{
	for (unsigned i = 0; i < list->count; i++)
		if (!list->entries[i].problem.text[0])
			ledger_close(&list->entries[i].ledger);
	free(list->entries);
	list->entries = NULL;
	list->count = 0;
}
