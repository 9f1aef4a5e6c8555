/*
 * PIDs of the group's processes as this process's PID namespace sees them.
 *
 * A ledger slot holds the PID that its owner saw. In the same namespace that is the answer; a process of a
 * namespace below (a container, seen from the host) is looked for in /proc by namespace and inner PID; one that
 * /proc does not show here has no PID here.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hooks/nvml_view.h"

/* Inode of the PID namespace of /proc/<pid>; 0 when it cannot be known. */
static uint64_t namespace_of(const char *pid)
{
	char path[64], text[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", pid);
	length = readlink(path, text, sizeof(text) - 1);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	return strncmp(text, "pid:[", 5) == 0 ? strtoull(text + 5, NULL, 10) : 0;
}

/* The last number of the NSpid line: the PID in the process's own namespace. */
static uint32_t inner_pid(const char *pid)
{
	char path[64], text[4096], *line, *end;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%.20s/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	line = strstr(text, "\nNSpid:");
	if (!line)
		return 0;
	line += strlen("\nNSpid:");
	end = line + strcspn(line, "\n");
	*end = '\0';
	while (end > line && end[-1] != '\t' && end[-1] != ' ')
		end--;
	return (uint32_t)strtoul(end, NULL, 10);
}

static int is_number(const char *name)
{
	return name[0] && name[strspn(name, "0123456789")] == '\0';
}

/* Fills in the zero entries that belong to other namespaces. */
static void search_proc(const struct nvml_view *view, uint32_t *pids)
{
	const struct slot_view *slot;
	struct dirent *entry;
	DIR *proc = opendir("/proc");

	while (proc && (entry = readdir(proc))) {
		uint64_t ns = is_number(entry->d_name) ? namespace_of(entry->d_name) : 0;
		uint32_t inner = 0;
		unsigned at = 0;

		for (unsigned i = 0; ns && (slot = nvml_view_next(view, &at)); i++) {
			if (pids[i] || slot->pid_ns_inode != ns)
				continue;
			if (!inner)
				inner = inner_pid(entry->d_name);
			if (inner == slot->pid)
				pids[i] = (uint32_t)strtoul(entry->d_name, NULL, 10);
		}
	}
	if (proc)
		closedir(proc);
}

unsigned nvml_view_pids(const struct nvml_view *view, uint32_t *ret_pids)
{
	uint64_t here = namespace_of("self");
	const struct slot_view *slot;
	unsigned count = 0, foreign = 0, at = 0;

	while ((slot = nvml_view_next(view, &at))) {
		int same = !here || !slot->pid_ns_inode || slot->pid_ns_inode == here;

		ret_pids[count++] = same ? slot->pid : 0;
		foreign += !same;
	}
	if (foreign)
		search_proc(view, ret_pids);
	return count;
}
