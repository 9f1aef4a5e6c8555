/*
 * The admin's policy: /etc/cuota/cuota.conf and conf.d beside it, INI, read by the library
 * itself with no dependency. A ceiling: the environment may only lower it.
 *
 *   [default]            mem = 20G   sm = 50%   mem-per-process = 10G   weight = 100   priority = normal
 *   [user alice] [user 1000] [unix-group students] [group train] [gpu GPU-8f3a…]
 *
 * Names of users and unix groups are resolved by the command, never here (NSS loads plug-ins into the
 * host program): the library matches numbers, and names from /etc/passwd and /etc/group read as text.
 */
#ifndef CUOTA_BASE_POLICY_H
#define CUOTA_BASE_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "base/error.h"
#include "base/quota.h"

struct policy; /* opaque; policy_free() */

/*
 * Reads path and the *.conf files of the directory conf.d beside it, in name order. A missing path is
 * an empty policy. A file that somebody other than root (or, for a path given in a test, the caller)
 * could write, or a line that cannot be understood, is -EPERM / -EINVAL with file, line and reason.
 */
int policy_read(const char *path, struct policy **ret, struct error *err);
void policy_free(struct policy *policy);

struct policy_subject {
	unsigned uid;
	const unsigned *gids;
	size_t gid_count;
	const char *group; /* cuota group */
	const char *uuid;
	uint64_t device_bytes;
};

/* The strictest of all matching sections. */
struct quota policy_quota(const struct policy *policy, const struct policy_subject *who);

#endif
