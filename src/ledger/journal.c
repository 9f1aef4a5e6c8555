/*
 * See journal.h. Numbers are whole (bytes, ns, ms), so that no locale can spoil them; text is
 * reduced to printable ASCII without quotes and backslashes, so that a line is JSON whatever a
 * process calls itself.
 */
#include "ledger/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/open.h"
#include "ledger/protocol.h"

#define LINE_BYTES     768
#define MAX_ELAPSED_US (3600 * 1000000ull)

/* A directory's path with room for "/journal". Written once, by the first thread that has a seat.
 */
static char journal_dir[PATH_MAX];

/* When each ledger's group was sampled last; the service thread's alone. */
#define JOURNAL_LEDGERS 64
static struct {
	const struct ledger *ledger;
	uint64_t at_ns;
} sampled[JOURNAL_LEDGERS];

void journal_setup(const char *dir)
{
	if (strlen(dir) + 32 > sizeof(journal_dir) || journal_dir[0])
		return;
	snprintf(journal_dir, sizeof(journal_dir), "%s/journal", dir);
}

struct line {
	char text[LINE_BYTES];
	size_t length;
};

static void put(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct line *line, const char *format, ...)
{
	size_t room = sizeof(line->text) - line->length;
	va_list args;
	int added;

	va_start(args, format);
	added = vsnprintf(line->text + line->length, room, format, args);
	va_end(args);
	line->length += added < 0 || (size_t)added >= room ? room - 1 : (size_t)added;
}

static void put_number(struct line *line, const char *key, uint64_t value)
{
	put(line, ",\"%s\":%llu", key, (unsigned long long)value);
}

static void put_text(struct line *line, const char *key, const char *text)
{
	put(line, ",\"%s\":\"", key);
	for (; *text; text++)
		put(line, "%c",
		    *text < 0x20 || *text > 0x7e || *text == '"' || *text == '\\' ? '?' : *text);
	put(line, "\"");
}

static unsigned long long wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000;
}

/* Everyone may make files in it and nobody may touch another's: as /tmp. */
static int open_directory(void)
{
	int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(journal_dir, flags);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (!mkdir(journal_dir, 0700))
		(void)!chmod(journal_dir, 01777); /* not by umask */
	return open(journal_dir, flags);
}

/* Our own regular file under its only name, or nothing. */
static int open_file(int dir_fd, const char *name)
{
	int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int fd = openat(dir_fd, name, flags);
	struct file_status status;

	if (fd < 0 && errno == ENOENT)
		fd = openat(dir_fd, name, flags | O_CREAT, 0644);
	if (fd < 0)
		return -1;
	if (!file_status(fd, "", &status) && S_ISREG(status.mode) && status.uid == geteuid())
		return fd;
	close(fd);
	return -1;
}

/* Moves a full file aside. Whoever holds the lock of the file that the name still means may do it.
 */
static void rotate(int dir_fd, int fd, const char *name)
{
	struct file_status open_one, named;
	char old[64];

	snprintf(old, sizeof(old), "%s.1", name);
	if (flock(fd, LOCK_EX | LOCK_NB))
		return;
	if (!file_status(fd, "", &open_one) && !file_status(dir_fd, name, &named) &&
	    open_one.inode == named.inode && open_one.device == named.device)
		(void)!renameat(dir_fd, name, dir_fd, old);
	flock(fd, LOCK_UN);
}

/* Closes the line and writes it in one append. */
static void append(const char *kind, uint64_t limit_bytes, struct line *line)
{
	struct file_status status;
	int dir_fd, fd, saved = errno;
	char name[48];

	put(line, "}\n");
	if (line->text[line->length - 1] != '\n')
		return; /* cut: cannot be, with names as short as they are */
	dir_fd = open_directory();
	snprintf(name, sizeof(name), "u%u-%s.jsonl", (unsigned)geteuid(), kind);
	fd = dir_fd < 0 ? -1 : open_file(dir_fd, name);
	if (fd >= 0 && !file_status(fd, "", &status) && status.bytes + line->length > limit_bytes) {
		rotate(dir_fd, fd, name);
		close(fd);
		fd = open_file(dir_fd, name);
	}
	if (fd >= 0) {
		(void)!write(fd, line->text, line->length);
		close(fd);
	}
	if (dir_fd >= 0)
		close(dir_fd);
	errno = saved;
}

static void begin(struct line *line, const char *type, const struct ledger *ledger,
		  const char *group)
{
	line->length = 0;
	put(line, "{\"v\":%d,\"type\":\"%s\"", JOURNAL_VERSION, type);
	put_number(line, "t_ms", wall_ms());
	put_text(line, "gpu", ledger->uuid);
	put_text(line, "group", group);
}

