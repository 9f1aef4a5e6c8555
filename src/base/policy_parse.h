/*
 * Sections of the policy file as parsed; only policy.c uses this.
 */
#ifndef CUOTA_BASE_POLICY_PARSE_H
#define CUOTA_BASE_POLICY_PARSE_H

#include <stddef.h>

#include "base/error.h"
#include "base/group_name.h"
#include "base/spec.h"

enum section_kind {
	SECTION_DEFAULT,
	SECTION_USER,
	SECTION_UNIX_GROUP,
	SECTION_GROUP,
	SECTION_GPU,
};

struct section {
	enum section_kind kind;
	unsigned id;		     /* uid or gid */
	int unknown;		     /* a name that /etc/passwd or /etc/group does not have */
	char name[GROUP_NAME_BYTES]; /* as written: user, unix group, cuota group or GPU UUID */
	struct spec mem, mem_process, sm, weight, priority;
};

struct section_list {
	size_t count, room;
	struct section *sections; /* owned; free() */
};

/*
 * Appends the sections of `text`, which is changed. -EINVAL with "LINE: reason", -ENOMEM. What was
 * appended before an error stays in the list.
 */
int policy_parse(char *text, struct section_list *list, struct error *err);

#endif
