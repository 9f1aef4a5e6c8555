/*
 * The robust list of the calling thread, and the words it holds. live.h says why.
 *
 * The list's head and its entries lie in MAP_SHARED memory although no other process sees them:
 * before Linux 5.18 the OOM killer could take a dying process's private memory before the kernel
 * had read its robust list from there, and the word would have stayed alive for ever. A page that
 * is wiped on fork tells a child, whose thread-local pointer is a copy, that it has no list yet.
 */
#include "ledger/live.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "ledger/byte_lock.h"
#include "ledger/futex.h"
#include "ledger/protocol.h"

/* How long to sleep at most before looking again: of many waiters, the kernel wakes one when the holder
 * dies. */
#define LOCK_SLICE_NS (10 * NS_PER_MS)

#define LIST_LIMIT 2048 /* as many as the kernel looks at */

/* Atomic because its slot, and so its place, may have been another thread's of ours before: the kernel put
 * their order right, which a race detector cannot see. */
struct entry {
	_Atomic(struct entry *) next;
};

/* struct robust_list_head of <linux/futex.h>, whose pointers the kernel reads as they are. */
struct list {
	struct entry first;
	long offset;
	struct entry *pending;
};

struct thread {
	struct list *list;
	void *c_library_list; /* given back when the last word is dropped */
	size_t c_library_bytes;
	uint32_t mark;
};

static __thread struct thread *this_thread; /* in a page wiped on fork: list is NULL in a child */

