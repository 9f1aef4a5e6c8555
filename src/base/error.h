/*
 * One sentence about what failed, filled by whoever knows it and printed by whoever may.
 *
 * Functions return 0 or -errno and, where a person will read the reason, fill a struct error that
 * the caller owns. Nothing here allocates or prints, and errno is left alone.
 */
#ifndef CUOTA_BASE_ERROR_H
#define CUOTA_BASE_ERROR_H

struct error {
	char text[256]; /* one line, no newline, always terminated; "" when nothing failed */
};

#define ERROR_QUOTE_BYTES 64

/* Sets err->text (err may be NULL) and returns -code, so that "return error_set(...)" reads well.
 */
int error_set(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "PREFIX: " before err->text: each caller adds what only it knows (variable, file, line). */
void error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What a user wrote, fit for a message: control and non-ASCII bytes as '?', a long text cut with
 * "...". Returns buf. */
const char *error_quote(const char *text, char buf[ERROR_QUOTE_BYTES]);

/* "permission denied" for EACCES or -EACCES; no locale, never NULL ("error" for what is not
 * listed). */
const char *error_text(int code);

#endif
