/*
 * See top_bar.h.
 */
#include "top_bar.h"

#include <math.h>
#include <ncurses.h>
#include <string.h>
#include <wchar.h>

#include "base/size.h"

static int has_colour;

void top_draw_setup(int colour)
{
	has_colour = colour && has_colors();
	if (!has_colour)
		return;
	start_color();
	use_default_colors();
	init_pair(PAIR_GOOD, COLOR_GREEN, -1);
	init_pair(PAIR_HIGH, COLOR_YELLOW, -1);
	init_pair(PAIR_FULL, COLOR_RED, -1);
	init_pair(PAIR_TITLE, COLOR_CYAN, -1);
	init_pair(PAIR_WARN, COLOR_YELLOW, -1);
	init_pair(PAIR_KEYS, COLOR_BLACK, COLOR_CYAN);
}

void top_colour(short pair, int on)
{
	attr_t attribute = has_colour ? COLOR_PAIR(pair) : pair == PAIR_KEYS ? A_REVERSE : A_NORMAL;

	if (on)
		attron(attribute);
	else
		attroff(attribute);
}

/* "[|||||     1.9GiB/2.0GiB]": filled to `part`, the text inside at the right. */
static void bar(int y, int x, int width, double part, const char *text)
{
	int inside = width - 2, filled, length = (int)strlen(text);
	short pair = part < 0.75 ? PAIR_GOOD : part < 0.95 ? PAIR_HIGH : PAIR_FULL;

	if (inside < 4)
		return;
	if (length > inside)
		length = inside;
	part = isnan(part) || part < 0 ? 0 : part > 1 ? 1 : part;
	filled = (int)(part * inside + 0.5);
	mvaddch(y, x, '[');
	top_colour(pair, 1);
	for (int i = 0; i < inside; i++) {
		int at = i - inside + length; /* place in the text, which stands over the bar */
		chtype c = at >= 0 ? (chtype)text[at] : i < filled ? '|' : ' ';

		mvaddch(y, x + 1 + i, at >= 0 && i < filled ? c | A_REVERSE : c);
	}
	top_colour(pair, 0);
	mvaddch(y, x + width - 1, ']');
}

void top_memory_bar(int y, int x, int width, uint64_t used, uint64_t whole)
{
	char a[16], b[16], text[40];

	if (whole && whole != QUOTA_NONE)
		snprintf(text, sizeof(text), "%s/%s", size_format(used, a, 16),
			 size_format(whole, b, 16));
	else
		snprintf(text, sizeof(text), "%s", size_format(used, a, 16));
	bar(y, x, width, whole && whole != QUOTA_NONE ? (double)used / (double)whole : 0, text);
}

void top_share_bar(int y, int x, int width, double share, uint32_t cap_bp)
{
	char text[40];

	if (isnan(share))
		snprintf(text, sizeof(text), "-");
	else if (cap_bp && cap_bp < QUOTA_SM_NONE)
		snprintf(text, sizeof(text), "%.1f/%g%%", share * 100, (double)cap_bp / 100);
	else
		snprintf(text, sizeof(text), "%.1f%%", share * 100);
	bar(y, x, width, share, text);
}

/* One column of a graph of `rows` rows from its lower end, eight steps a row where Unicode may be shown. */
static void column(const struct top *top, int x, int bottom, int rows, float value)
{
	int steps = value <= 0 ? 0 : (int)(value * (float)(rows * 8) + 0.5f);

	if (value > 0 && !steps)
		steps = 1;
	if (steps > rows * 8)
		steps = rows * 8;
	for (int r = 0; r < rows && steps > 0; r++, steps -= 8) {
		int eighths = steps > 8 ? 8 : steps;
		wchar_t block[2] = {(wchar_t)(0x2580 + eighths), 0};

		if (top->unicode)
			mvaddwstr(bottom - r, x, block);
		else
			mvaddch(bottom - r, x, eighths > 4 ? '#' : '.');
	}
}

void top_graph(const struct top *top, int y, int x, int width, const char *title,
	       const float *values, unsigned count, short pair)
{
	int rows = GRAPH_ROWS - 1;
	unsigned shown = count < (unsigned)width - 5 ? count : (unsigned)width - 5;

	mvprintw(y, x, "%-.*s", width - 1, title);
	mvaddstr(y + 1, x, "100%");
	mvaddstr(y + 1 + rows / 2, x, " 50%"); /* its upper edge */
	top_colour(pair, 1);
	for (unsigned i = 0; i < shown; i++)
		column(top, x + width - 1 - (int)i, y + rows, rows, values[count - 1 - i]);
	top_colour(pair, 0);
}