/* The kernel reads at the moment of death: each store must be there before the next step. */
static void in_order(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static void *map_page(int flags, int advice)
{
	void *page = mmap(NULL, LEDGER_PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	madvise(page, LEDGER_PAGE, advice);
	return page;
}

static int thread_make(void)
{
	if (!this_thread)
		this_thread = map_page(MAP_PRIVATE, MADV_WIPEONFORK);
	if (!this_thread)
		return -ENOMEM;
	if (this_thread->list)
		return 0;
	this_thread->list = map_page(MAP_SHARED, MADV_DONTFORK);
	if (!this_thread->list)
		return -ENOMEM;
	this_thread->list->first.next = &this_thread->list->first;
	this_thread->list->offset = -(long)LEDGER_SPAN;
	return 0;
}

int live_begin(uint32_t *ret_mark)
{
	int saved_errno = errno, code = thread_make();
	void *head = NULL;
	size_t bytes = 0;

	if (code == 0) {
		this_thread->mark = (uint32_t)syscall(SYS_gettid);
		if (syscall(SYS_get_robust_list, 0, &head, &bytes) != 0 ||
		    head != this_thread->list) {
			this_thread->c_library_list = head;
			this_thread->c_library_bytes = bytes;
			if (syscall(SYS_set_robust_list, this_thread->list, sizeof(struct list)) !=
			    0)
				this_thread->mark |= LIVE_BY_LOCK;
		}
		*ret_mark = this_thread->mark;
	}
	errno = saved_errno;
	return code;
}

void live_end(void)
{
	int saved_errno = errno;

	if (this_thread && this_thread->list &&
	    this_thread->list->first.next == &this_thread->list->first)
		syscall(SYS_set_robust_list, this_thread->c_library_list,
			this_thread->c_library_bytes);
	errno = saved_errno;
}

static struct entry *entry_of(_Atomic uint32_t *word)
{
	return (struct entry *)((char *)word + LEDGER_SPAN);
}

/* Swaps the word and puts it on the thread's list; `pending` tells the kernel of it in between. */
static int take(_Atomic uint32_t *word, uint32_t expected, uint32_t value)
{
	struct list *list = this_thread->list;
	struct entry *entry = entry_of(word);
	int taken;

	list->pending = entry;
	in_order();
	taken = atomic_compare_exchange_strong(word, &expected, value);
	ledger_test_point(1);
	in_order();
	if (taken) {
		entry->next = list->first.next;
		in_order();
		list->first.next = entry;
		in_order();
	}
	list->pending = NULL;
	return taken;
}

/* To 0, unless somebody else's mark is there; returns what was there. */
static uint32_t drop(_Atomic uint32_t *word, uint32_t mark)
{
	struct list *list = this_thread->list;
	struct entry *entry = entry_of(word), *at;
	uint32_t held;
	unsigned hops;

	list->pending = entry;
	in_order();
	for (at = &list->first, hops = 0; at->next != &list->first && hops < LIST_LIMIT; hops++) {
		if (at->next == entry) {
			at->next = entry->next;
			break;
		}
		at = at->next;
	}
	in_order();
	ledger_test_point(2);
	held = atomic_load(word);
	while ((held & FUTEX_TID_MASK) == mark && !atomic_compare_exchange_weak(word, &held, 0))
		;
	in_order();
	list->pending = NULL;
	return held;
}

/* take() and drop() with the byte lock around them where the list is not the kernel's. */
static int take_marked(struct ledger *ledger, _Atomic uint32_t *word, unsigned byte,
		       uint32_t expected, uint32_t value)
{
	if (!(value & LIVE_BY_LOCK))
		return take(word, expected, value);
	if (byte_lock_take(ledger, byte) != 1)
		return 0;
	if (take(word, expected, value))
		return 1;
	byte_lock_drop(ledger, byte);
	return 0;
}

static uint32_t drop_marked(struct ledger *ledger, _Atomic uint32_t *word, unsigned byte,
			    uint32_t mark)
{
	uint32_t held = drop(word, mark);

	if (this_thread->mark & LIVE_BY_LOCK)
		byte_lock_drop(ledger, byte);
	return held;
}

int live_take(struct ledger *ledger, unsigned slot, uint32_t expected, uint32_t mark)
{
	return take_marked(ledger, &ledger->file->live[slot].word, slot, expected, mark);
}

void live_drop(struct ledger *ledger, unsigned slot, uint32_t mark)
{
	drop_marked(ledger, &ledger->file->live[slot].word, slot, mark);
}

/* The word, or what it would be if the kernel minded byte locks. */
static uint32_t settle_word(const struct ledger *ledger, _Atomic uint32_t *word, unsigned byte)
{
	uint32_t held = atomic_load(word), died;

	if (!(held & LIVE_BY_LOCK) || byte_lock_is_held(ledger, byte))
		return held;
	died = (held & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
	if (ledger->read_only || atomic_compare_exchange_strong(word, &held, died))
		return died;
	return held;
}

uint32_t live_word(const struct ledger *ledger, unsigned slot)
{
	return settle_word(ledger, &ledger->file->live[slot].word, slot);
}

int live_is_held(const struct ledger *ledger, unsigned slot)
{
	return (live_word(ledger, slot) & FUTEX_TID_MASK) != 0;
}

int live_is_dead(const struct ledger *ledger, unsigned slot)
{
	uint32_t word = live_word(ledger, slot);

	return word != 0 && (word & FUTEX_TID_MASK) == 0;
}

int ledger_lock_try(struct ledger *ledger, uint32_t mark, int waited)
{
	_Atomic uint32_t *word = &ledger->file->header.join_lock;
	uint32_t held = settle_word(ledger, word, BYTE_JOIN);
	uint32_t others = waited ? FUTEX_WAITERS : held & FUTEX_WAITERS;

	/* Looked at first, so that a thread of another PID namespace with the same TID is put in doubt by
	 * our death only if we die between this and the swap. */
	return !(held & FUTEX_TID_MASK) &&
	       take_marked(ledger, word, BYTE_JOIN, held, mark | others);
}

void ledger_lock_wait(struct ledger *ledger, uint64_t key)
{
	_Atomic uint32_t *word = &ledger->file->header.join_lock;
	uint32_t held = atomic_load(word);

	if (!(held & FUTEX_TID_MASK))
		return;
	if ((held & FUTEX_WAITERS) ||
	    atomic_compare_exchange_strong(word, &held, held | FUTEX_WAITERS))
		futex_wait_for(word, held | FUTEX_WAITERS, clock_now_ns() + LOCK_SLICE_NS,
			       1u << key % 32);
}

void ledger_unlock(struct ledger *ledger, uint32_t mark, uint64_t key)
{
	_Atomic uint32_t *word = &ledger->file->header.join_lock;

	if (!(drop_marked(ledger, word, BYTE_JOIN, mark) & FUTEX_WAITERS))
		return;
	futex_wake_for(word, INT32_MAX, 1u << key % 32);
	futex_wake_for(word, 1, ~(1u << key % 32));
}
