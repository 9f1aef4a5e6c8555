/*
 * Line plots as inline SVG: one panel with time along the bottom, drawn straight to stdout. Knows nothing
 * of ledgers; text is escaped here.
 */
#ifndef CUOTA_CLI_PLOT_H
#define CUOTA_CLI_PLOT_H

#include <stddef.h>

#define PLOT_COLOURS 10

struct plot {
	double from_s, to_s; /* time, seconds since the epoch */
	double top;	     /* the value at the upper edge */
	const char *unit;    /* behind the numbers of the axis: " GiB", "%" */
};

struct plot_point {
	double t_s, value; /* value NAN: the line is broken here */
};

/* The axis with ticks and labels; `title` names the panel for readers that see no picture. */
void plot_begin(const struct plot *plot, const char *title);
void plot_line(const struct plot *plot, const struct plot_point *points, size_t count,
	       unsigned colour, int dashed, const char *name);
void plot_end(void);

/* Rounds a largest value up to a good upper edge. */
double plot_top(double largest);

/* "#rrggbb" */
const char *plot_colour(unsigned index);

/* Text with the five characters of HTML escaped. */
void html_text(const char *text);

#endif
