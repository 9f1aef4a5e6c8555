/*
 * The shared file: opening, process slots, who is alive, memory accounts. See shared_state.h.
 *
 * Opening is serialised by flock() on the file, which a death releases like any other lock. The
 * first process that finds no living one describes the machine anew, so that a leftover file of
 * an earlier test run with other variables does no harm.
 */
#include "shared_state.h"
#include "shared_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_MAGIC 0x63756f74612d7331ull
#define LIFE_BASE   (1ll << 40) /* the byte of slot 0 */

struct sim_state *sim_shared;
int state_fd = -1;
int state_slot = -1;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

void state_path(char *path, size_t size)
{
	const char *text = getenv("CUOTA_SIM_STATE");
	if (text && *text)
		snprintf(path, size, "%s", text);
	else
		snprintf(path, size, "/dev/shm/cuota-sim-%u", (unsigned)getuid());
}

static bool slot_is_alive(int fd, uint32_t slot)
{
	if ((int)slot == state_slot)
		return true;
	struct flock ask = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = LIFE_BASE + slot,
		.l_len = 1,
	};
	return fcntl(fd, F_OFD_GETLK, &ask) != 0 || ask.l_type != F_UNLCK;
}

/* Opens and flocks the file that the path names now (it may be replaced while we wait). */
static int open_locked(const char *path)
{
	for (;;) {
		int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 && errno == ENOENT)
			fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (fd < 0)
			return -errno;
		while (flock(fd, LOCK_EX) != 0)
			;
		struct stat ours, named;
		if (fstat(fd, &ours) == 0 && stat(path, &named) == 0 &&
		    ours.st_ino == named.st_ino && ours.st_dev == named.st_dev)
			return fd;
		close(fd);
	}
}

static bool anyone_alive(int fd, const struct sim_state *state)
{
	for (uint32_t i = 0; i < state->process_top && i < SIM_MAX_PROCESSES; i++)
		if (state->process[i].used && slot_is_alive(fd, i))
			return true;
	return false;
}

/* With flock held: a usable file behind `fd`, described by our environment if nobody lives. */
static void prepare(int fd, struct sim_state *state)
{
	if (state->magic != STATE_MAGIC) {
		/* a creator died before it was done: start from zeros, without touching pages */
		if (ftruncate(fd, 0) != 0 || ftruncate(fd, (off_t)sizeof(*state)) != 0)
			return;
		lock_init(state);
		state->layout = sizeof(*state);
		config_read_machine(&state->machine);
		__atomic_store_n(&state->magic, STATE_MAGIC, __ATOMIC_RELEASE);
		return;
	}
	state_lock();
	if (!anyone_alive(fd, state)) {
		struct sim_machine machine;
		config_read_machine(&machine);
		if (memcmp(&machine, &state->machine, sizeof(machine)) != 0) {
			state_reap();
			memset(state->device, 0, sizeof(state->device));
			state->machine = machine;
		}
	}
	state_unlock();
}

static int open_once(void)
{
	char path[4096];
	state_path(path, sizeof(path));
	for (;;) {
		int fd = open_locked(path);
		if (fd < 0)
			return fd;
		struct stat st;
		if (fstat(fd, &st) != 0)
			goto fail;
		if (st.st_size == 0 && ftruncate(fd, (off_t)sizeof(struct sim_state)) != 0)
			goto fail;
		void *map = MAP_FAILED;
		if (st.st_size == 0 || st.st_size == (off_t)sizeof(struct sim_state))
			map = mmap(NULL, sizeof(struct sim_state), PROT_READ | PROT_WRITE,
				   MAP_SHARED, fd, 0);
		if (map == MAP_FAILED) {
			if (st.st_size == 0 || st.st_size == (off_t)sizeof(struct sim_state))
				goto fail;
			/* of another build: leave it to those who use it */
			unlink(path);
			close(fd);
			continue;
		}
		sim_shared = map;
		state_fd = fd;
		prepare(fd, sim_shared);
		flock(fd, LOCK_UN);
		return 0;
	fail : {
		int error = -errno;
		close(fd);
		return error;
	}
	}
}

int state_open(void)
{
	pthread_mutex_lock(&open_lock);
	static bool started;
	int error = sim_shared ? 0 : open_once();

	if (!started)
		lock_start();
	started = true;
	pthread_mutex_unlock(&open_lock);
	return error;
}

#define INITIAL_PID_NAMESPACE 4026531836u /* the inode of /proc/self/ns/pid there */
#define MADE_UP_PIDS	      (1 << 23)	  /* above the kernel's own */

/*
 * NVML numbers processes as the initial PID namespace does. From inside another one that number cannot
 * be known; a made-up one is unique as well, where the own would be 1 in every container.
 */
