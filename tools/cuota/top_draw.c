/*
 * The screen of `cuota top`: a line of summary, each GPU with its groups as bars, the history of the selected
 * group, a line of keys. Works from 40 columns and 8 rows up; what does not fit is cut or scrolled.
 */
#include "top.h"

#include <math.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/size.h"
#include "top_bar.h"

#define GRAPH_LEAST_ROWS 18

struct row {
	const struct gpu_state *gpu;
	const struct group_state *group; /* NULL: the GPU's own line */
	const struct slot_view *slot;	 /* a member of the group */
};

/* ---- rows ------------------------------------------------------------------------------------------- */

static double share_of(const struct group_state *group)
{
	return isnan(group->share) ? 0 : group->share;
}

static enum top_sort sort_now;

static int compare(const void *a, const void *b)
{
	const struct group_state *x = *(const struct group_state *const *)a;
	const struct group_state *y = *(const struct group_state *const *)b;

	if (sort_now == SORT_MEMORY && x->view->used_bytes != y->view->used_bytes)
		return x->view->used_bytes < y->view->used_bytes ? 1 : -1;
	if (sort_now == SORT_SHARE && fabs(share_of(x) - share_of(y)) > 1e-9)
		return share_of(x) < share_of(y) ? 1 : -1;
	return strcmp(x->view->name, y->view->name);
}

static size_t add_members(struct row *rows, const struct gpu_state *gpu,
			  const struct group_state *group)
{
	size_t count = 0;

	for (unsigned i = 0; i < gpu->view->slot_count; i++)
		if (gpu->view->slots[i].group == group->view->index)
			rows[count++] = (struct row){gpu, group, &gpu->view->slots[i]};
	return count;
}

/* Every row in the order shown; freed by the caller. */
static struct row *make_rows(const struct top *top, size_t *ret_count)
{
	size_t most = 0, count = 0;
	struct row *rows;

	for (unsigned g = 0; g < top->now->gpu_count; g++)
		most += 1 + top->now->gpus[g].group_count +
			(top->now->gpus[g].view ? top->now->gpus[g].view->slot_count : 0);
	rows = calloc(most + 1, sizeof(*rows));
	for (unsigned g = 0; rows && g < top->now->gpu_count; g++) {
		const struct gpu_state *gpu = &top->now->gpus[g];
		const struct group_state **order =
			calloc(gpu->group_count + 1, sizeof(struct group_state *));

		rows[count++].gpu = gpu;
		for (unsigned i = 0; order && i < gpu->group_count; i++)
			order[i] = &gpu->groups[i];
		sort_now = top->sort;
		if (order && gpu->group_count)
			qsort(order, gpu->group_count, sizeof(struct group_state *), compare);
		for (unsigned i = 0; order && i < gpu->group_count; i++) {
			rows[count++] = (struct row){gpu, order[i], NULL};
			if (top->processes)
				count += add_members(rows + count, gpu, order[i]);
		}
		free(order);
	}
	*ret_count = rows ? count : 0;
	return rows;
}

static int is_selected(const struct top *top, const struct row *row)
{
	return row->group && !row->slot && !strcmp(row->gpu->uuid, top->gpu) &&
	       !strcmp(row->group->view->name, top->group);
}

void top_select(struct top *top, int by)
{
	size_t count;
	struct row *rows = make_rows(top, &count), *first = NULL, *last = NULL, *chosen = NULL;
	int passed = 0, left = by;

	/* Walk the groups in the wanted direction, from the selected one on. */
	for (size_t i = 0; i < count; i++) {
		struct row *row = &rows[by < 0 ? count - 1 - i : i];

		if (!row->group || row->slot)
			continue;
		if (!first)
			first = row;
		last = row;
		if (passed && left) {
			chosen = row;
			left += by < 0 ? 1 : -1;
		}
		passed |= is_selected(top, row);
	}
	if (!passed)
		chosen = by < 0 ? last : first;
	if (chosen) {
		snprintf(top->gpu, sizeof(top->gpu), "%s", chosen->gpu->uuid);
		snprintf(top->group, sizeof(top->group), "%s", chosen->group->view->name);
	}
	free(rows);
}

