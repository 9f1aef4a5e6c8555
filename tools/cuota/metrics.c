/*
 * `cuota metrics`, and the writer behind it and the exporter. Every metric is a row of metrics.def.
 */
#include "metrics.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "snapshot.h"

#ifndef CUOTA_COMMIT
#define CUOTA_COMMIT "unknown"
#endif

static double limit_or_nan(uint64_t bytes)
{
	return bytes == QUOTA_NONE || !bytes ? NAN : (double)bytes;
}

static double ratio_or_nan(uint32_t bp)
{
	return !bp || bp >= QUOTA_SM_NONE ? NAN : (double)bp / 10000;
}

static double known_or_nan(uint64_t bytes)
{
	return bytes == NVML_BYTES_UNKNOWN ? NAN : (double)bytes;
}

/* Who is unattached is known only where NVML lists the processes. */
static double nvml_or_nan(const struct gpu_state *gpu, double value)
{
	return gpu->index < 0 ? NAN : value;
}

static double unattached_bytes(const struct gpu_state *gpu)
{
	double sum = 0;

	for (unsigned i = 0; i < gpu->unattached_count; i++)
		if (gpu->unattached[i].used_bytes != NVML_BYTES_UNKNOWN)
			sum += (double)gpu->unattached[i].used_bytes;
	return sum;
}

struct metric {
	const char *name, *kind, *unit, *help;
	double (*of_group)(const struct group_state *s);
	double (*of_gpu)(const struct gpu_state *g);
};

#define GROUP_METRIC(name, kind, unit, value, help) \
	static double value_##name(const struct group_state *s) \
	{ \
		return value; \
	}
#define GPU_METRIC(name, kind, unit, value, help) \
	static double value_##name(const struct gpu_state *g) \
	{ \
		return value; \
	}
#include "metrics.def"
#undef GROUP_METRIC
#undef GPU_METRIC

static const struct metric metrics[] = {
#define GROUP_METRIC(name, kind, unit, value, help) {#name, #kind, #unit, help, value_##name, NULL},
#define GPU_METRIC(name, kind, unit, value, help)   {#name, #kind, #unit, help, NULL, value_##name},
#include "metrics.def"
#undef GROUP_METRIC
#undef GPU_METRIC
};

static void write_family(FILE *out, enum metrics_format format, const char *name, const char *kind,
			 const char *unit, const char *help)
{
	size_t length = strlen(name);

	if (format == METRICS_OPENMETRICS && !strcmp(kind, "counter"))
		length -= strlen("_total");
	fprintf(out, "# HELP %.*s %s\n", (int)length, name, help);
	fprintf(out, "# TYPE %.*s %s\n", (int)length, name, kind);
	if (format == METRICS_OPENMETRICS && strcmp(unit, "none"))
		fprintf(out, "# UNIT %.*s %s\n", (int)length, name, unit);
}

static void write_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			fputc('\\', out);
		/* Names come from other processes: nothing but printable ASCII leaves here. */
		fputc(*value < 0x20 || *value > 0x7e ? '?' : *value, out);
	}
	fputc('"', out);
}

static void write_gpu_labels(FILE *out, const struct gpu_state *gpu)
{
	char index[16] = "";

	if (gpu->index >= 0)
		snprintf(index, sizeof(index), "%d", gpu->index);
	fputc('{', out);
	write_label(out, "gpu", index);
	fputc(',', out);
	write_label(out, "uuid", gpu->uuid);
}

static void write_value(FILE *out, double value)
{
	if (value == (double)(int64_t)value)
		fprintf(out, "} %lld\n", (long long)value);
	else
		fprintf(out, "} %.9g\n", value);
}

/* Two directories may hold a ledger of the same GPU; a series must stand only once. */
static int gpu_seen(const struct snapshot *snapshot, unsigned g)
{
	for (unsigned i = 0; i < g; i++)
		if (!strcmp(snapshot->gpus[i].uuid, snapshot->gpus[g].uuid))
			return 1;
	return 0;
}

static int group_seen(const struct snapshot *snapshot, unsigned g, const char *name)
{
	for (unsigned i = 0; i < g; i++) {
		if (strcmp(snapshot->gpus[i].uuid, snapshot->gpus[g].uuid))
			continue;
		for (unsigned n = 0; n < snapshot->gpus[i].group_count; n++)
			if (!strcmp(snapshot->gpus[i].groups[n].view->name, name))
				return 1;
	}
	return 0;
}

