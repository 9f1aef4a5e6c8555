/*
 * `cuota usage`: who used how much of the GPUs, from the journal and, for what still runs, the ledgers.
 */
#include "usage.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ledger/journal.h"
#include "snapshot.h"

static const char *const by_names[] = {"user", "group", "job", "gpu", "command"};
static const char *const format_names[] = {"table", "csv", "json", "html"};

static const struct argp_option options[] = {
	{"since", 's', "TIME", 0, "from then on: 7d (default), 12h, 2026-11-30, 2026-11-30T08:00",
	 0},
	{"until", 'u', "TIME", 0, "until then (default: now)", 0},
	{"by", 'b', "WHAT", 0, "a line for each user (default), group, job, gpu or command", 0},
	{"price", 'p', "MODEL=N", 0,
	 "price of a GPU-hour, by part of the device's name: H200=2.5; '*=1' for all others", 0},
	{"format", 'f', "FORMAT", 0, "table (default), csv, json or html", 0},
	{0},
};

static int find_name(const char *const *names, unsigned count, const char *text)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(names[i], text))
			return (int)i;
	return -1;
}

const char *usage_by_name(enum usage_by by)
{
	return by_names[by];
}

static int parse_time(const char *text, double now_s, double *ret_s)
{
	static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M",
					    "%Y-%m-%d"};
	double ago_s;

	if (!cli_duration(text, &ago_s, NULL)) {
		*ret_s = now_s - ago_s;
		return 0;
	}
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct tm local = {.tm_isdst = -1};
		const char *end = strptime(text, forms[i], &local);

		struct tm written = local;

		if (!end || *end)
			continue;
		*ret_s = (double)mktime(&local);
		/* It would make the 2nd of March of a 30th of February. */
		return local.tm_mday == written.tm_mday ? 0 : -EINVAL;
	}
	return -EINVAL;
}

