/*
 * One sentence about what failed, filled by whoever knows it and printed by whoever may.
 *
 * Functions return 0 or -errno and, where a person will read the reason, fill a struct error that
 * the caller owns. Nothing here allocates or prints.
 */
#ifndef CUOTA_BASE_ERROR_H
#define CUOTA_BASE_ERROR_H

struct error {
	char text[256]; /* one line, no newline, always terminated; "" when nothing failed */
};

/* Sets err->text (err may be NULL) and returns -code, so that "return error_set(...)" reads well. */
int error_set(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
