/*
 * Written for a guest in somebody else's program: no stdio stream, no allocation, no descriptor
 * kept (the host may close all of them, and what it opens next under that number is not ours to
 * write to), errno and pending signals as they were. A message that cannot be written is dropped.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

#define LINE_BYTES 512

/* Written by log_setup() before other threads log; the level is published last. */
static char log_path[PATH_MAX];
static int log_level; /* enum log_level, atomic: log_setup() releases, log_line() acquires */

void log_setup(enum log_level level, const char *path)
{
	__atomic_store_n(&log_level, LOG_OFF, __ATOMIC_RELEASE);
	log_path[0] = '\0';
	if (strlen(path) < sizeof(log_path))
		memcpy(log_path, path, strlen(path) + 1);
	__atomic_store_n(&log_level, (int)level, __ATOMIC_RELEASE);
}

/*
 * One write(2). A reader that has gone must not kill the host program: SIGPIPE (and SIGXFSZ, for a
 * file at its limit) is blocked meanwhile, and taken away again if it was this write that raised
 * it.
 */
static void write_quietly(int fd, const char *line, size_t bytes)
{
	static const struct timespec no_wait;
	sigset_t ours, before, pending;
	int code, number;

	sigemptyset(&ours);
	sigaddset(&ours, SIGPIPE);
	sigaddset(&ours, SIGXFSZ);
	if (sigpending(&pending) < 0 || sigprocmask(SIG_BLOCK, &ours, &before) < 0)
		return;
	do {
		code = write(fd, line, bytes) < 0 ? errno : 0;
	} while (code == EINTR);
	number = code == EPIPE ? SIGPIPE : code == EFBIG ? SIGXFSZ : 0;
	if (number && !sigismember(&pending, number)) {
		sigemptyset(&ours);
		sigaddset(&ours, number);
		while (sigtimedwait(&ours, NULL, &no_wait) < 0 && errno == EINTR)
			;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* -1 if the file cannot be opened. No link is followed: /dev/stdout is one, and stdout is not ours.
 */
static int open_log(void)
{
	return open(log_path,
		    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK,
		    0644);
}

static void write_log(const char *line, size_t bytes)
{
	static int complained;
	char note[LINE_BYTES];
	int fd, length;

	if (!log_path[0]) {
		write_quietly(STDERR_FILENO, line, bytes);
		return;
	}
	fd = open_log();
	if (fd >= 0) {
		write_quietly(fd, line, bytes);
		close(fd);
		return;
	}
	if (__atomic_exchange_n(&complained, 1, __ATOMIC_RELAXED))
		return;
	length = snprintf(note, sizeof(note), "cuota: CUOTA_LOG_FILE='%.300s': %s\n", log_path,
			  error_text(errno));
	if (length > 0)
		write_quietly(STDERR_FILENO, note, (size_t)length);
}

/* Ends the text at `used` with one newline and takes out any other; returns the whole length. */
static size_t finish_line(char line[LINE_BYTES], int used)
{
	size_t length = used < 0 ? 0 : (size_t)used;

	if (length > LINE_BYTES - 2)
		length = LINE_BYTES - 2;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[length] = '\n';
	return length + 1;
}

static size_t format_line(char line[LINE_BYTES], const char *head, const char *format, va_list args)
{
	int used = snprintf(line, LINE_BYTES, "%s", head);
	int more = vsnprintf(line + used, LINE_BYTES - (size_t)used, format, args);

	return finish_line(line, more < 0 ? used : used + more);
}

static void head_for(enum log_level level, char *head, size_t bytes)
{
	static const char *const names[] = {"off", "error", "warn", "info", "debug"};

	snprintf(head, bytes, "cuota[%d]: %s: ", (int)getpid(), names[level]);
}

void log_line(enum log_level level, const char *format, ...)
{
	int saved_errno = errno;
	char line[LINE_BYTES], head[48];
	va_list args;

	if (level == LOG_OFF || (int)level > __atomic_load_n(&log_level, __ATOMIC_ACQUIRE))
		return;
	head_for(level, head, sizeof(head));
	va_start(args, format);
	write_log(line, format_line(line, head, format, args));
	va_end(args);
	errno = saved_errno;
}

void log_must(const char *format, ...)
{
	int saved_errno = errno;
	char line[LINE_BYTES], head[48];
	va_list args;

	va_start(args, format);
	write_quietly(STDERR_FILENO, line, format_line(line, "cuota: ", format, args));
	va_end(args);
	if (log_path[0] && __atomic_load_n(&log_level, __ATOMIC_ACQUIRE) >= LOG_ERROR) {
		head_for(LOG_ERROR, head, sizeof(head));
		va_start(args, format);
		write_log(line, format_line(line, head, format, args));
		va_end(args);
	}
	errno = saved_errno;
}

int log_allowed(uint64_t *last_ns, uint64_t now_ns, uint64_t interval_ns)
{
	uint64_t last = __atomic_load_n(last_ns, __ATOMIC_RELAXED);

	if (last && (now_ns < last || now_ns - last < interval_ns))
		return 0;
	return __atomic_compare_exchange_n(last_ns, &last, now_ns ? now_ns : 1, 0, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}
