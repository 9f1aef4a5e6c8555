/*
 * `cuota status` for people: a line per GPU, a table of its groups, what is not under a quota. Fits
 * 80 columns on a terminal; into a pipe names are never cut.
 */
#include "status.h"

#include <math.h>
#include <string.h>

#include "base/size.h"

#define FIXED_COLUMNS 68 /* all but the group's name */
#define NAME_LEAST    10

struct paint {
	const char *bold, *warn, *off;
};

static struct paint paint_for(FILE *stream)
{
	if (!cli_colour(stream))
		return (struct paint){"", "", ""};
	return (struct paint){"\033[1m", "\033[33m", "\033[0m"};
}

static const char *bytes_text(uint64_t bytes, char buf[16])
{
	return bytes == QUOTA_NONE ? "none" : size_format(bytes, buf, 16);
}

static const char *share_text(double share, char buf[16])
{
	if (isnan(share))
		return "-";
	snprintf(buf, 16, "%.1f", share * 100);
	return buf;
}

static const char *cap_text(uint32_t bp, char buf[16])
{
	if (bp >= QUOTA_SM_NONE || !bp)
		return "none";
	snprintf(buf, 16, bp % 100 ? "%.1f" : "%.0f", (double)bp / 100);
	return buf;
}

static const char *seconds_text(uint64_t ns, char buf[16])
{
	double s = (double)ns / 1e9;

	if (s < 999.95)
		snprintf(buf, 16, "%.1fs", s);
	else if (s < 86400)
		snprintf(buf, 16, "%.1fh", s / 3600);
	else
		snprintf(buf, 16, "%.1fd", s / 86400);
	return buf;
}

static void print_gpu(const struct gpu_state *gpu, struct paint paint)
{
	char used[16], total[16];

	printf("%s", paint.bold);
	if (gpu->index >= 0)
		printf("GPU %d%s  ", gpu->index, gpu->is_mig ? " MIG" : "");
	else
		printf("GPU ?  ");
	printf("%s%s%s%s", gpu->name, gpu->name[0] ? "  " : "", gpu->uuid, paint.off);
	if (gpu->used_bytes != NVML_BYTES_UNKNOWN)
		printf("\n       %s of %s in use", bytes_text(gpu->used_bytes, used),
		       bytes_text(gpu->total_bytes, total));
	else if (gpu->total_bytes)
		printf("\n       %s", bytes_text(gpu->total_bytes, total));
	putchar('\n');
	if (gpu->problem.text[0])
		printf("       %sledger cannot be read: %s%s\n", paint.warn, gpu->problem.text,
		       paint.off);
}

static void print_group(const struct group_state *group, int width, int cut)
{
	const struct group_view *v = group->view;
	char text[8][16];

	printf("%-*.*s %7s %7s %7s %7s %5s %5s %5s %6s %5llu %4u\n", width, cut ? width : 64,
	       v->name, bytes_text(v->used_bytes, text[0]),
	       bytes_text(group->caps.mem_bytes, text[1]), bytes_text(v->peak_bytes, text[2]),
	       bytes_text(group_overhead_bytes(v), text[3]), cap_text(group->caps.sm_bp, text[4]),
	       share_text(group->share, text[5]), share_text(group->share_minute, text[6]),
	       seconds_text(v->throttled_ns, text[7]), (unsigned long long)v->denials, v->members);
}

static void print_members(const struct gpu_state *gpu, const struct group_view *group)
{
	char used[16], busy[16], user[64];

	for (unsigned i = 0; i < gpu->view->slot_count; i++) {
		const struct slot_view *slot = &gpu->view->slots[i];

		if (slot->group != group->index)
			continue;
		printf("  pid %-8u %-16s %-12s %8s  busy %s\n", slot->pid, slot->comm,
		       cli_user(slot->uid, user, sizeof(user)), bytes_text(slot->used_bytes, used),
		       seconds_text(slot->busy_ns, busy));
	}
}

static int name_width(const struct gpu_state *gpu, const struct status_options *options)
{
	int width = NAME_LEAST, room = (int)cli_columns() - FIXED_COLUMNS;

	for (unsigned i = 0; i < gpu->group_count; i++) {
		int length = (int)strlen(gpu->groups[i].view->name);

		if (status_wants_group(options, gpu->groups[i].view) && length > width)
			width = length;
	}
	if (cli_columns() && width > room)
		width = room > NAME_LEAST ? room : NAME_LEAST;
	return width;
}

static void print_groups(const struct gpu_state *gpu, const struct status_options *options,
			 struct paint paint)
{
	int width = name_width(gpu, options), shown = 0;

	for (unsigned i = 0; i < gpu->group_count; i++) {
		if (!status_wants_group(options, gpu->groups[i].view))
			continue;
		if (!shown++)
			printf("%-*s %7s %7s %7s %7s %5s %5s %5s %6s %5s %4s\n", width, "GROUP",
			       "USED", "CAP", "PEAK", "OVERHD", "SM%", "NOW", "1MIN", "WAITED",
			       "DENY", "PROC");
		print_group(&gpu->groups[i], width, cli_columns() != 0);
		if (options->processes)
			print_members(gpu, gpu->groups[i].view);
	}
	if (!shown && !gpu->problem.text[0])
		puts("       no group");
	if (gpu->unattached_count && !options->group_count) {
		char used[16], user[64];

		printf("%snot under a quota:%s\n", paint.warn, paint.off);
		for (unsigned i = 0; i < gpu->unattached_count; i++) {
			const struct unattached *u = &gpu->unattached[i];

			printf("  pid %-8d %-16s %-12s %8s\n", (int)u->process.pid, u->process.comm,
			       cli_user(u->process.uid, user, sizeof(user)),
			       u->used_bytes == NVML_BYTES_UNKNOWN
				       ? "?"
				       : bytes_text(u->used_bytes, used));
		}
	}
	if (gpu->invisible)
		printf("       %u more process%s, not visible from this PID namespace\n",
		       gpu->invisible, gpu->invisible == 1 ? "" : "es");
}

void status_text(const struct snapshot *snapshot, const struct status_options *options)
{
	struct paint paint = paint_for(stdout);
	int shown = 0;

	for (unsigned g = 0; g < snapshot->gpu_count; g++) {
		const struct gpu_state *gpu = &snapshot->gpus[g];

		if (!status_wants_gpu(options, gpu))
			continue;
		if (shown++)
			putchar('\n');
		print_gpu(gpu, paint);
		print_groups(gpu, options, paint);
	}
	if (shown)
		return;
	printf("No GPU and no ledger in %s", snapshot->dirs.path[0]);
	if (snapshot->dirs.count > 1)
		printf(" or %s", snapshot->dirs.path[1]);
	printf(".\n");
	if (snapshot->nvml_problem.text[0])
		printf("(%s)\n", snapshot->nvml_problem.text);
}
