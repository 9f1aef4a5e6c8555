/*
 * Finding the policy files, refusing those that somebody else could have written, and merging what
 * their sections say. The parser is policy_parse.c.
 */
#include "base/policy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/policy_parse.h"

#define POLICY_BYTES (64 * 1024) /* of one file */
#define POLICY_FILES 256	 /* in one conf.d */

struct layer {
	enum file_trust trust;
	struct section_list list;
};

struct policy {
	struct layer layers[2]; /* the system's, and the file of CUOTA_CONFIG */
	char warning[256];
};

/* One file below the open directory; `label` is how errors name it. */
static int read_file(int dir_fd, const char *name, const char *label, struct layer *layer,
		     struct error *err)
{
	char *text = NULL;
	size_t length;
	int fd, r;

	fd = file_open_text(dir_fd, name, layer->trust, err);
	if (fd < 0) {
		error_prefix(err, "%s", label);
		return fd;
	}
	text = malloc(POLICY_BYTES + 1);
	if (!text) {
		r = error_set(err, ENOMEM, "%s: %s", label, error_text(ENOMEM));
		goto out;
	}
	r = file_read_text(fd, text, POLICY_BYTES + 1, &length);
	if (r < 0) {
		error_set(err, r, "%s: %s", label,
			  r == -EFBIG ? "larger than 64 KiB" : error_text(r));
		goto out;
	}
	if (strlen(text) != length) {
		r = error_set(err, EINVAL, "%s: not a text: it holds a zero byte", label);
		goto out;
	}
	r = policy_parse(text, &layer->list, err);
	if (r < 0) {
		struct error reason = *err;

		error_set(err, r, "%s:%s", label, reason.text);
	}
out:
	free(text);
	close(fd);
	return r;
}

typedef char file_name[NAME_MAX + 1];

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int is_conf(const char *name)
{
	size_t length = strlen(name);

	return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".conf") == 0;
}

/* The names of the *.conf files, sorted; *ret_names is the caller's to free, on failure too. */
static int list_conf(DIR *dir, file_name **ret_names, size_t *ret_count, struct error *err)
{
	size_t count = 0, room = 0;
	struct dirent *entry;
	file_name *more;

	*ret_names = NULL;
	for (errno = 0; (entry = readdir(dir)) != NULL; errno = 0) {
		if (!is_conf(entry->d_name))
			continue;
		if (count == POLICY_FILES)
			return error_set(err, EFBIG, "more than %d files", POLICY_FILES);
		if (count == room) {
			room = room ? 2 * room : 8;
			more = reallocarray(*ret_names, room, sizeof(**ret_names));
			if (!more)
				return error_set(err, ENOMEM, "%s", error_text(ENOMEM));
			*ret_names = more;
		}
		memcpy((*ret_names)[count++], entry->d_name, strlen(entry->d_name) + 1);
	}
	if (errno)
		return error_set(err, errno, "%s", error_text(errno));
	if (count)
		qsort(*ret_names, count, sizeof(**ret_names), compare_names);
	*ret_count = count;
	return 0;
}

static int read_conf_d(int parent_fd, const char *parent, struct layer *layer, struct error *err)
{
	char label[PATH_MAX + sizeof("/conf.d/") + NAME_MAX];
	file_name *names = NULL;
	size_t count = 0;
	DIR *dir;
	int fd, r;

	fd = file_open_dir(parent_fd, "conf.d", layer->trust, err);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0) {
		error_prefix(err, "%s/conf.d", parent);
		return fd;
	}
	dir = fdopendir(fd);
	if (!dir) {
		r = error_set(err, errno, "%s/conf.d: %s", parent, error_text(errno));
		close(fd);
		return r;
	}
	r = list_conf(dir, &names, &count, err);
	if (r < 0)
		error_prefix(err, "%s/conf.d", parent);
	for (size_t i = 0; r == 0 && i < count; i++) {
		snprintf(label, sizeof(label), "%s/conf.d/%s", parent, names[i]);
		r = read_file(dirfd(dir), names[i], label, layer, err);
	}
	free(names);
	closedir(dir);
	return r;
}

/* "/etc/cuota" from "/etc/cuota/cuota.conf", "." without a slash. */
static int parent_of(const char *path, char parent[PATH_MAX], struct error *err)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;

	if (strlen(path) >= PATH_MAX)
		return error_set(err, ENAMETOOLONG, "path too long");
	if (!slash)
		memcpy(parent, ".", 2);
	else if (!length)
		memcpy(parent, "/", 2);
	else {
		memcpy(parent, path, length);
		parent[length] = '\0';
	}
	return 0;
}

/* The directory is checked only for the system's policy: who can rename there can take a limit
 * away. */