static void draw_gpu(int y, const struct gpu_state *gpu)
{
	char title[160], index[16] = "?";
	int half = COLS / 2;

	if (gpu->index >= 0)
		snprintf(index, sizeof(index), "%d", gpu->index);
	snprintf(title, sizeof(title), "GPU %s%s %s %.12s", index, gpu->is_mig ? " MIG" : "",
		 gpu->name, gpu->uuid);
	attron(A_BOLD);
	top_colour(PAIR_TITLE, 1);
	mvaddnstr(y, 0, title, half - 1);
	top_colour(PAIR_TITLE, 0);
	attroff(A_BOLD);
	if (gpu->problem.text[0]) {
		top_colour(PAIR_WARN, 1);
		mvaddnstr(y, half, gpu->problem.text, COLS - half);
		top_colour(PAIR_WARN, 0);
		return;
	}
	if (gpu->used_bytes != NVML_BYTES_UNKNOWN)
		top_memory_bar(y, half, (COLS - half) / 2, gpu->used_bytes, gpu->total_bytes);
	if (gpu->unattached_count) {
		top_colour(PAIR_WARN, 1);
		mvprintw(y, half + (COLS - half) / 2 + 1, "%u without quota",
			 gpu->unattached_count);
		top_colour(PAIR_WARN, 0);
	}
}

static void draw_group(int y, const struct row *row, int selected)
{
	const struct group_view *view = row->group->view;
	int name = COLS / 4 > 12 ? COLS / 4 : 12, tail = COLS >= 70 ? 21 : 0;
	int bars = COLS - name - tail - 3, memory = bars * 55 / 100;
	uint64_t whole = row->group->caps.mem_bytes;

	if (selected)
		attron(A_REVERSE);
	mvprintw(y, 0, "%c%-*.*s", selected ? '>' : ' ', name, name, view->name);
	if (selected)
		attroff(A_REVERSE);
	top_memory_bar(y, name + 2, memory, view->used_bytes,
		       whole == QUOTA_NONE ? row->gpu->total_bytes : whole);
	top_share_bar(y, name + 3 + memory, bars - memory, row->group->share,
		      row->group->caps.sm_bp);
	if (tail)
		mvprintw(y, COLS - tail + 1, "%4u %7.1fs %5llu", view->members,
			 (double)view->throttled_ns / 1e9, (unsigned long long)view->denials);
}

static void draw_member(int y, const struct row *row)
{
	char user[64], used[16];

	mvprintw(y, 3, "%-8u %-16s %-12.12s %9s  busy %.1fs", row->slot->pid, row->slot->comm,
		 cli_user(row->slot->uid, user, sizeof(user)),
		 size_format(row->slot->used_bytes, used, sizeof(used)),
		 (double)row->slot->busy_ns / 1e9);
}

static void draw_rows(struct top *top, int from, int to)
{
	size_t count, chosen = 0;
	struct row *rows = make_rows(top, &count);
	unsigned room = to > from ? (unsigned)(to - from) : 0;

	for (size_t i = 0; i < count; i++)
		if (is_selected(top, &rows[i]))
			chosen = i;
	if (chosen < top->scroll)
		top->scroll = (unsigned)chosen;
	if (room && chosen >= top->scroll + room)
		top->scroll = (unsigned)chosen - room + 1;
	if (count <= room)
		top->scroll = 0;
	for (unsigned i = 0; i < room && top->scroll + i < count; i++) {
		const struct row *row = &rows[top->scroll + i];

		if (!row->group)
			draw_gpu(from + (int)i, row->gpu);
		else if (row->slot)
			draw_member(from + (int)i, row);
		else
			draw_group(from + (int)i, row, is_selected(top, row));
	}
	if (!count)
		mvaddstr(from, 0, "No GPU and no ledger here.");
	free(rows);
}

