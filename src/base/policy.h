/*
 * The admin's policy: /etc/cuota/cuota.conf and conf.d beside it, INI, read by the library itself
 * with no dependency. A ceiling: the environment may only lower it, and cannot point elsewhere: a
 * file named by CUOTA_CONFIG is read in addition, never instead.
 *
 *   [default]            mem = 20G   sm = 50%   mem-per-process = 10G   weight = 100   priority =
 * normal [user alice] [user 1000] [unix-group students] [group train] [gpu GPU-8f3a...]
 *
 * Names of users and unix groups are looked up in /etc/passwd and /etc/group as text, never through
 * NSS (which loads plug-ins into the host program). A name that is not there matches nobody and is
 * told by policy_warning().
 */
#ifndef CUOTA_BASE_POLICY_H
#define CUOTA_BASE_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/quota.h"

#define POLICY_PATH "/etc/cuota/cuota.conf"

struct policy; /* opaque; policy_free() */

/*
 * Reads POLICY_PATH and, when `path` names another file ("" or NULL: none), that one too; with
 * each, the
 * *.conf files of the directory conf.d beside it, in name order. No POLICY_PATH is an empty policy;
 * a missing `path` is -ENOENT.
 *
 * -EPERM: a file (or conf.d, or the directory of POLICY_PATH) that others could write; POLICY_PATH
 * must belong to root, `path` to root or the effective user. -EINVAL, -EFBIG: what cannot be
 * understood. -ELOOP: a symbolic link. The reason names file and line. On error there is no policy,
 * not half a one: the caller must not go on as if nothing were limited.
 */
int policy_read(const char *path, struct policy **ret, struct error *err);

/* The same with every path given, for tests: "" for `system_path` or `path` means none. */
int policy_read_from(const char *system_path, const char *path, struct policy **ret,
		     struct error *err);

void policy_free(struct policy *policy);

/* 1 if any file has any section: this process is limited by somebody, whatever its environment says. */
int policy_any(const struct policy *policy);

/* "" or one line about a section that can match nobody here; lives as long as the policy. */
const char *policy_warning(const struct policy *policy);

struct policy_subject {
	unsigned uid;
	const unsigned *gids; /* effective and supplementary */
	size_t gid_count;
	const char *group; /* cuota group, "" or NULL = none */
	const char *uuid;  /* of the device, NULL = unknown */
	uint64_t device_bytes;
};

/*
 * What the policy allows; field by field:
 *   1. the strictest of the [user], [unix-group] and [gpu] sections that match;
 *   2. where none of them says anything: [default];
 *   3. never more than any matching [group] section says. Users choose their group's name, so such
 * a section can lower what 1 and 2 allow but not raise it. With two files, quota_min() of both, the
 * system's first.
 */
struct quota policy_quota(const struct policy *policy, const struct policy_subject *who);

#endif
