/*
 * Adding records up by user, group, job, GPU or command. The price of a record is per GPU-hour of the
 * larger part it took of its device: SM time, or memory over time.
 */
#include "usage.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A job's group is named by the library (base/group_name.c): slurm-JOB, pod-UID, ctr-ID. */
static void job_of(const struct end_record *record, char *ret, size_t bytes)
{
	static const char *const prefixes[] = {"slurm-", "pod-", "ctr-"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		if (!strncmp(record->group, prefixes[i], strlen(prefixes[i]))) {
			snprintf(ret, bytes, "%s", record->group);
			return;
		}
	}
	snprintf(ret, bytes, "-");
}

static void key_of(const struct end_record *record, enum usage_by by, char *ret, size_t bytes)
{
	switch (by) {
	case BY_USER: cli_user(record->uid, ret, bytes); break;
	case BY_GROUP: snprintf(ret, bytes, "%s", record->group); break;
	case BY_JOB: job_of(record, ret, bytes); break;
	case BY_GPU: snprintf(ret, bytes, "%s", record->gpu); break;
	case BY_COMMAND: snprintf(ret, bytes, "%s", record->comm); break;
	}
}

static double price_of(const struct usage_options *options, const char *device)
{
	for (unsigned i = 0; i < options->price_count; i++)
		if (!strcmp(options->prices[i].model, "*") ||
		    strcasestr(device, options->prices[i].model))
			return options->prices[i].per_hour;
	return NAN;
}

static double paid_seconds(const struct end_record *record)
{
	double memory_s = record->device_bytes ? record->byte_s / (double)record->device_bytes : 0;

	return memory_s > record->busy_s ? memory_s : record->busy_s;
}

static void add(struct usage_row *row, const struct end_record *record, double price)
{
	double gpu_s = paid_seconds(record);

	row->processes++;
	row->running += (unsigned)record->running;
	row->alive_s += record->alive_s;
	row->busy_s += record->busy_s;
	row->throttled_s += record->throttled_s;
	row->byte_s += record->byte_s;
	row->gpu_s += gpu_s;
	row->cost += gpu_s > 0 ? price * gpu_s / 3600 : 0; /* NAN stays: an unknown price */
	row->denials += record->denials;
	if (record->peak_bytes > row->peak_bytes)
		row->peak_bytes = record->peak_bytes;
}

static struct usage_row *row_of(struct usage_table *table, const char *key)
{
	struct usage_row *more;

	for (size_t i = 0; i < table->count; i++)
		if (!strcmp(table->rows[i].key, key))
			return &table->rows[i];
	if (!(table->count & (table->count + 1))) {
		more = realloc(table->rows, (table->count * 2 + 1) * sizeof(*more));
		if (!more)
			return NULL;
		table->rows = more;
	}
	memset(&table->rows[table->count], 0, sizeof(*table->rows));
	snprintf(table->rows[table->count].key, sizeof(table->rows[0].key), "%s", key);
	return &table->rows[table->count++];
}

/* Who used most comes first. */
static int by_use(const void *a, const void *b)
{
	const struct usage_row *x = a, *y = b;

	if (x->gpu_s != y->gpu_s)
		return x->gpu_s < y->gpu_s ? 1 : -1;
	return strcmp(x->key, y->key);
}

int usage_sum(const struct books *books, const struct usage_options *options,
	      struct usage_table *ret)
{
	char key[GROUP_NAME_BYTES + 64];

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->total.key, sizeof(ret->total.key), "total");
	for (size_t i = 0; i < books->end_count; i++) {
		const struct end_record *record = &books->ends[i];
		double price = price_of(options, record->device);
		struct usage_row *row;

		key_of(record, options->by, key, sizeof(key));
		row = row_of(ret, key);
		if (!row)
			return -ENOMEM;
		add(row, record, price);
		add(&ret->total, record, price);
	}
	if (ret->count > 1)
		qsort(ret->rows, ret->count, sizeof(*ret->rows), by_use);
	return 0;
}