/* ---- the history ------------------------------------------------------------------------------------ */

static void draw_history(const struct top *top, int y)
{
	const struct history *history = history_of(top->gpu, top->group);
	char title[GROUP_NAME_BYTES + 64];

	if (!history || COLS < 30)
		return;
	snprintf(title, sizeof(title), "SM time: %s", top->group);
	top_graph(top, y, 0, COLS / 2 - 1, title, history->share, history->count, PAIR_GOOD);
	top_graph(top, y, COLS / 2, COLS - COLS / 2, "memory, of its cap", history->used,
		  history->count, PAIR_TITLE);
}

/* ---- all of it -------------------------------------------------------------------------------------- */

static void draw_summary(const struct top *top)
{
	static const char *const orders[SORT_COUNT] = {"name", "memory", "share"};
	time_t when = (time_t)top->now->wall_s;
	unsigned groups = 0, processes = 0;
	char clock[16];
	struct tm local;

	for (unsigned g = 0; g < top->now->gpu_count; g++) {
		groups += top->now->gpus[g].group_count;
		processes += top->now->gpus[g].view ? top->now->gpus[g].view->slot_count : 0;
	}
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&when, &local));
	attron(A_BOLD);
	mvprintw(0, 0, "cuota %s", clock);
	attroff(A_BOLD);
	printw("  %u GPU%s, %u group%s, %u process%s  by %s, every %.1f s%s", top->now->gpu_count,
	       top->now->gpu_count == 1 ? "" : "s", groups, groups == 1 ? "" : "s", processes,
	       processes == 1 ? "" : "es", orders[top->sort], top->delay_s,
	       top->paused ? "  [paused]" : "");
	if (COLS >= 70) {
		attron(A_DIM);
		mvprintw(1, 1, "group");
		mvprintw(1, (COLS / 4 > 12 ? COLS / 4 : 12) + 3, "memory / cap");
		mvprintw(1, COLS - 38, "SM time / cap");
		mvprintw(1, COLS - 20, "%4s %8s %5s", "proc", "waited", "deny");
		attroff(A_DIM);
	}
}

static void draw_keys(void)
{
	static const char *const keys[][2] = {{"F1", "Help"},		{"F5", "Processes"},
					      {"F6", "Sort"},		{"Up/Down", "Select"},
					      {"+/-", "Faster/Slower"}, {"F10", "Quit"}};

	move(LINES - 1, 0);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (getcurx(stdscr) + (int)(strlen(keys[i][0]) + strlen(keys[i][1])) + 1 >= COLS)
			break;
		addstr(keys[i][0]);
		top_colour(PAIR_KEYS, 1);
		addstr(keys[i][1]);
		top_colour(PAIR_KEYS, 0);
		addch(' ');
	}
}

static void draw_help(void)
{
	static const char *const lines[] = {
		"cuota top: groups, their caps and what they get",
		"",
		"Up Down k j      select a group",
		"F5 p             show the processes of each group",
		"F6 s             sort by name, memory or share",
		"+ -              faster, slower",
		"space            pause",
		"F10 q Esc        quit",
		"",
		"A memory bar is full at the group's cap (the device's memory where it has none).",
		"An SM bar is full at the whole device.",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		mvaddnstr(2 + (int)i, 2, lines[i], COLS - 3);
}

void top_draw(struct top *top)
{
	int graph_rows = LINES >= GRAPH_LEAST_ROWS ? GRAPH_ROWS : 0;

	erase();
	if (!top->group[0] || !history_of(top->gpu, top->group) ||
	    !history_of(top->gpu, top->group)->fresh)
		top_select(top, 1);
	draw_summary(top);
	if (top->help) {
		draw_help();
	} else {
		draw_rows(top, 2, LINES - 1 - graph_rows);
		if (graph_rows)
			draw_history(top, LINES - 1 - graph_rows);
	}
	draw_keys();
	refresh();
}
