/*
 * `cuota usage --format html`: one file that shows the account and, from the samples, memory and share over
 * time for each GPU. Nothing is loaded from elsewhere and no script runs.
 */
#include "usage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/size.h"
#include "plot.h"

#define LINES_MAX 40   /* groups in one plot; the rest is told in words */
#define GAP_S	  60.0 /* no sample for so long: the group was not there */
#define GIB	  (double)(1ull << 30)

struct line_key {
	const char *group;
	double largest;
};

static const char style[] =
	"body{font:15px/1.45 system-ui,sans-serif;color:#222;background:#fff;max-width:960px;"
	"margin:2em auto;padding:0 1em}h1{font-size:1.5em}h2{font-size:1.15em;margin:1.6em 0 .3em}"
	"table{border-collapse:collapse;width:100%}td,th{padding:.3em .6em;text-align:right;"
	"border-bottom:1px solid "
	"#ddd}td:first-child,th:first-child{text-align:left;word-break:break-all}"
	"tr.total{font-weight:600}svg{width:100%;height:auto}.g{stroke:#ddd}.t{font-size:12px;fill:"
	"#555}"
	".k{display:inline-block;margin-right:1.2em}.k "
	"i{display:inline-block;width:1.1em;height:.7em;"
	"margin-right:.35em;border-radius:2px}p.n{color:#555}"
	"@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}td,th{border-color:#"
	"3a3a3a}"
	".g{stroke:#3a3a3a}.t,p.n{fill:#aaa;color:#aaa}}";

static void print_when(double t_s)
{
	time_t when = (time_t)t_s;
	char text[64];
	struct tm local;

	strftime(text, sizeof(text), "%Y-%m-%d %H:%M", localtime_r(&when, &local));
	fputs(text, stdout);
}

static void print_row(const struct usage_row *row, const struct usage_options *options,
		      const char *class)
{
	char peak[16];

	printf("<tr%s><td>", class);
	html_text(row->key);
	printf("</td><td>%u</td><td>%.2f</td><td>%.2f</td><td>%.1f</td><td>%s</td><td>%.1f</"
	       "td><td>%llu</td>",
	       row->processes, row->busy_s / 3600, row->gpu_s / 3600, row->byte_s / 3600 / GIB,
	       size_format(row->peak_bytes, peak, sizeof(peak)), row->throttled_s,
	       (unsigned long long)row->denials);
	if (options->price_count && isnan(row->cost))
		fputs("<td>-</td>", stdout);
	else if (options->price_count)
		printf("<td>%.2f</td>", row->cost);
	puts("</tr>");
}

static void print_account(const struct usage_table *table, const struct usage_options *options)
{
	printf("<table><tr><th>%s</th><th>processes</th><th>SM hours</th><th>GPU hours</th>"
	       "<th>GiB hours</th><th>peak</th><th>waited, s</th><th>denied</th>%s</tr>\n",
	       usage_by_name(options->by), options->price_count ? "<th>cost</th>" : "");
	for (size_t i = 0; i < table->count; i++)
		print_row(&table->rows[i], options, "");
	if (table->count != 1)
		print_row(&table->total, options, " class=\"total\"");
	puts("</table>");
}

/* ---- plots ------------------------------------------------------------------------------------------ */

/* The points of one group on one GPU; what = 0 memory in GiB, 1 its cap, 2 share in percent. */
static size_t points_of(const struct books *books, const char *gpu, const char *group, int what,
			struct plot_point *ret)
{
	const struct sample *last = NULL;
	size_t count = 0;

	for (size_t i = 0; i < books->sample_count; i++) {
		const struct sample *s = &books->samples[i];
		double value = NAN;
		int follows;

		if (strcmp(s->gpu, gpu) || strcmp(s->group, group))
			continue;
		follows = last && s->t_s - last->t_s <= GAP_S &&
			  s->created_ns == last->created_ns && s->busy_ns >= last->busy_ns;
		if (what == 0)
			value = (double)s->used_bytes / GIB;
		else if (what == 1 && s->cap_bytes != QUOTA_NONE)
			value = (double)s->cap_bytes / GIB;
		else if (what == 2 && follows && s->t_s > last->t_s)
			value = (double)(s->busy_ns - last->busy_ns) / 1e7 / (s->t_s - last->t_s);
		if (last && !follows) {
			ret[count].t_s = s->t_s;
			ret[count++].value = NAN;
		}
		ret[count].t_s = s->t_s;
		ret[count++].value = value;
		last = s;
	}
	return count;
}

