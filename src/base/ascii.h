/*
 * Letters compared as ASCII whatever the locale: strcasecmp() of a Turkish locale tells MIG- from
 * mig-.
 */
#ifndef CUOTA_BASE_ASCII_H
#define CUOTA_BASE_ASCII_H

static inline char ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* 1 if text starts with prefix, in any case. */
static inline int ascii_starts(const char *text, const char *prefix)
{
	for (; *prefix; text++, prefix++)
		if (ascii_lower(*text) != ascii_lower(*prefix))
			return 0;
	return 1;
}

/* 1 if both are the same, in any case. */
static inline int ascii_same(const char *a, const char *b)
{
	for (; *a && ascii_lower(*a) == ascii_lower(*b); a++, b++)
		;
	return ascii_lower(*a) == ascii_lower(*b);
}

#endif
