/* Between script.c (lines, names) and script_calls.c (the calls). */
#ifndef ESCAPE_SCRIPT_H
#define ESCAPE_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "driver.h"

int script_run(void);

/* The value of a name; 0 until it was given one. */
uint64_t *script_name(const char *text);
uint64_t script_bytes(const char *text);

/* One call; note is what there is to say beside the code. */
CUresult script_call(int argc, char **argv, char *note, size_t note_bytes);

/* script_share.c */
CUresult script_share(int argc, char **argv, char *note, size_t note_bytes);

#endif
