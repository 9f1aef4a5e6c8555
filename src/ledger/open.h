/*
 * Pieces of opening that tests, the fuzzers and limits.c share; inside src/ledger and tests only.
 */
#ifndef CUOTA_LEDGER_OPEN_H
#define CUOTA_LEDGER_OPEN_H

#include "ledger/ledger.h"

struct file_status {
	unsigned mode, uid;
	uint64_t bytes, inode, device;
};

/* Of the open fd when path is "", else of the path without following a link at its end. 0 or
 * -errno. */
int file_status(int fd, const char *path, struct file_status *ret);

/* Of what a path leads to. */
int file_status_followed(const char *path, struct file_status *ret);

/* A number that others can hardly guess, for temporary names. */
uint64_t file_noise(void);

/* Makes a directory of mode 1777. 0 or -errno. */
int dir_make_shared(const char *path);

/* The header of a fresh ledger of this device. */
void ledger_header_make(struct ledger_header *ret, const char *uuid);

/* 0 if the text can be a device's UUID and part of a file name. */
int ledger_uuid_check(const char *uuid, struct error *err);

#endif
