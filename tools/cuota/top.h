/*
 * `cuota top`: top.c reads keys and takes snapshots, top_history.c remembers, top_draw.c draws. One thread.
 */
#ifndef CUOTA_CLI_TOP_H
#define CUOTA_CLI_TOP_H

#include "snapshot.h"

#define HISTORY_LENGTH 512
#define HISTORY_GROUPS 256

/* What one group did, a value per snapshot; the newest last. */
struct history {
	char gpu[UUID_TEXT_BYTES], group[GROUP_NAME_BYTES];
	unsigned count;
	float share[HISTORY_LENGTH]; /* 0..1; negative = unknown */
	float used[HISTORY_LENGTH];  /* of the cap, or of the device where there is none; 0..1 */
	int fresh;		     /* seen in the last snapshot */
};

void history_add(const struct snapshot *snapshot);
/* NULL when the group is not known. */
const struct history *history_of(const char *gpu, const char *group);

enum top_sort { SORT_NAME, SORT_MEMORY, SORT_SHARE, SORT_COUNT };

struct top {
	const struct snapshot *now;
	double delay_s;
	enum top_sort sort;
	int processes, help, paused;
	char gpu[UUID_TEXT_BYTES], group[GROUP_NAME_BYTES]; /* the selected one */
	unsigned scroll;
	int unicode; /* the terminal shows block characters */
};

/* Once after initscr: colour pairs. */
void top_draw_setup(int colour);

/* Draws everything; moves the selection onto a group that exists. */
void top_draw(struct top *top);

/* Moves the selection by so many groups in the order shown. */
void top_select(struct top *top, int by);

#endif
