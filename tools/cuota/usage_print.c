/*
 * `cuota usage` as a table, CSV (RFC 4180, with a header) and JSON (docs/accounting.md names the fields).
 */
#include "usage.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/size.h"

static const char *duration_text(double s, char buf[16])
{
	if (s < 100)
		snprintf(buf, 16, "%.1fs", s);
	else if (s < 6000)
		snprintf(buf, 16, "%.1fm", s / 60);
	else
		snprintf(buf, 16, "%.1fh", s / 3600);
	return buf;
}

static const char *cost_text(double cost, char buf[16])
{
	if (isnan(cost))
		return "-";
	snprintf(buf, 16, "%.2f", cost);
	return buf;
}

static void print_row(const struct usage_row *row, int width, int priced)
{
	char text[7][16];

	printf("%-*s %5u %8s %8s %8s %8s %9.1f %6llu", width, row->key, row->processes,
	       duration_text(row->alive_s, text[0]), duration_text(row->busy_s, text[1]),
	       duration_text(row->gpu_s, text[2]), duration_text(row->throttled_s, text[3]),
	       row->byte_s / 3600 / (double)(1ull << 30), (unsigned long long)row->denials);
	printf(" %8s", size_format(row->peak_bytes, text[4], 16));
	if (priced)
		printf(" %9s", cost_text(row->cost, text[5]));
	putchar('\n');
}

void usage_print_table(const struct usage_table *table, const struct usage_options *options)
{
	int width = 10, priced = options->price_count > 0;

	if (!table->count) {
		puts("No process under a quota in this period.");
		return;
	}
	for (size_t i = 0; i < table->count; i++)
		if ((int)strlen(table->rows[i].key) > width)
			width = (int)strlen(table->rows[i].key);
	printf("%-*s %5s %8s %8s %8s %8s %9s %6s %8s%s\n", width, usage_by_name(options->by),
	       "PROCS", "ALIVE", "SM-TIME", "GPU-TIME", "WAITED", "GIB-HOURS", "DENIED", "PEAK",
	       priced ? "      COST" : "");
	for (size_t i = 0; i < table->count; i++)
		print_row(&table->rows[i], width, priced);
	if (table->count > 1)
		print_row(&table->total, width, priced);
}

static void csv_text(const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (; *text; text++) {
		if (*text == '"')
			putchar('"');
		putchar(*text);
	}
	putchar('"');
}

void usage_print_csv(const struct usage_table *table, const struct usage_options *options)
{
	printf("%s,processes,running,alive_seconds,sm_seconds,gpu_seconds,throttled_seconds,"
	       "byte_seconds,peak_bytes,denials,cost\r\n",
	       usage_by_name(options->by));
	for (size_t i = 0; i < table->count; i++) {
		const struct usage_row *row = &table->rows[i];

		csv_text(row->key);
		printf(",%u,%u,%.3f,%.3f,%.3f,%.3f,%.0f,%llu,%llu,", row->processes, row->running,
		       row->alive_s, row->busy_s, row->gpu_s, row->throttled_s, row->byte_s,
		       (unsigned long long)row->peak_bytes, (unsigned long long)row->denials);
		if (options->price_count && !isnan(row->cost))
			printf("%.4f", row->cost);
		fputs("\r\n", stdout);
	}
}

static json_t *row_object(const struct usage_row *row, const struct usage_options *options)
{
	int has_cost = options->price_count && !isnan(row->cost);

	return json_pack("{s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:o}",
			 usage_by_name(options->by), row->key, "processes", (int)row->processes,
			 "running", (int)row->running, "alive_seconds", row->alive_s, "sm_seconds",
			 row->busy_s, "gpu_seconds", row->gpu_s, "throttled_seconds",
			 row->throttled_s, "byte_seconds", row->byte_s, "peak_bytes",
			 (json_int_t)row->peak_bytes, "denials", (json_int_t)row->denials, "cost",
			 has_cost ? json_real(row->cost) : json_null());
}

int usage_print_json(const struct usage_table *table, const struct usage_options *options)
{
	json_t *rows = json_array(), *root;
	int rc;

	for (size_t i = 0; i < table->count; i++)
		json_array_append_new(rows, row_object(&table->rows[i], options));
	root = json_pack("{s:s, s:i, s:s, s:f, s:o, s:o}", "schema", "cuota.usage", "version", 1,
			 "by", usage_by_name(options->by), "since", options->since_s, "rows", rows,
			 "total", row_object(&table->total, options));
	rc = root ? json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : -1;
	putchar('\n');
	json_decref(root);
	return rc && !ferror(stdout) ? -ENOMEM : 0;
}
