/*
 * File descriptors of memory that this process exported. A descriptor keeps the memory as a handle does, and nobody
 * tells when one is closed: so they are looked for.
 *
 * Whose export a descriptor is travels in the open file itself: its owner (F_SETOWN) is the exporter's process, its
 * signal number (F_SETSIG, 1..64) the serial. No signal is ever sent, since nobody sets O_ASYNC.
 */
#ifndef CUOTA_HOOKS_DESCRIPTORS_H
#define CUOTA_HOOKS_DESCRIPTORS_H

#include <stdint.h>

struct stamp {
	int pid, serial; /* not positive: no stamp */
};

void descriptor_stamp(int fd, uint32_t serial);
struct stamp descriptor_read(int fd);

/* The serials of our own exports that are open here, duplicates and received ones too: bit serial - 1. Reads all of
 * /proc/self/fd, some 0.3 us for each. 0 where that cannot be had. */
uint64_t descriptors_open(void);

#endif
