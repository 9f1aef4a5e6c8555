#include "survivors.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/journal.h"
#include "ledger/ledger.h"

#define SUFFIX ".ledger"

int group_is_job(const char *group, unsigned job)
{
	char name[GROUP_NAME_BYTES];
	size_t length = (size_t)snprintf(name, sizeof(name), "slurm-%u", job);

	return !strncmp(group, name, length) && (!group[length] || group[length] == '.');
}

static int add(struct survivors *list, const struct ledger_view *view, const struct slot_view *slot,
	       const char *group)
{
	struct survivor *more = realloc(list->list, (list->count + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	list->list = more;
	more += list->count++;
	*more = (struct survivor){.pid = slot->pid, .used_bytes = slot->used_bytes};
	snprintf(more->group, sizeof(more->group), "%s", group);
	snprintf(more->uuid, sizeof(more->uuid), "%s", view->uuid);
	snprintf(more->comm, sizeof(more->comm), "%s", slot->comm);
	return 0;
}

static const char *group_of(const struct ledger_view *view, const struct slot_view *slot)
{
	for (unsigned i = 0; i < view->group_count; i++)
		if (view->groups[i].index == slot->group)
			return view->groups[i].name;
	return "";
}

static int read_ledger(const char *dir, const char *uuid, struct survivors *ret, struct error *err)
{
	struct ledger_view *view;
	struct ledger ledger;
	int r;

	if (ledger_open(dir, uuid, &ledger, err) < 0)
		return 0;
	ledger_reap(&ledger);
	view = malloc(sizeof(*view));
	r = view ? 0 : -ENOMEM;
	if (view)
		ledger_view(&ledger, view);
	for (unsigned i = 0; !r && i < view->slot_count; i++) {
		const char *group = group_of(view, &view->slots[i]);

		if (view->slots[i].alive && !strncmp(group, "slurm-", 6))
			r = add(ret, view, &view->slots[i], group);
	}
	free(view);
	ledger_close(&ledger);
	return r;
}

int survivors_find(const char *dir, struct survivors *ret, struct error *err)
{
	DIR *handle = opendir(dir);
	struct dirent *entry;
	int r = 0;

	*ret = (struct survivors){0};
	err->text[0] = '\0';
	if (!handle)
		return errno == ENOENT ? 0
				       : error_set(err, errno, "%s: %s", dir, error_text(errno));
	journal_setup(dir);
	while (!r && (entry = readdir(handle))) {
		size_t length = strlen(entry->d_name), suffix = strlen(SUFFIX);
		char uuid[UUID_TEXT_BYTES];

		if (length <= suffix || length - suffix >= sizeof(uuid) ||
		    strcmp(entry->d_name + length - suffix, SUFFIX) != 0)
			continue;
		snprintf(uuid, sizeof(uuid), "%.*s", (int)(length - suffix), entry->d_name);
		r = read_ledger(dir, uuid, ret, err);
	}
	closedir(handle);
	return r;
}
