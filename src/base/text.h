/*
 * Comparing names without the C library: a sanitizer looks its own functions up by dlsym while its strcmp is not
 * ready yet, so nothing on the way of a look-up that is not ours may call one that it replaces.
 */
#ifndef CUOTA_BASE_TEXT_H
#define CUOTA_BASE_TEXT_H

static inline int text_same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static inline int text_starts(const char *text, const char *start)
{
	while (*start && *text == *start) {
		text++;
		start++;
	}
	return !*start;
}

#endif
