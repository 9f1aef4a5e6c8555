/*
 * The lock of the shared state. A holder that dies is noticed by the kernel (robust mutex) and what
 * it left half done is repaired. Not so when the thread has a robust list of its own, as the one that
 * holds cuota's seat and asks NVML now and then: then the others notice that it is gone. A holder
 * that is stopped (SIGSTOP) would keep every simulated
 * driver waiting, as no hardware would; after a while the others agree on a second lock and go on
 * beside it. When it goes on it finishes what it began, a microsecond in which two change the state
 * at once: the worst of that is a device time slightly off.
 */
#include "shared_internal.h"
#include "shared_state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 50, MOST_PATIENCE = 40 /* times that, for an owner that cannot be seen */ };

static __thread bool have_beside;
static int32_t lock_process; /* changes in a forked child */

static void init_mutex(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static void in_child(void)
{
	lock_process++;
	have_beside = false;
}

void lock_start(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

void lock_init(struct sim_state *state)
{
	init_mutex(&state->lock);
	init_mutex(&state->beside);
}

/* After a holder died: every number back into its range. */
static void repair(void)
{
	struct sim_state *s = sim_shared;
	if (s->process_top > SIM_MAX_PROCESSES)
		s->process_top = SIM_MAX_PROCESSES;
	if (s->context_top > SIM_MAX_CONTEXTS)
		s->context_top = SIM_MAX_CONTEXTS;
	if (s->share_top > SIM_MAX_SHARES)
		s->share_top = SIM_MAX_SHARES;
	for (uint32_t d = 0; d < SIM_MAX_DEVICES; d++)
		memset(s->device[d].active, 0, sizeof(s->device[d].active));
	for (uint32_t c = 0; c < s->context_top; c++) {
		struct sim_context *context = &s->context[c];
		struct sim_cursor *cursor = &s->cursor[c];
		if (context->device >= SIM_MAX_DEVICES)
			context->device = 0;
		if (context->tail < cursor->next || context->tail - cursor->next > SIM_RING)
			cursor->next = context->tail;
		if (!context->process || cursor->next == context->tail)
			continue;
		uint64_t cost = context->ring[cursor->next % SIM_RING].cost_ns;
		if (cursor->left_ns > cost)
			cursor->left_ns = cost;
		s->device[context->device].active[c / 64] |= 1ull << (c % 64);
	}
}

/* This thread's id; asked again after a fork. */
static int32_t lock_thread(void)
{
	static __thread int32_t thread, process_of_thread;

	if (!thread || process_of_thread != lock_process) {
		thread = (int32_t)syscall(SYS_gettid);
		process_of_thread = lock_process;
	}
	return thread;
}

/* Takes a robust mutex; an owner's death is repaired. */
static int take(pthread_mutex_t *lock, unsigned patience_ms)
{
	struct timespec until;
	int error = pthread_mutex_trylock(lock);

	if (error == EBUSY) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += (long)patience_ms * 1000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		error = pthread_mutex_timedlock(lock, &until);
	}
	if (error != EOWNERDEAD)
		return error;
	repair();
	pthread_mutex_consistent(lock);
	return 0;
}

/* The thread that a mutex is locked by, as the kernel would read it. */
static int32_t word_owner(pthread_mutex_t *lock)
{
	return (int32_t)(__atomic_load_n((uint32_t *)(void *)lock, __ATOMIC_ACQUIRE) &
			 FUTEX_TID_MASK);
}

/* What the kernel does for the robust list of a thread that ends. */
static void mark_dead(pthread_mutex_t *lock, int32_t owner)
{
	uint32_t *word = (uint32_t *)(void *)lock;
	uint32_t held = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	if ((int32_t)(held & FUTEX_TID_MASK) == owner)
		__atomic_compare_exchange_n(word, &held, (held & FUTEX_WAITERS) | FUTEX_OWNER_DIED,
					    false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static bool is_gone(int32_t thread)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", thread);
	return access("/proc/self", F_OK) == 0 && access(path, F_OK) != 0 && errno == ENOENT;
}

/* The PID namespace, by which threads are numbered; 0 when it cannot be told. */
static uint64_t own_space(void)
{
	static uint64_t space;
	static int32_t process_of_space = -1;
	struct stat st;

	if (process_of_space != lock_process) {
		space = stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
		process_of_space = lock_process;
	}
	return space;
}

/* Is that thread stopped? It may be in another PID namespace and not to be seen: then no. */
static bool is_stopped(int32_t thread)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/%d/stat", thread);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *end = strrchr(text, ')');
	return end && end[1] == ' ' && (end[2] == 'T' || end[2] == 't');
}

/* While the owner is stopped. False when it no longer is, and nothing is held. */
static bool take_beside(struct sim_state *s)
{
	if (take(&s->beside, 10 * PATIENCE_MS) != 0)
		return false;
	if (__atomic_load_n(&s->stopped_owner, __ATOMIC_ACQUIRE)) {
		int error = pthread_mutex_trylock(&s->lock);
		if (error != 0 && error != EOWNERDEAD) {
			have_beside = true;
			return true;
		}
		/* it died, or went on: back to the first lock */
		if (error == EOWNERDEAD) {
			repair();
			pthread_mutex_consistent(&s->lock);
		}
		s->lock_owner = 0;
		__atomic_store_n(&s->stopped_owner, 0, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&s->lock);
	}
	pthread_mutex_unlock(&s->beside);
	return false;
}

void state_lock(void)
{
	struct sim_state *s = sim_shared;
	int patience = 0;

	for (;; patience++) {
		if (__atomic_load_n(&s->stopped_owner, __ATOMIC_ACQUIRE)) {
			int32_t beside = word_owner(&s->beside);
			if (take_beside(s))
				return;
			if (patience > MOST_PATIENCE && is_gone(beside))
				mark_dead(&s->beside, beside);
			continue;
		}
		if (take(&s->lock, PATIENCE_MS) == 0) {
			__atomic_store_n(&s->lock_space, own_space(), __ATOMIC_RELAXED);
			__atomic_store_n(&s->lock_owner, lock_thread(), __ATOMIC_RELAXED);
			return;
		}
		/* The word tells even of one that died before it wrote its name. */
		int32_t owner = word_owner(&s->lock);
		bool seen = owner == __atomic_load_n(&s->lock_owner, __ATOMIC_RELAXED) &&
			    own_space() == __atomic_load_n(&s->lock_space, __ATOMIC_RELAXED);
		if (owner && seen && is_gone(owner))
			mark_dead(&s->lock, owner);
		else if (owner && ((seen && is_stopped(owner)) || patience > MOST_PATIENCE))
			__atomic_store_n(&s->stopped_owner, owner, __ATOMIC_RELEASE);
	}
}

void state_unlock(void)
{
	struct sim_state *s = sim_shared;

	if (have_beside) {
		have_beside = false;
		pthread_mutex_unlock(&s->beside);
		return;
	}
	if (s->stopped_owner && s->stopped_owner == s->lock_owner)
		__atomic_store_n(&s->stopped_owner, 0, __ATOMIC_RELEASE);
	s->lock_owner = 0;
	pthread_mutex_unlock(&s->lock);
}
