/*
 * See books.h. A line that does not parse (a full disk cut it, say) is counted and skipped.
 */
#include "books.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/journal.h"

struct reading {
	struct books *books;
	unsigned what;
	double since_s;
	size_t tail_bytes;
	uint32_t owner; /* of the file being read */
};

static uint64_t number(json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static void text(json_t *object, const char *key, char *ret, size_t bytes)
{
	const char *value = json_string_value(json_object_get(object, key));

	snprintf(ret, bytes, "%s", value ? value : "");
}

int books_add_end(struct books *books, const struct end_record *record)
{
	struct end_record *more;

	if (!(books->end_count & (books->end_count + 1))) { /* 0, 1, 3, 7, ...: grow by doubling */
		more = realloc(books->ends, (books->end_count * 2 + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		books->ends = more;
	}
	books->ends[books->end_count++] = *record;
	return 0;
}

static int add_sample(struct books *books, const struct sample *sample)
{
	struct sample *more;

	if (!(books->sample_count & (books->sample_count + 1))) {
		more = realloc(books->samples, (books->sample_count * 2 + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		books->samples = more;
	}
	books->samples[books->sample_count++] = *sample;
	return 0;
}

static int take_end(struct reading *r, json_t *line, double t_s)
{
	struct end_record record = {
		.t_s = t_s,
		.uid = (uint32_t)number(line, "uid"),
		.pid = (uint32_t)number(line, "pid"),
		.alive_s = (double)number(line, "alive_ms") / 1e3,
		.busy_s = (double)number(line, "busy_ns") / 1e9,
		.throttled_s = (double)number(line, "throttled_ns") / 1e9,
		.byte_s = (double)number(line, "byte_s"),
		.device_bytes = number(line, "device_bytes"),
		.peak_bytes = number(line, "peak"),
		.denials = number(line, "denials"),
		.launches = number(line, "launches"),
		.reaped = number(line, "reaped") != 0,
	};

	if (record.uid != r->owner && r->owner && !record.reaped)
		return 1;
	text(line, "gpu", record.gpu, sizeof(record.gpu));
	text(line, "device", record.device, sizeof(record.device));
	text(line, "group", record.group, sizeof(record.group));
	text(line, "comm", record.comm, sizeof(record.comm));
	return books_add_end(r->books, &record);
}

static int take_sample(struct reading *r, json_t *line, double t_s)
{
	json_t *cap = json_object_get(line, "cap"); /* absent = none */
	struct sample sample = {
		.t_s = t_s,
		.uid = (uint32_t)number(line, "uid"),
		.sm_bp = (uint32_t)number(line, "sm_bp"),
		.used_bytes = number(line, "used"),
		.cap_bytes = cap ? number(line, "cap") : QUOTA_NONE,
		.busy_ns = number(line, "busy_ns"),
		.throttled_ns = number(line, "throttled_ns"),
		.denials = number(line, "denials"),
		.created_ns = number(line, "created_ns"),
	};

	if (sample.uid != r->owner && r->owner)
		return 1;
	text(line, "gpu", sample.gpu, sizeof(sample.gpu));
	text(line, "group", sample.group, sizeof(sample.group));
	return add_sample(r->books, &sample);
}

/* 0, 1 = not usable, -ENOMEM. */
static int take_line(struct reading *r, const char *line, size_t length)
{
	json_t *object = json_loadb(line, length, 0, NULL);
	const char *type = json_string_value(json_object_get(object, "type"));
	double t_s = (double)number(object, "t_ms") / 1e3;
	int rc = 1;

	if (type && number(object, "v") == JOURNAL_VERSION) {
		if (t_s < r->since_s)
			rc = 0;
		else if (!strcmp(type, "end"))
			rc = r->what & BOOKS_ENDS ? take_end(r, object, t_s) : 0;
		else if (!strcmp(type, "sample"))
			rc = r->what & BOOKS_SAMPLES ? take_sample(r, object, t_s) : 0;
	}
	json_decref(object);
	return rc;
}

static int take_text(struct reading *r, char *at, int from_middle)
{
	int rc = 0;

	if (from_middle)
		at += strcspn(at, "\n") + 1;
	while (*at && rc >= 0) {
		size_t length = strcspn(at, "\n");

		rc = length ? take_line(r, at, length) : 0;
		if (rc > 0)
			r->books->damaged_lines++;
		at += length + (at[length] == '\n');
	}
	return rc < 0 ? rc : 0;
}

/* The file "u<UID>-..." must belong to that user or to root (who may have put it back from an
 * archive). */
static int trusted(const char *name, const struct stat *st, uint32_t *ret_owner)
{
	char *end;

	*ret_owner = (uint32_t)strtoul(name + 1, &end, 10);
	return S_ISREG(st->st_mode) && *end == '-' && (st->st_uid == *ret_owner || !st->st_uid);
}

static int read_file(struct reading *r, int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), rc = 0;
	struct stat st;
	char *content;
	ssize_t got;
	off_t start;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) || !trusted(name, &st, &r->owner)) {
		r->books->distrusted_files++;
		close(fd);
		return 0;
	}
	start = r->tail_bytes && st.st_size > (off_t)r->tail_bytes
			? st.st_size - (off_t)r->tail_bytes
			: 0;
	content = malloc((size_t)(st.st_size - start) + 1);
	got = content ? pread(fd, content, (size_t)(st.st_size - start), start) : -1;
	close(fd);
	if (!content)
		return -ENOMEM;
	if (got > 0) {
		content[got] = '\0';
		rc = take_text(r, content, start > 0);
	}
	free(content);
	return rc;
}

static int wanted_file(const char *name, unsigned what)
{
	if (name[0] != 'u')
		return 0;
	return ((what & BOOKS_ENDS) && strstr(name, "-ends.jsonl")) ||
	       ((what & BOOKS_SAMPLES) && strstr(name, "-samples.jsonl"));
}

static int read_directory(struct reading *r, const char *dir)
{
	char path[PATH_MAX + 16];
	struct dirent *entry;
	DIR *handle;
	int rc = 0;

	snprintf(path, sizeof(path), "%s/journal", dir);
	handle = opendir(path);
	if (!handle)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	while (!rc && (entry = readdir(handle)))
		if (wanted_file(entry->d_name, r->what))
			rc = read_file(r, dirfd(handle), entry->d_name);
	closedir(handle);
	return rc;
}

static int by_end(const void *a, const void *b)
{
	double x = ((const struct end_record *)a)->t_s, y = ((const struct end_record *)b)->t_s;

	return (x > y) - (x < y);
}

static int by_sample(const void *a, const void *b)
{
	double x = ((const struct sample *)a)->t_s, y = ((const struct sample *)b)->t_s;

	return (x > y) - (x < y);
}

int books_read(const struct cli_dirs *dirs, unsigned what, double since_s, size_t tail_bytes,
	       struct books *ret, struct error *err)
{
	struct reading reading = {ret, what, since_s, tail_bytes, 0};

	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 0; i < dirs->count; i++) {
		int rc = read_directory(&reading, dirs->path[i]);

		if (!rc)
			continue;
		books_free(ret);
		return error_set(err, -rc, "cannot read %s/journal: %s", dirs->path[i],
				 strerror(-rc));
	}
	if (ret->end_count)
		qsort(ret->ends, ret->end_count, sizeof(*ret->ends), by_end);
	if (ret->sample_count)
		qsort(ret->samples, ret->sample_count, sizeof(*ret->samples), by_sample);
	return 0;
}

void books_free(struct books *books)
{
	free(books->ends);
	free(books->samples);
	memset(books, 0, sizeof(*books));
}

double books_share(const struct books *books, const char *gpu, const struct group_view *group,
		   double now_s, uint64_t now_monotonic_ns, double window_s)
{
	double age_s = ((double)now_monotonic_ns - (double)group->created_ns) / 1e9;
	double slack_s = 2 * (double)JOURNAL_SAMPLE_NS / 1e9;

	if (age_s > 0 && age_s <= window_s)
		return age_s < 1 ? NAN : (double)group->busy_ns / 1e9 / age_s;
	for (size_t i = books->sample_count; i-- > 0;) {
		const struct sample *s = &books->samples[i];

		if (now_s - s->t_s > window_s + slack_s)
			break;
		if (now_s - s->t_s < window_s || s->created_ns != group->created_ns ||
		    s->busy_ns > group->busy_ns || strcmp(s->group, group->name) ||
		    strcmp(s->gpu, gpu))
			continue;
		return (double)(group->busy_ns - s->busy_ns) / 1e9 / (now_s - s->t_s);
	}
	return NAN;
}
