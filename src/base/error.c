/*
 * Messages are built with vsnprintf() into the caller's buffer: no stream, no allocation, no locale
 * (strerror() would load message catalogues into the host program, hence error_text()).
 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void keep_on_one_line(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

int error_set(struct error *err, int code, const char *format, ...)
{
	int saved_errno = errno;
	va_list args;

	if (err) {
		va_start(args, format);
		vsnprintf(err->text, sizeof(err->text), format, args);
		va_end(args);
		keep_on_one_line(err->text);
	}
	errno = saved_errno;
	return code < 0 ? code : -code;
}

void error_prefix(struct error *err, const char *format, ...)
{
	int saved_errno = errno;
	struct error prefixed;
	va_list args;
	size_t used, more;

	if (!err)
		return;
	va_start(args, format);
	vsnprintf(prefixed.text, sizeof(prefixed.text), format, args);
	va_end(args);
	used = strlen(prefixed.text);
	if (used > sizeof(prefixed.text) - 3)
		used = sizeof(prefixed.text) - 3;
	memcpy(prefixed.text + used, ": ", 2);
	used += 2;
	more = strlen(err->text);
	if (more > sizeof(prefixed.text) - 1 - used)
		more = sizeof(prefixed.text) - 1 - used;
	memcpy(prefixed.text + used, err->text, more);
	prefixed.text[used + more] = '\0';
	keep_on_one_line(prefixed.text);
	*err = prefixed;
	errno = saved_errno;
}

const char *error_quote(const char *text, char buf[ERROR_QUOTE_BYTES])
{
	size_t i;

	for (i = 0; i < ERROR_QUOTE_BYTES - 1 && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		buf[i] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
	}
	buf[i] = '\0';
	if (text[i])
		memcpy(buf + i - 3, "...", 3);
	return buf;
}

const char *error_text(int code)
{
	switch (code < 0 ? -code : code) {
	case EPERM: return "operation not permitted";
	case ENOENT: return "no such file or directory";
	case EINTR: return "interrupted";
	case EIO: return "input/output error";
	case ENXIO: return "no such device or address";
	case EBADF: return "bad file descriptor";
	case EAGAIN: return "try again";
	case ENOMEM: return "out of memory";
	case EACCES: return "permission denied";
	case EBUSY: return "busy";
	case EEXIST: return "file exists";
	case ENODEV: return "no such device";
	case ENOTDIR: return "not a directory";
	case EISDIR: return "is a directory";
	case EINVAL: return "invalid argument";
	case ENFILE: return "too many open files on this system";
	case EMFILE: return "too many open files in this process";
	case EFBIG: return "file too large";
	case ENOSPC: return "no space left on device";
	case EROFS: return "read-only file system";
	case EPIPE: return "broken pipe";
	case ERANGE: return "out of range";
	case ENAMETOOLONG: return "name too long";
	case ENOSYS: return "not implemented by this kernel";
	case ELOOP: return "is a symbolic link";
	case EOVERFLOW: return "value too large";
	case ETIMEDOUT: return "timed out";
	case EDQUOT: return "disk quota exceeded";
	case ESTALE: return "stale file handle";
	default: return "error";
	}
}