static int read_layer(const char *path, struct layer *layer, struct error *err)
{
	int may_be_missing = layer->trust == FILE_ROOT;
	char parent[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int parent_fd, r;

	if (!*path)
		return 0;
	r = parent_of(path, parent, err);
	if (r < 0)
		return r;
	parent_fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent_fd < 0) {
		if (errno == ENOENT && may_be_missing)
			return 0;
		return error_set(err, errno, "%s: %s", path, error_text(errno));
	}
	r = file_check_dir(parent_fd, may_be_missing ? FILE_ROOT : FILE_ANY, err);
	if (r < 0)
		error_prefix(err, "%s", parent);
	else
		r = read_file(parent_fd, slash ? slash + 1 : path, path, layer, err);
	if (r == -ENOENT && may_be_missing)
		r = 0;
	if (r == 0)
		r = read_conf_d(parent_fd, parent, layer, err);
	close(parent_fd);
	return r;
}

static void note_unknown_names(struct policy *policy)
{
	for (size_t l = 0; l < 2; l++) {
		const struct section_list *list = &policy->layers[l].list;

		for (size_t i = 0; i < list->count; i++) {
			const struct section *section = &list->sections[i];
			int is_user = section->kind == SECTION_USER;

			if (!section->unknown)
				continue;
			snprintf(policy->warning, sizeof(policy->warning),
				 "policy: [%s %s] matches nobody: no such name in %s; write its "
				 "number",
				 is_user ? "user" : "unix-group", section->name,
				 is_user ? "/etc/passwd" : "/etc/group");
			return;
		}
	}
}

int policy_read_from(const char *system_path, const char *path, struct policy **ret,
		     struct error *err)
{
	struct policy *policy = calloc(1, sizeof(*policy));
	struct error ignored;
	int r;

	if (!err)
		err = &ignored;
	if (!policy)
		return error_set(err, ENOMEM, "policy: %s", error_text(ENOMEM));
	policy->layers[0].trust = FILE_ROOT;
	policy->layers[1].trust = FILE_ROOT_OR_CALLER;
	r = read_layer(system_path, &policy->layers[0], err);
	if (r == 0)
		r = read_layer(path, &policy->layers[1], err);
	if (r < 0) {
		policy_free(policy);
		return r;
	}
	err->text[0] = '\0'; /* a policy that may be missing was missing */
	note_unknown_names(policy);
	*ret = policy;
	return 0;
}

int policy_read(const char *path, struct policy **ret, struct error *err)
{
	int is_other = path && strcmp(path, POLICY_PATH) != 0;

	return policy_read_from(POLICY_PATH, is_other ? path : "", ret, err);
}

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	free(policy->layers[0].list.sections);
	free(policy->layers[1].list.sections);
	free(policy);
}

int policy_any(const struct policy *policy)
{
	return policy->layers[0].list.count || policy->layers[1].list.count;
}

const char *policy_warning(const struct policy *policy)
{
	return policy->warning;
}

static int has_gid(const struct policy_subject *who, unsigned gid)
{
	for (size_t i = 0; i < who->gid_count; i++)
		if (who->gids[i] == gid)
			return 1;
	return 0;
}

static int section_matches(const struct section *section, const struct policy_subject *who)
{
	if (section->unknown)
		return 0;
	switch (section->kind) {
	case SECTION_DEFAULT: return 1;
	case SECTION_USER: return section->id == who->uid;
	case SECTION_UNIX_GROUP: return has_gid(who, section->id);
	case SECTION_GROUP: return who->group && strcmp(section->name, who->group) == 0;
	case SECTION_GPU: return spec_uuid_matches(section->name, who->uuid);
	}
	return 0;
}

static struct quota section_quota(const struct section *section, uint64_t device_bytes)
{
	struct quota quota = {
		.mem_bytes = spec_bytes(&section->mem, device_bytes),
		.mem_process_bytes = spec_bytes(&section->mem_process, device_bytes),
		.sm_bp = spec_sm_bp(&section->sm),
		.weight = spec_number(&section->weight),
		.priority = spec_number(&section->priority),
	};

	return quota;
}

static struct quota layer_quota(const struct layer *layer, const struct policy_subject *who)
{
	struct quota specific = {0}, fallback = {0}, group = {0};

	for (size_t i = 0; i < layer->list.count; i++) {
		const struct section *section = &layer->list.sections[i];
		struct quota *into = section->kind == SECTION_DEFAULT ? &fallback
				     : section->kind == SECTION_GROUP ? &group
								      : &specific;

		if (section_matches(section, who))
			*into = quota_strictest(*into, section_quota(section, who->device_bytes));
	}
	return quota_strictest(quota_fill(specific, fallback), group);
}

struct quota policy_quota(const struct policy *policy, const struct policy_subject *who)
{
	return quota_min(layer_quota(&policy->layers[0], who),
			 layer_quota(&policy->layers[1], who));
}
