/*
 * See plot.h. Sizes are of the view box; the page scales it.
 */
#include "plot.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#define WIDTH	900
#define HEIGHT	220
#define LEFT	70
#define RIGHT	12
#define TOP	10
#define BOTTOM	26
#define Y_TICKS 4
#define X_TICKS 6

static const char *const colours[PLOT_COLOURS] = {"#3366aa", "#d9622b", "#2e8b57", "#a03a82",
						  "#b8860b", "#2b9ab3", "#7a5195", "#c0392b",
						  "#5d7f2b", "#666666"};

const char *plot_colour(unsigned index)
{
	return colours[index % PLOT_COLOURS];
}

void html_text(const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<': fputs("&lt;", stdout); break;
		case '>': fputs("&gt;", stdout); break;
		case '&': fputs("&amp;", stdout); break;
		case '"': fputs("&quot;", stdout); break;
		case '\'': fputs("&#39;", stdout); break;
		default: putchar(*text);
		}
	}
}

double plot_top(double largest)
{
	static const double steps[] = {1, 2, 2.5, 4, 5, 8, 10};
	double base = 1e-6;

	if (!(largest > 0))
		return 1;
	while (base * 10 <= largest)
		base *= 10;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if (steps[i] * base >= largest * 0.999)
			return steps[i] * base;
	return 10 * base;
}

static double x_of(const struct plot *plot, double t_s)
{
	double span = plot->to_s - plot->from_s;

	return LEFT + (span > 0 ? (t_s - plot->from_s) / span : 0) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct plot *plot, double value)
{
	double part = value / plot->top;

	return HEIGHT - BOTTOM - (part > 1 ? 1 : part < 0 ? 0 : part) * (HEIGHT - TOP - BOTTOM);
}

static void time_label(const struct plot *plot, double t_s)
{
	double span = plot->to_s - plot->from_s;
	const char *form = span < 600 ? "%H:%M:%S" : span < 36 * 3600 ? "%H:%M" : "%d %b %H:%M";
	time_t when = (time_t)t_s;
	char text[32];
	struct tm local;

	strftime(text, sizeof(text), form, localtime_r(&when, &local));
	printf("<text class=\"t\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%s</text>\n",
	       x_of(plot, t_s), HEIGHT - 8, text);
}

void plot_begin(const struct plot *plot, const char *title)
{
	printf("<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
	html_text(title);
	puts("\">");
	for (int i = 0; i <= Y_TICKS; i++) {
		double value = plot->top * i / Y_TICKS, y = y_of(plot, value);

		printf("<line class=\"g\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
		       WIDTH - RIGHT, y, y);
		printf("<text class=\"t\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%.*f%s</text>\n",
		       LEFT - 6, y + 4,
		       plot->top < 4	? 2
		       : plot->top < 40 ? 1
					: 0,
		       value, plot->unit);
	}
	for (int i = 0; i < X_TICKS; i++)
		time_label(plot, plot->from_s + (plot->to_s - plot->from_s) * (i + 0.5) / X_TICKS);
}

void plot_line(const struct plot *plot, const struct plot_point *points, size_t count,
	       unsigned colour, int dashed, const char *name)
{
	int pen_down = 0;

	printf("<path fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"%s d=\"", plot_colour(colour),
	       dashed ? "1" : "2", dashed ? " stroke-dasharray=\"5 4\"" : "");
	for (size_t i = 0; i < count; i++) {
		if (isnan(points[i].value)) {
			pen_down = 0;
			continue;
		}
		printf("%c%.1f %.1f", pen_down ? 'L' : 'M', x_of(plot, points[i].t_s),
		       y_of(plot, points[i].value));
		if (!pen_down) /* a lone sample shows as a dot's width */
			printf("h1");
		pen_down = 1;
	}
	fputs("\"><title>", stdout);
	html_text(name);
	puts("</title></path>");
}

void plot_end(void)
{
	puts("</svg>");
}