static int32_t outer_pid(const struct sim_process *process)
{
	struct stat namespace;

	if (stat("/proc/self/ns/pid", &namespace) != 0 || namespace.st_ino == INITIAL_PID_NAMESPACE)
		return (int32_t)getpid();
	return MADE_UP_PIDS + (int32_t)(process - sim_shared->process);
}

static void name_process(struct sim_process *process)
{
	process->pid = outer_pid(process);
	ssize_t n = readlink("/proc/self/exe", process->name, sizeof(process->name) - 1);
	process->name[n > 0 ? n : 0] = '\0';
}

static int take_slot(void)
{
	for (uint32_t i = 0; i < SIM_MAX_PROCESSES; i++) {
		struct flock want = {
			.l_type = F_WRLCK,
			.l_whence = SEEK_SET,
			.l_start = LIFE_BASE + i,
			.l_len = 1,
		};
		if (fcntl(state_fd, F_OFD_SETLK, &want) != 0)
			continue;
		/* whoever had it is dead: what it left goes before we own the slot */
		state_reap();
		state_slot = (int)i;
		memset(&sim_shared->process[i], 0, sizeof(sim_shared->process[i]));
		name_process(&sim_shared->process[i]);
		sim_shared->process[i].start_ns = time_now_ns();
		sim_shared->process[i].used = 1;
		if (sim_shared->process_top < i + 1)
			sim_shared->process_top = i + 1;
		sim_shared->process[i].birth = ++sim_shared->births;
		return (int)i;
	}
	return -EAGAIN;
}

int state_register(void)
{
	int error = state_open();
	if (error)
		return error;
	state_lock();
	int slot = state_slot >= 0 ? state_slot : take_slot();
	state_unlock();
	return slot;
}

void state_forget(void)
{
	if (state_fd >= 0)
		close(state_fd);
	if (sim_shared)
		munmap(sim_shared, sizeof(*sim_shared));
	state_fd = -1;
	state_slot = -1;
	sim_shared = NULL;
	pthread_mutex_init(&open_lock, NULL);
}

static void bury(uint32_t slot)
{
	struct sim_state *s = sim_shared;
	for (uint32_t c = 0; c < s->context_top; c++)
		if (s->context[c].process == slot + 1)
			state_context_free(c);
	for (uint32_t i = 0; i < s->share_top; i++)
		while (s->share[i].used && s->share[i].refs[slot])
			state_share_put(i, slot);
	memset(s->process[slot].usage, 0, sizeof(s->process[slot].usage));
	s->process[slot].used = 0;
}

void state_reap(void)
{
	shares_reap();
	for (uint32_t i = 0; i < sim_shared->process_top; i++)
		if (sim_shared->process[i].used && !slot_is_alive(state_fd, i))
			bury(i);
}

uint64_t state_used_bytes(uint32_t device)
{
	uint64_t sum = sim_shared->device[device].orphan_bytes;
	for (uint32_t i = 0; i < sim_shared->process_top; i++)
		if (sim_shared->process[i].used)
			sum += sim_shared->process[i].usage[device].memory_bytes;
	return sum;
}

bool state_take_bytes(uint32_t process, uint32_t device, uint64_t bytes)
{
	uint64_t total = sim_shared->machine.memory_bytes[device];
	uint64_t used = state_used_bytes(device);
	if (bytes > total || used > total - bytes) {
		state_reap();
		used = state_used_bytes(device);
		if (bytes > total || used > total - bytes)
			return false;
	}
	sim_shared->process[process].usage[device].memory_bytes += bytes;
	return true;
}

void state_give_bytes(uint32_t process, uint32_t device, uint64_t bytes)
{
	uint64_t *used = &sim_shared->process[process].usage[device].memory_bytes;
	*used -= bytes < *used ? bytes : *used;
}

int state_context_new(uint32_t process, uint32_t device)
{
	struct sim_state *s = sim_shared;
	for (uint32_t c = 0; c < SIM_MAX_CONTEXTS; c++) {
		if (s->context[c].process)
			continue;
		s->context[c].device = device;
		s->context[c].blocked = 0;
		s->context[c].tail = 0;
		s->cursor[c] = (struct sim_cursor){0};
		s->context[c].process = process + 1;
		s->process[process].usage[device].contexts++;
		if (s->context_top < c + 1)
			s->context_top = c + 1;
		return (int)c;
	}
	return -EAGAIN;
}

void state_context_free(uint32_t context)
{
	struct sim_context *c = &sim_shared->context[context];
	if (!c->process)
		return;
	time_forget(context);
	struct sim_usage *usage = &sim_shared->process[c->process - 1].usage[c->device];
	if (usage->contexts)
		usage->contexts--;
	c->process = 0;
}
