/*
 * Writing a large JSON text as it comes, where building a tree first would cost more than all the rest (a
 * status of thousands of processes). Small answers use jansson.
 *
 * Keys are plain literals of ours; texts may be anything: what is no UTF-8 becomes '?'. `key` is NULL inside
 * an array. One writer at a time per stream; errors show in ferror(stream).
 */
#ifndef CUOTA_CLI_JSON_OUT_H
#define CUOTA_CLI_JSON_OUT_H

#include <stdint.h>
#include <stdio.h>

struct json_out {
	FILE *stream;
	unsigned depth;
	size_t used;
	int first;	      /* nothing yet in the innermost object or array: 1 to begin with */
	char buffer[1 << 16]; /* reaches the stream when full, and with the last bracket */
};

void json_begin(struct json_out *out, const char *key, char bracket); /* '{' or '[' */
void json_end(struct json_out *out, char bracket);		      /* '}' or ']' */

void json_text(struct json_out *out, const char *key, const char *value);
void json_number(struct json_out *out, const char *key, uint64_t value);
/* NAN is null. */
void json_fraction(struct json_out *out, const char *key, double value);
void json_truth(struct json_out *out, const char *key, int value);
void json_nothing(struct json_out *out, const char *key);

#endif