static int parse_price(const char *text, struct usage_options *in)
{
	for (;; text++) {
		struct usage_price *price = &in->prices[in->price_count];
		size_t length = strcspn(text, ","), model = length;
		char *end;

		while (model && text[model - 1] != '=')
			model--;
		if (model < 2 || model > sizeof(price->model) || in->price_count == USAGE_PRICES)
			return -EINVAL;
		snprintf(price->model, sizeof(price->model), "%.*s", (int)model - 1, text);
		price->per_hour = strtod(text + model, &end);
		if (model == length || end != text + length || !(price->per_hour >= 0) ||
		    isinf(price->per_hour))
			return -EINVAL;
		in->price_count++;
		text += length;
		if (!*text)
			return 0;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct usage_options *in = state->input;
	double now_s = (double)time(NULL);
	int found;

	switch (key) {
	case 's':
		if (parse_time(arg, now_s, &in->since_s))
			argp_error(state, "--since '%s': write 7d, 12h or 2026-11-30", arg);
		return 0;
	case 'u':
		if (parse_time(arg, now_s, &in->until_s))
			argp_error(state, "--until '%s': write 7d, 12h or 2026-11-30", arg);
		return 0;
	case 'b':
		found = find_name(by_names, sizeof(by_names) / sizeof(*by_names), arg);
		if (found < 0)
			argp_error(state, "--by '%s': write user, group, job, gpu or command", arg);
		in->by = (enum usage_by)found;
		return 0;
	case 'f':
		found = find_name(format_names, sizeof(format_names) / sizeof(*format_names), arg);
		if (found < 0)
			argp_error(state, "--format '%s': write table, csv, json or html", arg);
		in->format = (enum usage_format)found;
		return 0;
	case 'p':
		if (parse_price(arg, in))
			argp_error(state, "--price '%s': write MODEL=NUMBER, as H200=2.5", arg);
		return 0;
	case ARGP_KEY_ARG: argp_error(state, "'%s' is no option", arg); return 0;
	case ARGP_KEY_END:
		if (in->since_s > in->until_s)
			argp_error(state, "--since is after --until");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static void running_record(const struct gpu_state *gpu, const struct slot_view *slot,
			   const struct snapshot *snapshot, struct end_record *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->t_s = snapshot->wall_s;
	snprintf(ret->gpu, sizeof(ret->gpu), "%s", gpu->uuid);
	snprintf(ret->device, sizeof(ret->device), "%.63s", gpu->name);
	snprintf(ret->comm, sizeof(ret->comm), "%s", slot->comm);
	ret->uid = slot->uid;
	ret->pid = slot->pid;
	ret->alive_s = ((double)snapshot->monotonic_ns - (double)slot->start_ns) / 1e9;
	ret->busy_s = (double)slot->busy_ns / 1e9;
	ret->throttled_s = (double)slot->throttled_ns / 1e9;
	ret->device_bytes = gpu->total_bytes;
	ret->peak_bytes = slot->peak_bytes;
	ret->denials = slot->denials;
	ret->launches = slot->launches;
	ret->running = 1;
	for (unsigned i = 0; i < gpu->group_count; i++)
		if (gpu->groups[i].view->index == slot->group)
			snprintf(ret->group, sizeof(ret->group), "%s", gpu->groups[i].view->name);
}

/* What has not ended counts up to now. */
static int add_running(const struct snapshot *snapshot, struct books *books)
{
	struct end_record record;
	int rc = 0;

	for (unsigned g = 0; g < snapshot->gpu_count; g++) {
		const struct gpu_state *gpu = &snapshot->gpus[g];

		for (unsigned i = 0; !rc && gpu->view && i < gpu->view->slot_count; i++) {
			running_record(gpu, &gpu->view->slots[i], snapshot, &record);
			rc = books_add_end(books, &record);
		}
	}
	return rc;
}

/* The model of a GPU that is still here, for records that do not tell it. */
static void name_devices(const struct snapshot *snapshot, struct books *books)
{
	for (size_t i = 0; i < books->end_count; i++) {
		struct end_record *record = &books->ends[i];

		for (unsigned g = 0; !record->device[0] && g < snapshot->gpu_count; g++)
			if (!strcmp(snapshot->gpus[g].uuid, record->gpu))
				snprintf(record->device, sizeof(record->device), "%.63s",
					 snapshot->gpus[g].name);
	}
}

/* Drops what ended after the period. */
static void cut(struct books *books, double until_s)
{
	size_t kept = 0;

	for (size_t i = 0; i < books->end_count; i++)
		if (books->ends[i].t_s <= until_s)
			books->ends[kept++] = books->ends[i];
	books->end_count = kept;
	kept = 0;
	for (size_t i = 0; i < books->sample_count; i++)
		if (books->samples[i].t_s <= until_s)
			books->samples[kept++] = books->samples[i];
	books->sample_count = kept;
}

/*
 * Who was killed left no record yet, unless somebody has taken the slot back since. Where we may write the
 * ledgers we do that first; where not, those records come later.
 */
static void take_back_dead(void)
{
	struct ledger_list list;

	if (ledgers_open(&list, NULL))
		return;
	for (unsigned i = 0; i < list.count; i++) {
		const char *slash = strrchr(list.entries[i].path, '/');
		struct ledger ledger;
		char dir[PATH_MAX];

		if (list.entries[i].problem.text[0])
			continue;
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - list.entries[i].path),
			 list.entries[i].path);
		if (ledger_open(dir, list.entries[i].ledger.uuid, &ledger, NULL))
			continue;
		journal_setup(dir);
		ledger_reap(&ledger);
		ledger_close(&ledger);
	}
	ledgers_close(&list);
}

static int read_all(const struct usage_options *in, struct books *books)
{
	struct snapshot snapshot;
	struct error err = {""};
	int rc;

	take_back_dead();
	rc = snapshot_read(&snapshot, &err);

	if (!rc) {
		rc = books_read(&snapshot.dirs, BOOKS_ENDS | BOOKS_SAMPLES, in->since_s, 0, books,
				&err);
		if (!rc && in->until_s >= snapshot.wall_s)
			rc = add_running(&snapshot, books);
		name_devices(&snapshot, books);
		snapshot_free(&snapshot);
		nvml_close();
	}
	if (rc) {
		cli_error("%s", err.text[0] ? err.text : strerror(-rc));
		return rc;
	}
	cut(books, in->until_s);
	if (books->damaged_lines)
		cli_error("note: %u damaged records left out", books->damaged_lines);
	if (books->distrusted_files)
		cli_error("note: %u journal files left out: not their user's own",
			  books->distrusted_files);
	return 0;
}

static int show(const struct usage_table *table, const struct books *books,
		const struct usage_options *in)
{
	switch (in->format) {
	case FORMAT_TABLE: usage_print_table(table, in); return 0;
	case FORMAT_CSV: usage_print_csv(table, in); return 0;
	case FORMAT_JSON: return usage_print_json(table, in);
	default: usage_print_html(table, books, in); return 0;
	}
}

int command_usage(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Adds up what processes under a quota used. A process counts as a whole in "
		       "the "
		       "period in which it ended, or runs.",
	};
	struct usage_options in = {.since_s = (double)time(NULL) - 7 * 86400, .until_s = INFINITY};
	struct usage_table table = {0};
	struct books books = {0};
	int rc;

	cli_parse(&argp, argc, argv, CLI_USAGE, &in);
	rc = read_all(&in, &books);
	if (!rc)
		rc = usage_sum(&books, &in, &table);
	if (!rc)
		rc = show(&table, &books, &in);
	free(table.rows);
	books_free(&books);
	return cli_finish(rc ? CLI_FAILED : CLI_OK);
}
