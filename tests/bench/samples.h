/*
 * Samples in nanoseconds and what is said of them: median, percentiles, and how sure the median is.
 */
#ifndef CUOTA_BENCH_SAMPLES_H
#define CUOTA_BENCH_SAMPLES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SAMPLES_MAX 400000u

struct samples {
	unsigned count;
	double at[SAMPLES_MAX];
};

static inline void samples_add(struct samples *s, double value)
{
	if (s->count < SAMPLES_MAX)
		s->at[s->count++] = value;
}

static inline int samples_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static inline void samples_sort(struct samples *s)
{
	qsort(s->at, s->count, sizeof(*s->at), samples_compare);
}

/* Of sorted samples; q in 0..1. */
static inline double samples_at(const struct samples *s, double q)
{
	return s->count ? s->at[(unsigned)(q * (s->count - 1) + 0.5)] : 0;
}

/* Sorts. {"n":…,"p10":…,"p50":…,"p90":…,"p99":…,"max":…,"ci":…}; ci: half the width of the median's 95 %
 * interval (the notch of a box plot). */
static inline void samples_print(const char *name, struct samples *s)
{
	double spread;

	samples_sort(s);
	spread = samples_at(s, 0.75) - samples_at(s, 0.25);
	printf("\"%s\":{\"n\":%u,\"p10\":%.2f,\"p50\":%.2f,\"p90\":%.2f,\"p99\":%.2f,\"max\":%.1f,"
	       "\"ci\":%.2f}",
	       name, s->count, samples_at(s, 0.1), samples_at(s, 0.5), samples_at(s, 0.9),
	       samples_at(s, 0.99), samples_at(s, 1),
	       s->count ? 1.57 * spread / sqrt(s->count) : 0);
}

#endif
