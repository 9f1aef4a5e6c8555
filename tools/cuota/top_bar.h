/*
 * The pieces that `cuota top` draws with: colours, bars with text in them, graphs. Positions are those of
 * curses: row, column.
 */
#ifndef CUOTA_CLI_TOP_BAR_H
#define CUOTA_CLI_TOP_BAR_H

#include "top.h"

#define GRAPH_ROWS 7 /* title and six rows */

enum { PAIR_GOOD = 1, PAIR_HIGH, PAIR_FULL, PAIR_TITLE, PAIR_WARN, PAIR_KEYS };

void top_colour(short pair, int on);

/* Used of the whole; QUOTA_NONE or 0 = there is no whole. */
void top_memory_bar(int y, int x, int width, uint64_t used, uint64_t whole);
void top_share_bar(int y, int x, int width, double share, uint32_t cap_bp);

/* The last values, the newest at the right, GRAPH_ROWS high with its title. */
void top_graph(const struct top *top, int y, int x, int width, const char *title,
	       const float *values, unsigned count, short pair);

#endif
