/*
 * The log: off unless asked for, to stderr or CUOTA_LOG_FILE, one line per message in one write(2),
 * "cuota[PID]: level: text". Never stdout, never stdio (the host program may hold its locks), errno
 * kept.
 */
#ifndef CUOTA_BASE_LOG_H
#define CUOTA_BASE_LOG_H

#include <stdint.h>

enum log_level { LOG_OFF, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* path "" = stderr. Opens nothing until the first message. */
void log_setup(enum log_level level, const char *path);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For what the user must see even with the log off (a malformed quota): stderr as well. */
void log_must(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* 1 at most every interval_ns for this *last_ns (atomic; start at 0): keeps a hot message from
 * flooding. */
int log_allowed(uint64_t *last_ns, uint64_t now_ns, uint64_t interval_ns);

#endif
