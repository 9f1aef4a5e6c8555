/*
 * See process.h. Reads small files of /proc with plain system calls; every field is checked before
 * use.
 */
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INITIAL_PID_NS 4026531836ull /* PROC_PID_INIT_INO, fixed since Linux 3.8 */

static ssize_t read_file(const char *path, char *buf, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = read(fd, buf, bytes - 1);
	if (got < 0)
		got = -errno;
	close(fd);
	if (got >= 0)
		buf[got] = '\0';
	return got;
}

static uint64_t ns_inode(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat(path, &st) ? 0 : (uint64_t)st.st_ino;
}

/* "comm) S ppid ..." : comm may hold anything, so fields are counted from the last ')'. */
static int parse_stat(const char *text, struct process *ret)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	const char *field = close;

	if (!open || !close || close < open)
		return -EPROTO;
	snprintf(ret->comm, sizeof(ret->comm), "%.*s", (int)(close - open - 1), open + 1);
	for (int i = 2; i < 22 && field; i++)
		field = strchr(field + 1, ' ');
	if (!field)
		return -EPROTO;
	ret->start_ticks = strtoull(field + 1, NULL, 10);
	return 0;
}

static void parse_status(const char *text, struct process *ret)
{
	const char *uid = strstr(text, "\nUid:"), *ns = strstr(text, "\nNSpid:");

	if (uid)
		ret->uid = (uint32_t)strtoul(uid + 5, NULL, 10);
	ret->inner_pid = (uint32_t)ret->pid;
	if (!ns)
		return;
	for (const char *at = ns + 7; *at == ' ' || *at == '\t';) {
		char *end;

		ret->inner_pid = (uint32_t)strtoul(at, &end, 10);
		at = end;
	}
}

int process_read(pid_t pid, struct process *ret)
{
	char path[64], text[4096];
	ssize_t got;

	memset(ret, 0, sizeof(*ret));
	ret->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	got = read_file(path, text, sizeof(text));
	if (got < 0)
		return (int)got;
	if (parse_stat(text, ret))
		return -EPROTO;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	got = read_file(path, text, sizeof(text));
	if (got < 0)
		return (int)got;
	parse_status(text, ret);
	ret->pid_ns_inode = ns_inode(pid);
	return 0;
}

int process_maps(pid_t pid)
{
	char path[64], line[PATH_MAX + 128];
	FILE *maps;
	int found = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (found != (MAPS_CUDA | MAPS_CUOTA) && fgets(line, sizeof(line), maps)) {
		const char *file = strchr(line, '/');

		if (!file)
			continue;
		if (strstr(file, "/libcuda.so") || !strncmp(file, "/dev/nvidia", 11))
			found |= MAPS_CUDA;
		if (strstr(file, "/libcuota.so"))
			found |= MAPS_CUOTA;
	}
	if (ferror(maps))
		found = found ? found : -EACCES;
	fclose(maps);
	return found;
}

unsigned process_children(pid_t pid, pid_t *ret, unsigned room)
{
	char path[320], text[4096];
	unsigned count = 0;
	struct dirent *entry;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && count < room && (entry = readdir(tasks))) {
		char *at = text, *end;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid, entry->d_name);
		if (read_file(path, text, sizeof(text)) <= 0)
			continue;
		while (count < room) {
			long child = strtol(at, &end, 10);

			if (end == at || child <= 0)
				break;
			ret[count++] = (pid_t)child;
			at = end;
		}
	}
	if (tasks)
		closedir(tasks);
	return count;
}

int process_sees_all(void)
{
	return ns_inode(getpid()) == INITIAL_PID_NS;
}

int process_owns(const struct process *process, const struct slot_view *slot)
{
	if (process->inner_pid != slot->pid)
		return 0;
	if (slot->start_ticks && process->start_ticks != slot->start_ticks)
		return 0;
	return !slot->pid_ns_inode || !process->pid_ns_inode ||
	       process->pid_ns_inode == slot->pid_ns_inode;
}

static int pid_owns(pid_t pid, const struct slot_view *slot)
{
	struct process process;

	return !process_read(pid, &process) && process_owns(&process, slot);
}

static pid_t next_process(DIR *proc)
{
	struct dirent *entry;

	while ((entry = readdir(proc))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (pid > 0 && !*end)
			return (pid_t)pid;
	}
	return 0;
}

pid_t process_of_slot(const struct slot_view *slot)
{
	DIR *proc;
	pid_t pid;

	if (pid_owns((pid_t)slot->pid, slot))
		return (pid_t)slot->pid;
	proc = opendir("/proc");
	if (!proc)
		return 0;
	while ((pid = next_process(proc)))
		if (pid_owns(pid, slot))
			break;
	closedir(proc);
	return pid;
}

pid_t process_named(const char *comm_prefix)
{
	DIR *proc = opendir("/proc");
	struct process process;
	pid_t pid = 0;

	while (proc && (pid = next_process(proc)))
		if (!process_read(pid, &process) &&
		    !strncmp(process.comm, comm_prefix, strlen(comm_prefix)))
			break;
	if (proc)
		closedir(proc);
	return pid;
}
