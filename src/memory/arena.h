/*
 * Memory of our own, outside the host program's allocator: hooks run inside programs that replace malloc,
 * or that call us from inside it. Zeroed, and wiped in a forked child, which owns nothing of its parent's.
 */
#ifndef CUOTA_MEMORY_ARENA_H
#define CUOTA_MEMORY_ARENA_H

#include <stddef.h>

/* NULL when the kernel has none left. errno is kept. */
void *arena_map(size_t bytes);
void arena_unmap(void *start, size_t bytes);

#endif