static void write_groups(FILE *out, const struct metric *metric, const struct snapshot *snapshot,
			 unsigned g)
{
	const struct gpu_state *gpu = &snapshot->gpus[g];
	char user[64];

	for (unsigned i = 0; i < gpu->group_count; i++) {
		const struct group_state *group = &gpu->groups[i];
		double value = metric->of_group(group);

		if (isnan(value) || group_seen(snapshot, g, group->view->name))
			continue;
		fputs(metric->name, out);
		write_gpu_labels(out, gpu);
		fputc(',', out);
		write_label(out, "group", group->view->name);
		fputc(',', out);
		write_label(out, "user", cli_user(group->view->owner_uid, user, sizeof(user)));
		write_value(out, value);
	}
}

static void write_metric(FILE *out, enum metrics_format format, const struct metric *metric,
			 const struct snapshot *snapshot)
{
	write_family(out, format, metric->name, metric->kind, metric->unit, metric->help);
	for (unsigned g = 0; g < snapshot->gpu_count; g++) {
		double value;

		if (metric->of_group) {
			write_groups(out, metric, snapshot, g);
			continue;
		}
		value = metric->of_gpu(&snapshot->gpus[g]);
		if (isnan(value) || gpu_seen(snapshot, g))
			continue;
		fputs(metric->name, out);
		write_gpu_labels(out, &snapshot->gpus[g]);
		write_value(out, value);
	}
}

static void write_gpu_info(FILE *out, enum metrics_format format, const struct snapshot *snapshot)
{
	write_family(out, format, "cuota_gpu_info", "gauge", "none", "The GPUs; always 1.");
	for (unsigned g = 0; g < snapshot->gpu_count; g++) {
		if (gpu_seen(snapshot, g))
			continue;
		fputs("cuota_gpu_info", out);
		write_gpu_labels(out, &snapshot->gpus[g]);
		fputc(',', out);
		write_label(out, "name", snapshot->gpus[g].name);
		fputc(',', out);
		write_label(out, "driver", snapshot->driver);
		write_value(out, 1);
	}
}

int metrics_write(FILE *out, enum metrics_format format)
{
	static unsigned long long errors; /* of this process */
	uint64_t start_ns = clock_now_ns();
	struct snapshot snapshot = {0};
	int rc = snapshot_read(&snapshot, NULL);

	errors += rc != 0;
	for (unsigned g = 0; g < snapshot.gpu_count; g++)
		errors += snapshot.gpus[g].problem.text[0] != '\0';
	for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++)
		write_metric(out, format, &metrics[i], &snapshot);
	write_gpu_info(out, format, &snapshot);
	write_family(out, format, "cuota_build_info", "gauge", "none", "Version; always 1.");
	fprintf(out, "cuota_build_info{version=\"%s\",commit=\"%s\"} 1\n", CUOTA_VERSION,
		CUOTA_COMMIT);
	write_family(out, format, "cuota_ledger_errors_total", "counter", "none",
		     "Ledgers that could not be read, counted at each scrape.");
	fprintf(out, "cuota_ledger_errors_total %llu\n", errors);
	write_family(out, format, "cuota_scrape_duration_seconds", "gauge", "seconds",
		     "Time this answer took to gather.");
	fprintf(out, "cuota_scrape_duration_seconds %.6f\n",
		(double)(clock_now_ns() - start_ns) / 1e9);
	if (format == METRICS_OPENMETRICS)
		fputs("# EOF\n", out);
	snapshot_free(&snapshot);
	return rc;
}

static const struct argp_option options[] = {
	{"openmetrics", 'o', NULL, 0, "OpenMetrics 1.0 instead of the text format 0.0.4", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	enum metrics_format *format = state->input;

	if (key == 'o') {
		*format = METRICS_OPENMETRICS;
		return 0;
	}
	if (key == ARGP_KEY_ARG)
		argp_error(state, "'%s' is no option", arg);
	return ARGP_ERR_UNKNOWN;
}

int command_metrics(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Prints the metrics once, for node_exporter's textfile collector.",
	};
	enum metrics_format format = METRICS_TEXT;
	int rc;

	cli_parse(&argp, argc, argv, CLI_USAGE, &format);
	rc = metrics_write(stdout, format);
	nvml_close();
	if (rc)
		cli_error("cannot read the ledgers: %s", strerror(-rc));
	return cli_finish(rc ? CLI_FAILED : CLI_OK);
}
