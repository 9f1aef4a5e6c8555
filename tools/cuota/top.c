/*
 * `cuota top`: status, live. Needs a terminal; the keys are those of htop and nvtop.
 */
#include "top.h"

#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DELAY_LEAST_S 0.1
#define DELAY_MOST_S  60.0
#define KEY_ESCAPE    27

static const struct argp_option options[] = {
	{"delay", 'd', "SECONDS", 0, "between two looks (default 1)", 0},
	{"processes", 'p', NULL, 0, "show the processes of each group", 0},
	{"sort", 's', "ORDER", 0, "name (default), memory or share", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const orders[SORT_COUNT] = {"name", "memory", "share"};
	struct top *top = state->input;
	struct error err;

	switch (key) {
	case 'd':
		if (cli_duration(arg, &top->delay_s, &err))
			argp_error(state, "--delay %s", err.text);
		if (top->delay_s < DELAY_LEAST_S || top->delay_s > DELAY_MOST_S)
			argp_error(state, "--delay '%s': write 0.1 to 60", arg);
		return 0;
	case 'p': top->processes = 1; return 0;
	case 's':
		for (int i = 0; i < SORT_COUNT; i++) {
			if (!strcmp(arg, orders[i])) {
				top->sort = (enum top_sort)i;
				return 0;
			}
		}
		argp_error(state, "--sort '%s': write name, memory or share", arg);
		return 0;
	case ARGP_KEY_ARG: argp_error(state, "'%s' is no option", arg); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* 1 = quit. */
static int handle_key(struct top *top, int key)
{
	switch (key) {
	case 'q':
	case KEY_ESCAPE:
	case KEY_F(10):
		if (top->help && key == KEY_ESCAPE) {
			top->help = 0;
			return 0;
		}
		return 1;
	case KEY_UP:
	case 'k': top_select(top, -1); return 0;
	case KEY_DOWN:
	case 'j': top_select(top, 1); return 0;
	case KEY_F(5):
	case 'p': top->processes = !top->processes; return 0;
	case KEY_F(6):
	case 's': top->sort = (top->sort + 1) % SORT_COUNT; return 0;
	case KEY_F(1):
	case 'h':
	case '?': top->help = !top->help; return 0;
	case ' ': top->paused = !top->paused; return 0;
	case '+':
		if (top->delay_s / 2 >= DELAY_LEAST_S)
			top->delay_s /= 2;
		return 0;
	case '-':
		if (top->delay_s * 2 <= DELAY_MOST_S)
			top->delay_s *= 2;
		return 0;
	default: return 0;
	}
}

static void take(struct snapshot *now, struct snapshot *before)
{
	snapshot_free(before);
	*before = *now;
	if (snapshot_read(now, NULL))
		memset(now, 0, sizeof(*now));
	snapshot_shares(now, before);
	history_add(now);
}

static void loop(struct top *top, struct snapshot *now)
{
	struct snapshot before = {0};
	int quit = 0;

	history_add(now);
	while (!quit) {
		int key;

		top->now = now;
		top_draw(top);
		timeout((int)(top->delay_s * 1000));
		key = getch();
		if (key == ERR && !isatty(STDIN_FILENO))
			break; /* the terminal went away */
		if (key == ERR && !top->paused)
			take(now, &before);
		else if (key != ERR)
			quit = handle_key(top, key);
	}
	snapshot_free(&before);
}

int command_top(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Shows groups, their caps and what they get, live. F1 tells the keys.",
	};
	struct top top = {.delay_s = 1};
	const char *no_colour = getenv("NO_COLOR");
	struct snapshot now;
	struct error err = {""};
	SCREEN *screen;

	cli_parse(&argp, argc, argv, CLI_USAGE, &top);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		cli_error("needs a terminal; 'cuota status' prints once");
		return CLI_FAILED;
	}
	setlocale(LC_CTYPE, "");
	if (snapshot_read(&now, &err)) {
		cli_error("%s", err.text);
		return CLI_FAILED;
	}
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		cli_error("TERM='%s' is no terminal this can draw on",
			  getenv("TERM") ? getenv("TERM") : "");
		snapshot_free(&now);
		return CLI_FAILED;
	}
	top.unicode = !strcmp(nl_langinfo(CODESET), "UTF-8");
	set_escdelay(25);
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	top_draw_setup(!no_colour || !*no_colour);
	loop(&top, &now);
	endwin();
	delscreen(screen);
	snapshot_free(&now);
	nvml_close();
	return CLI_OK;
}
