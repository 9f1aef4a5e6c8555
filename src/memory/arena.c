#include "memory/arena.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif

void *arena_map(size_t bytes)
{
	int saved = errno;
	void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == MAP_FAILED)
		start = NULL;
	else
		madvise(start, bytes, MADV_WIPEONFORK);
	errno = saved;
	return start;
}

void arena_unmap(void *start, size_t bytes)
{
	int saved = errno;

	munmap(start, bytes);
	errno = saved;
}
