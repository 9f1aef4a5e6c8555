/*
 * Container engines write their ids into cgroup paths and into the bind mounts of /etc/hosts and
 * its like; the patterns below are those of Docker, Podman, containerd, CRI-O, the kubelet and
 * slurmd.
 */
#include "base/group_name.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/size.h"

#define CGROUP_TEXT_BYTES    8192
#define MOUNTINFO_TEXT_BYTES 65536
#define INITIAL_CGROUP_NS    0xEFFFFFFBull /* the kernel's PROC_CGROUP_INIT_INO */
#define CONTAINER_ID_HEX     64
#define POD_UID_BYTES	     36
#define JOB_ID_DIGITS	     19

static const char hex_digits[] = "0123456789abcdefABCDEF";
static const char digits[] = "0123456789";

int group_name_check(const char *name, struct error *err)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._:@+-";
	size_t length = strlen(name);

	if (!length)
		return error_set(err, EINVAL, "empty: write a name, or unset the variable");
	if (length >= GROUP_NAME_BYTES)
		return error_set(err, EINVAL, "longer than %d bytes", GROUP_NAME_BYTES - 1);
	if (name[strspn(name, allowed)])
		return error_set(err, EINVAL, "a group name has letters, digits and ._:@+- only");
	if (strcmp(name, "auto") == 0)
		return error_set(err, EINVAL, "'auto' is not a name of a group");
	return 0;
}

/* The job id after a "job_" component, once slurm was named before it in the same line. */
static int find_slurm_job(const char *line, char ret_name[GROUP_NAME_BYTES])
{
	const char *slurm = strstr(line, "slurm");
	const char *job = slurm ? strstr(slurm, "/job_") : NULL;
	size_t length;

	if (!job)
		return 0;
	job += strlen("/job_");
	length = strspn(job, digits);
	if (!length || length > JOB_ID_DIGITS || (job[length] && job[length] != '/'))
		return 0;
	snprintf(ret_name, GROUP_NAME_BYTES, "slurm-%.*s", (int)length, job);
	return 1;
}

/* Length of a pod's UID at text (36 with - or the _ of systemd units, or 32 hex of a static pod),
 * or 0. */
static size_t pod_uid_length(const char *text)
{
	size_t length = strspn(text, "0123456789abcdefABCDEF-_");

	if (length == POD_UID_BYTES && (text[8] == '-' || text[8] == '_'))
		return length;
	return length == 32 && strspn(text, hex_digits) == 32 ? length : 0;
}

static int take_pod(const char *uid, char ret_name[GROUP_NAME_BYTES])
{
	size_t length = pod_uid_length(uid);

	if (!length)
		return 0;
	snprintf(ret_name, GROUP_NAME_BYTES, "pod-%.*s", (int)length, uid);
	for (char *c = ret_name; *c; c++)
		if (*c == '_')
			*c = '-';
	return 1;
}

/* "pod" + UID below a kubepods cgroup. */
static int find_cgroup_pod(const char *line, char ret_name[GROUP_NAME_BYTES])
{
	const char *pod = strstr(line, "kubepods");

	for (; pod; pod = strstr(pod + 1, "pod"))
		if (strncmp(pod, "pod", 3) == 0 && take_pod(pod + 3, ret_name))
			return 1;
	return 0;
}

/* The kubelet's own directory, where /etc/hosts of every pod is kept. */
static int find_mount_pod(const char *line, char ret_name[GROUP_NAME_BYTES])
{
	const char *pod = strstr(line, "/pods/");

	return pod && strstr(line, "/etc-hosts ") && take_pod(pod + strlen("/pods/"), ret_name);
}

/* A run of exactly 64 hex digits. */
static int find_container(const char *line, char ret_name[GROUP_NAME_BYTES])
{
	while (*(line += strcspn(line, hex_digits))) {
		size_t length = strspn(line, hex_digits);

		if (length == CONTAINER_ID_HEX) {
			snprintf(ret_name, GROUP_NAME_BYTES, "ctr-%.12s", line);
			return 1;
		}
		line += length;
	}
	return 0;
}

