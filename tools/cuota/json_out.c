/*
 * See json_out.h.
 */
#include "json_out.h"

#include <math.h>
#include <string.h>

static void flush(struct json_out *out)
{
	fwrite(out->buffer, 1, out->used, out->stream);
	out->used = 0;
}

static void put(struct json_out *out, const char *text, size_t length)
{
	if (length > sizeof(out->buffer) - out->used)
		flush(out);
	if (length > sizeof(out->buffer)) {
		fwrite(text, 1, length, out->stream);
		return;
	}
	memcpy(out->buffer + out->used, text, length);
	out->used += length;
}

static void new_line(struct json_out *out)
{
	static const char spaces[] = "\n                                ";
	size_t length = 1 + out->depth * 2;

	put(out, spaces, length < sizeof(spaces) - 1 ? length : sizeof(spaces) - 1);
}

/* A new line in the innermost object or array, and the key. */
static void start(struct json_out *out, const char *key)
{
	if (!out->first)
		put(out, ",", 1);
	if (out->depth)
		new_line(out);
	out->first = 0;
	if (!key)
		return;
	put(out, "\"", 1);
	put(out, key, strlen(key));
	put(out, "\": ", 3);
}

void json_begin(struct json_out *out, const char *key, char bracket)
{
	start(out, key);
	put(out, &bracket, 1);
	out->depth++;
	out->first = 1;
}

void json_end(struct json_out *out, char bracket)
{
	out->depth--;
	if (!out->first)
		new_line(out);
	out->first = 0;
	put(out, &bracket, 1);
	if (!out->depth) {
		put(out, "\n", 1);
		flush(out);
	}
}

/* Bytes of the UTF-8 character at `text`, 0 when it is none (over-long forms and surrogates included). */
static size_t character(const unsigned char *text)
{
	static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = *text < 0x80		 ? 1
			: (*text & 0xe0) == 0xc0 ? 2
			: (*text & 0xf0) == 0xe0 ? 3
			: (*text & 0xf8) == 0xf0 ? 4
						 : 0;
	unsigned code = length > 1 ? *text & (0x7fu >> length) : *text;

	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (length > 1 &&
	    (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)))
		return 0;
	return length;
}

void json_text(struct json_out *out, const char *key, const char *value)
{
	const unsigned char *at = (const unsigned char *)value;

	start(out, key);
	put(out, "\"", 1);
	while (*at) {
		size_t length = character(at);
		char escape[8];

		if (*at < 0x20) {
			snprintf(escape, sizeof(escape), "\\u%04x", *at);
			put(out, escape, 6);
		} else if (*at == '"' || *at == '\\') {
			put(out, *at == '"' ? "\\\"" : "\\\\", 2);
		} else if (length) {
			put(out, (const char *)at, length);
		} else {
			put(out, "?", 1);
		}
		at += length ? length : 1;
	}
	put(out, "\"", 1);
}

void json_number(struct json_out *out, const char *key, uint64_t value)
{
	char digits[24], *at = digits + sizeof(digits);

	start(out, key);
	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	put(out, at, (size_t)(digits + sizeof(digits) - at));
}

void json_fraction(struct json_out *out, const char *key, double value)
{
	char text[32];

	if (isnan(value)) {
		json_nothing(out, key);
		return;
	}
	if (value >= 0 && value == (double)(uint64_t)value && value < 1e15) {
		json_number(out, key, (uint64_t)value);
		return;
	}
	start(out, key);
	snprintf(text, sizeof(text), "%.9g", value);
	put(out, text, strlen(text));
}

void json_truth(struct json_out *out, const char *key, int value)
{
	start(out, key);
	put(out, value ? "true" : "false", value ? 4 : 5);
}

void json_nothing(struct json_out *out, const char *key)
{
	start(out, key);
	put(out, "null", 4);
}
