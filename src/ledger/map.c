/*
 * One ledger's place in this process's memory:
 *
 *   base                 the file, MAP_SHARED, absent in forked children
 *   base + LEDGER_SPAN   its shadow: the kernel's list entries, at a constant distance from the
 * words base + 2 spans       one page that the kernel wipes in forked children: `here`
 *
 * Addresses are reserved in one piece first, so that nothing of the host program can come between.
 */
#include "ledger/map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define HERE_BYTES   65536u /* a page, whatever its size */
#define SHADOW_BYTES ((sizeof(struct ledger_file) + HERE_BYTES - 1) / HERE_BYTES * HERE_BYTES)
#define SPANS_BYTES  (2ull * LEDGER_SPAN + HERE_BYTES)

static int fill(char *base, int fd, int read_only)
{
	int rw = PROT_READ | PROT_WRITE;
	void *at;

	at = mmap(base, sizeof(struct ledger_file), read_only ? PROT_READ : rw,
		  fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED : MAP_SHARED | MAP_FIXED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	at = mmap(base + LEDGER_SPAN, SHADOW_BYTES, rw, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
		  0);
	if (at == MAP_FAILED)
		return -errno;
	at = mmap(base + 2 * LEDGER_SPAN, HERE_BYTES, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		  -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	if (madvise(base, 2 * LEDGER_SPAN, MADV_DONTFORK) != 0)
		return -errno;
	if (madvise(base + 2 * LEDGER_SPAN, HERE_BYTES, MADV_WIPEONFORK) != 0)
		return -errno;
	return 0;
}

int map_file(struct ledger *ledger, int fd)
{
	int saved_errno = errno, code;
	_Atomic uint64_t *here;
	char *base;

	base = mmap(NULL, SPANS_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		    0);
	code = base == MAP_FAILED ? -errno : fill(base, fd, ledger->read_only);
	if (code != 0 && base != MAP_FAILED)
		munmap(base, SPANS_BYTES);
	errno = saved_errno;
	if (code != 0)
		return code;
	here = (_Atomic uint64_t *)(base + 2 * LEDGER_SPAN);
	atomic_store(here, MAP_HERE);
	ledger->file = (struct ledger_file *)base;
	ledger->here = here;
	return 0;
}

void map_cut_off(struct ledger *ledger)
{
	int saved_errno = errno;

	mmap(ledger->file, sizeof(struct ledger_file), PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	madvise(ledger->file, sizeof(struct ledger_file), MADV_DONTFORK);
	errno = saved_errno;
}

int map_replace(struct ledger *ledger, struct ledger *fresh)
{
	int saved_errno = errno, code = 0;
	void *at;

	/* Old size 0: a second mapping of the same memory; the first stays until it is closed. */
	at = mremap(fresh->file, 0, sizeof(struct ledger_file), MREMAP_MAYMOVE | MREMAP_FIXED,
		    ledger->file);
	if (at == MAP_FAILED || madvise(at, sizeof(struct ledger_file), MADV_DONTFORK) != 0)
		code = -errno;
	else
		ledger->place = fresh->place;
	errno = saved_errno;
	return code;
}

void map_remove(struct ledger *ledger)
{
	int saved_errno = errno;

	/* In a child the file's and the shadow's addresses may be somebody else's by now. */
	if (ledger->file && map_is_here(ledger))
		munmap(ledger->file, SPANS_BYTES);
	ledger->file = NULL;
	ledger->here = NULL;
	errno = saved_errno;
}