/* Only the mounts an engine makes for each container; layers of an overlay have such ids as well.
 */
static int find_mount_container(const char *line, char ret_name[GROUP_NAME_BYTES])
{
	static const char *const targets[] = {" /etc/hosts ", " /etc/hostname ",
					      " /etc/resolv.conf "};

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		const char *target = strstr(line, targets[i]);
		char root[PATH_MAX];
		size_t length;

		if (!target)
			continue;
		length = (size_t)(target - line);
		if (length >= sizeof(root))
			return 0;
		memcpy(root, line, length);
		root[length] = '\0';
		return find_container(root, ret_name);
	}
	return 0;
}

typedef int finder(const char *line, char ret_name[GROUP_NAME_BYTES]);

static int find_in_lines(const char *text, finder *find, char ret_name[GROUP_NAME_BYTES])
{
	char line[PATH_MAX];

	while (text && *text) {
		size_t length = strcspn(text, "\n");

		if (length < sizeof(line)) {
			memcpy(line, text, length);
			line[length] = '\0';
			if (find(line, ret_name))
				return 1;
		}
		text += length;
		text += *text == '\n';
	}
	return 0;
}

void group_auto(const struct group_hints *hints, char ret_name[GROUP_NAME_BYTES])
{
	const char *job = hints->slurm_job_id;
	size_t job_length = job ? strlen(job) : 0;

	if (job_length && job_length <= JOB_ID_DIGITS && strspn(job, digits) == job_length) {
		snprintf(ret_name, GROUP_NAME_BYTES, "slurm-%s", job);
		return;
	}
	if (find_in_lines(hints->cgroup_text, find_slurm_job, ret_name) ||
	    find_in_lines(hints->cgroup_text, find_cgroup_pod, ret_name) ||
	    find_in_lines(hints->mountinfo_text, find_mount_pod, ret_name) ||
	    find_in_lines(hints->cgroup_text, find_container, ret_name) ||
	    find_in_lines(hints->mountinfo_text, find_mount_container, ret_name))
		return;
	if (hints->cgroup_namespace && hints->cgroup_namespace != INITIAL_CGROUP_NS)
		snprintf(ret_name, GROUP_NAME_BYTES, "cgns-%llu",
			 (unsigned long long)hints->cgroup_namespace);
	else
		snprintf(ret_name, GROUP_NAME_BYTES, "uid-%u", hints->uid);
}

/* The number in "cgroup:[4026531835]", 0 if there is none. */
static uint64_t cgroup_namespace(void)
{
	char link[64];
	ssize_t length = readlink("/proc/self/ns/cgroup", link, sizeof(link) - 1);
	char *number;
	uint64_t inode;

	if (length < 0)
		return 0;
	link[length] = '\0';
	number = strchr(link, '[');
	if (!number)
		return 0;
	number++;
	number[strcspn(number, "]")] = '\0';
	return number_parse(number, 1, UINT64_MAX, &inode, NULL) < 0 ? 0 : inode;
}

void group_auto_self(const char *slurm_job_id, char ret_name[GROUP_NAME_BYTES])
{
	char cgroup_text[CGROUP_TEXT_BYTES];
	char *mountinfo_text = malloc(MOUNTINFO_TEXT_BYTES);
	struct group_hints hints = {
		.slurm_job_id = slurm_job_id,
		.cgroup_text = cgroup_text,
		.mountinfo_text = mountinfo_text,
		.cgroup_namespace = cgroup_namespace(),
		.uid = geteuid(),
	};

	file_slurp("/proc/self/cgroup", cgroup_text, sizeof(cgroup_text));
	if (mountinfo_text)
		file_slurp("/proc/self/mountinfo", mountinfo_text, MOUNTINFO_TEXT_BYTES);
	group_auto(&hints, ret_name);
	free(mountinfo_text);
}
