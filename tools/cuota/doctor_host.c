/*
 * `cuota doctor`, the host: the library file, the environment, where ledgers go, the admin's policy.
 */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/policy.h"
#include "run.h"

#define LD_SO_PRELOAD "/etc/ld.so.preload"

/* The newest GLIBC_2.N that the file names in its string table. */
static int glibc_needed(const char *path)
{
	static const char tag[] = "GLIBC_2.";
	int fd = open(path, O_RDONLY | O_CLOEXEC), newest = 0;
	const char *at, *end;
	struct stat st;
	char *bytes;

	if (fd < 0 || fstat(fd, &st) || !st.st_size) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return 0;
	end = bytes + st.st_size;
	for (at = bytes; (at = memmem(at, (size_t)(end - at), tag, sizeof(tag) - 1)); at++) {
		int minor = 0;

		for (const char *digit = at + sizeof(tag) - 1;
		     digit < end && *digit >= '0' && *digit <= '9' && minor < 1000; digit++)
			minor = minor * 10 + *digit - '0';
		newest = minor > newest ? minor : newest;
	}
	munmap(bytes, (size_t)st.st_size);
	return newest;
}

void doctor_library(struct doctor *doctor)
{
	const char *version = gnu_get_libc_version();
	char path[PATH_MAX];
	struct error err = {""};
	int needs;

	if (run_library_find(path, &err)) {
		doctor_add(doctor, "library", DOCTOR_BAD, "%s", err.text);
		doctor_mend(doctor, "export CUOTA_LIBRARY=/path/to/libcuota.so");
		return;
	}
	needs = glibc_needed(path);
	doctor_add(doctor, "library", DOCTOR_GOOD, "%s, for glibc 2.%d or newer; this host has %s",
		   path, needs, version);
	if (needs > 28) {
		doctor_add(doctor, "library", DOCTOR_WARN,
			   "it needs glibc 2.%d: no program at all starts with it in an older "
			   "container "
			   "image",
			   needs);
		doctor_mend(doctor, "objdump -T %s | grep GLIBC_2.%d", path, needs);
	}
	if (access(path, R_OK))
		doctor_add(doctor, "library", DOCTOR_BAD, "%s cannot be read by everybody", path);
}

static const char *get_environment(const char *name)
{
	return getenv(name);
}

/* Every libcuota of a preload list must exist: a missing one is a warning of the loader and no quota. */
static void check_list(struct doctor *doctor, const char *where, const char *list)
{
	while (*list) {
		size_t length = strcspn(list, ": \n\t");
		char entry[PATH_MAX];

		snprintf(entry, sizeof(entry), "%.*s", (int)length, list);
		list += length + (list[length] != '\0');
		if (!strstr(entry, "libcuota.so"))
			continue;
		if (strchr(entry, '/') && !strchr(entry, '$') && access(entry, R_OK)) {
			doctor_add(doctor, "preload", DOCTOR_BAD,
				   "%s names %s: %s; programs run without "
				   "a quota",
				   where, entry, strerror(errno));
			doctor_mend(doctor, "ls -l %s", entry);
		} else {
			doctor_add(doctor, "preload", DOCTOR_GOOD, "%s names %s", where, entry);
		}
	}
}

void doctor_environment(struct doctor *doctor)
{
	struct config *config = malloc(sizeof(*config));
	struct error err = {""};
	char text[4096] = "";
	FILE *file = fopen(LD_SO_PRELOAD, "re");

	if (config && config_read(config, get_environment, &err)) {
		doctor_add(doctor, "environment", DOCTOR_BAD, "%s", err.text);
		doctor_mend(doctor, "unset %.*s", (int)strcspn(err.text, "="), err.text);
	} else {
		doctor_add(doctor, "environment", DOCTOR_GOOD, "%s",
			   config && config->any_set
				   ? "the quota variables set here are well formed"
				   : "no quota variable is set here");
	}
	free(config);
	if (getenv("LD_PRELOAD"))
		check_list(doctor, "LD_PRELOAD", getenv("LD_PRELOAD"));
	if (file && fread(text, 1, sizeof(text) - 1, file))
		check_list(doctor, LD_SO_PRELOAD, text);
	if (file)
		fclose(file);
}

static void check_directory(struct doctor *doctor, const char *path)
{
	struct stat st;

	if (stat(path, &st)) {
		doctor_add(doctor, "directory", DOCTOR_BAD, "%s: %s", path, strerror(errno));
		doctor_mend(doctor, "sudo install -d -m 1777 %s", path);
		return;
	}
	if (!S_ISDIR(st.st_mode)) {
		doctor_add(doctor, "directory", DOCTOR_BAD, "%s is no directory", path);
		return;
	}
	if (access(path, W_OK | X_OK)) {
		doctor_add(doctor, "directory", DOCTOR_BAD, "%s cannot be written by this user: %s",
			   path, strerror(errno));
		doctor_mend(doctor, "sudo chmod 1777 %s", path);
		return;
	}
	if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX)) {
		doctor_add(
			doctor, "directory", DOCTOR_WARN,
			"%s is writable by all and not sticky: anybody may delete another's ledger",
			path);
		doctor_mend(doctor, "sudo chmod 1777 %s", path);
		return;
	}
	if (!(st.st_mode & S_IWOTH))
		doctor_add(
			doctor, "directory", DOCTOR_NOTE,
			"%s is not open to every user: those outside get caps for themselves alone",
			path);
	doctor_add(doctor, "directory", DOCTOR_GOOD, "ledgers are in %s (mode %04o)", path,
		   (unsigned)(st.st_mode & 07777));
}

void doctor_directory(struct doctor *doctor)
{
	const char *set = getenv("CUOTA_DIR");

	if (set && *set) {
		check_directory(doctor, set);
		return;
	}
	if (!access("/run/cuota", F_OK)) {
		check_directory(doctor, "/run/cuota");
		return;
	}
	doctor_add(doctor, "directory", DOCTOR_WARN,
		   "there is no /run/cuota; ledgers go to /dev/shm/cuota, which containers and "
		   "some batch "
		   "jobs do not share");
	doctor_mend(doctor, "sudo install -d -m 1777 /run/cuota");
}

void doctor_policy(struct doctor *doctor)
{
	struct policy *policy = NULL;
	struct error err = {""};
	const char *path = getenv("CUOTA_CONFIG");

	if (policy_read(path, &policy, &err)) {
		doctor_add(doctor, "policy", DOCTOR_BAD, "%s", err.text);
		doctor_mend(doctor, "cuota config check");
		return;
	}
	if (policy_warning(policy)[0]) {
		doctor_add(doctor, "policy", DOCTOR_WARN, "%s", policy_warning(policy));
		doctor_mend(doctor, "cuota config check");
	} else if (access(POLICY_PATH, F_OK) && !policy_any(policy)) {
		doctor_add(doctor, "policy", DOCTOR_NOTE,
			   "%s is not there: nothing bounds what users ask "
			   "for",
			   POLICY_PATH);
	} else {
		doctor_add(doctor, "policy", DOCTOR_GOOD, "the policy can be read");
	}
	policy_free(policy);
}