static unsigned groups_of(const struct books *books, const char *gpu, struct line_key *ret,
			  unsigned *ret_left_out)
{
	unsigned count = 0;

	*ret_left_out = 0;
	for (size_t i = 0; i < books->sample_count; i++) {
		const struct sample *s = &books->samples[i];
		unsigned n;

		if (strcmp(s->gpu, gpu))
			continue;
		for (n = 0; n < count && strcmp(ret[n].group, s->group); n++)
			;
		if (n == LINES_MAX) {
			*ret_left_out = 1;
			continue;
		}
		if (n == count)
			ret[count++] = (struct line_key){s->group, 0};
		if ((double)s->used_bytes > ret[n].largest)
			ret[n].largest = (double)s->used_bytes;
	}
	return count;
}

static void print_key(const struct line_key *groups, unsigned count)
{
	puts("<p>");
	for (unsigned n = 0; n < count; n++) {
		printf("<span class=\"k\"><i style=\"background:%s\"></i>", plot_colour(n));
		html_text(groups[n].group);
		puts("</span>");
	}
	puts("</p>");
}

static void print_panel(const struct books *books, const char *gpu, const struct line_key *groups,
			unsigned count, int share, struct plot_point *room)
{
	struct plot plot = {
		.from_s = books->samples[0].t_s,
		.to_s = books->samples[books->sample_count - 1].t_s,
		.top = 100,
		.unit = share ? " %" : " GiB",
	};
	double largest = 0;

	for (unsigned n = 0; n < count && !share; n++) {
		size_t caps = points_of(books, gpu, groups[n].group, 1, room);

		for (size_t i = 0; i < caps; i++)
			if (room[i].value > largest)
				largest = room[i].value;
		if (groups[n].largest / GIB > largest)
			largest = groups[n].largest / GIB;
	}
	if (!share)
		plot.top = plot_top(largest);
	plot_begin(&plot, share ? "share of SM time" : "memory in use");
	for (unsigned n = 0; n < count; n++) {
		size_t points = points_of(books, gpu, groups[n].group, share ? 2 : 0, room);

		plot_line(&plot, room, points, n, 0, groups[n].group);
		if (share)
			continue;
		points = points_of(books, gpu, groups[n].group, 1, room);
		plot_line(&plot, room, points, n, 1, "cap");
	}
	plot_end();
}

static void print_gpu(const struct books *books, const char *gpu, struct plot_point *room)
{
	struct line_key groups[LINES_MAX] = {0};
	unsigned left_out, count = groups_of(books, gpu, groups, &left_out);

	fputs("<h2>", stdout);
	html_text(gpu);
	puts("</h2>");
	print_key(groups, count);
	puts("<p class=\"n\">Memory in use (dashed: the cap)</p>");
	print_panel(books, gpu, groups, count, 0, room);
	puts("<p class=\"n\">Share of SM time</p>");
	print_panel(books, gpu, groups, count, 1, room);
	if (left_out)
		printf("<p class=\"n\">Only the first %d groups are drawn.</p>\n", LINES_MAX);
}

static void print_plots(const struct books *books)
{
	struct plot_point *room = calloc(2 * books->sample_count + 2, sizeof(*room));

	for (size_t i = 0; room && i < books->sample_count; i++) {
		size_t earlier = 0;

		while (earlier < i && strcmp(books->samples[earlier].gpu, books->samples[i].gpu))
			earlier++;
		if (earlier == i)
			print_gpu(books, books->samples[i].gpu, room);
	}
	free(room);
}

void usage_print_html(const struct usage_table *table, const struct books *books,
		      const struct usage_options *options)
{
	double until = isinf(options->until_s) ? (double)time(NULL) : options->until_s;

	printf("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	       "<meta name=\"viewport\" content=\"width=device-width\">\n"
	       "<title>GPU usage</title><style>%s</style></head><body>\n<h1>GPU usage</h1>\n<p>",
	       style);
	print_when(options->since_s);
	fputs(" to ", stdout);
	print_when(until);
	puts("</p>");
	print_account(table, options);
	puts("<p class=\"n\">SM hours: time the device worked for them. GPU hours: the larger of "
	     "that and "
	     "their part of the memory over time.</p>");
	if (books->sample_count)
		print_plots(books);
	printf("<p class=\"n\">cuota %s</p></body></html>\n", CUOTA_VERSION);
}
