/*
 * `cuota usage`: the journal added up. usage.c reads options and records, usage_sum.c adds, usage_print.c
 * and usage_html.c show.
 */
#ifndef CUOTA_CLI_USAGE_H
#define CUOTA_CLI_USAGE_H

#include "books.h"

#define USAGE_PRICES 32

enum usage_by { BY_USER, BY_GROUP, BY_JOB, BY_GPU, BY_COMMAND };
enum usage_format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON, FORMAT_HTML };

struct usage_price {
	char model[64]; /* part of the device's name, any case; "*" = every device */
	double per_hour;
};

struct usage_options {
	double since_s, until_s;
	enum usage_by by;
	enum usage_format format;
	unsigned price_count;
	struct usage_price prices[USAGE_PRICES];
};

/* One line of the account. */
struct usage_row {
	char key[GROUP_NAME_BYTES + 64];
	unsigned processes, running;
	double alive_s, busy_s, throttled_s, byte_s;
	double gpu_s; /* what is paid for: of each process the larger of its SM time and its part of the
			 memory over time (docs/accounting.md) */
	double cost; /* NAN when some device has no price */
	uint64_t peak_bytes, denials;
};

struct usage_table {
	size_t count;
	struct usage_row *rows, total;
};

/* Adds the ends of `books` up. -ENOMEM. */
int usage_sum(const struct books *books, const struct usage_options *options,
	      struct usage_table *ret);

const char *usage_by_name(enum usage_by by);

void usage_print_table(const struct usage_table *table, const struct usage_options *options);
void usage_print_csv(const struct usage_table *table, const struct usage_options *options);
int usage_print_json(const struct usage_table *table, const struct usage_options *options);

/* One file with no reference to another, plots included. */
void usage_print_html(const struct usage_table *table, const struct books *books,
		      const struct usage_options *options);

#endif