void journal_end(const struct ledger *ledger, const struct slot_view *slot, const char *group)
{
	const struct ledger_header *header;
	uint64_t now_ns = clock_now_ns();
	struct line line;
	char device[64];

	if (!journal_dir[0] || ledger->private_copy)
		return;
	header = &ledger->file->header;
	words_load(header->device_name, 8, device);
	begin(&line, "end", ledger, group);
	put_text(&line, "device", device);
	put_number(&line, "device_bytes",
		   atomic_load_explicit(&header->device_bytes, memory_order_relaxed));
	put_number(&line, "uid", slot->uid);
	put_number(&line, "pid", slot->pid);
	put_number(&line, "pidns", slot->pid_ns_inode);
	put_text(&line, "comm", slot->comm);
	put_number(&line, "alive_ms",
		   (now_ns > slot->start_ns ? now_ns - slot->start_ns : 0) / NS_PER_MS);
	put_number(&line, "busy_ns", slot->busy_ns);
	put_number(&line, "byte_s", slot->byte_seconds);
	put_number(&line, "peak", slot->peak_bytes);
	put_number(&line, "denials", slot->denials);
	put_number(&line, "throttled_ns", slot->throttled_ns);
	put_number(&line, "launches", slot->launches);
	put_number(&line, "reaped", slot->pid != (uint32_t)getpid());
	append("ends", JOURNAL_END_BYTES, &line);
}

/* Nobody with a lower slot lives in this group. */
static int speaks_for_group(struct ledger_file *file, const struct member *member)
{
	for (unsigned i = 0; i < member->slot; i++)
		if (atomic_load_explicit(&file->live[i].word, memory_order_relaxed) &&
		    slot_group(&file->slot[i]) == member->group)
			return 0;
	return 1;
}

static void sample(const struct ledger *ledger, const struct member *member)
{
	const struct group *group = &ledger->file->group[member->group];
	uint64_t cap = ledger_group_cap(member);
	struct line line;

	begin(&line, "sample", ledger, member->name);
	put_number(&line, "uid", geteuid());
	put_number(&line, "used", ledger_group_used(member));
	if (cap <= INT64_MAX)
		put_number(&line, "cap", cap);
	put_number(&line, "sm_bp", atomic_load_explicit(&member->sm_cap_bp, memory_order_relaxed));
	put_number(&line, "busy_ns",
		   atomic_load_explicit(&group->sm.busy_ns, memory_order_relaxed));
	put_number(&line, "throttled_ns",
		   atomic_load_explicit(&group->sm.throttled_ns, memory_order_relaxed));
	put_number(&line, "denials", atomic_load_explicit(&group->denials, memory_order_relaxed));
	put_number(&line, "created_ns",
		   atomic_load_explicit(&group->created_ns, memory_order_relaxed));
	append("samples", JOURNAL_SAMPLE_BYTES, &line);
}

static int sample_is_due(const struct ledger *ledger, uint64_t now_ns)
{
	unsigned i = 0;

	while (i < JOURNAL_LEDGERS && sampled[i].ledger && sampled[i].ledger != ledger)
		i++;
	if (i == JOURNAL_LEDGERS)
		return 0;
	if (sampled[i].ledger && now_ns - sampled[i].at_ns < JOURNAL_SAMPLE_NS)
		return 0;
	sampled[i].ledger = ledger;
	sampled[i].at_ns = now_ns;
	return 1;
}

/*
 * Adds what was held since the last time. Whoever exchanges the instant owns the time since the one before, so
 * that any number of members may do this and each moment counts once.
 */
static void integrate(_Atomic uint64_t *byte_seconds, _Atomic uint64_t *at_ns, uint64_t used_bytes,
		      uint64_t now_ns)
{
	uint64_t since_ns = atomic_exchange(at_ns, now_ns), elapsed_us;

	if (!since_ns || now_ns <= since_ns)
		return;
	elapsed_us = (now_ns - since_ns) / NS_PER_US;
	if (elapsed_us > MAX_ELAPSED_US)
		return; /* a hostile or suspended clock: no time is better than years */
	atomic_fetch_add(byte_seconds, (used_bytes >> 10) * elapsed_us / 1000000 << 10);
}

void journal_tick(struct ledger *ledger, struct member *member, uint64_t now_ns)
{
	struct group *group = &ledger->file->group[member->group];
	struct slot *slot = &ledger->file->slot[member->slot];

	integrate(&slot->byte_seconds, &slot->byte_seconds_at_ns, ledger_process_used(member),
		  now_ns);
	integrate(&group->byte_seconds, &group->byte_seconds_at_ns, ledger_group_used(member),
		  now_ns);
	if (!journal_dir[0] || ledger->private_copy || !sample_is_due(ledger, now_ns))
		return;
	if (speaks_for_group(ledger->file, member))
		sample(ledger, member);
}
