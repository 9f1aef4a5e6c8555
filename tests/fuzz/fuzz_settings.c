/*
 * What users and admins write: the environment, the policy file, and the texts of /proc that name a
 * group. The first byte picks which; the rest is the text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/policy_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char *const names[] = {
#define ENV(name, field, type, default_text, help) #name,
#define ALIAS(name, stands_for, type)		   #name, #name "_3",
#include "base/env.def"
#undef ENV
#undef ALIAS
};

static const char *set_name, *set_value;

static const char *get(const char *name)
{
	return strcmp(name, set_name) == 0 ? set_value : NULL;
}

static void require(int holds)
{
	if (!holds)
		abort();
}

/* One variable: an error names it; what is accepted means something for the devices it speaks of. */
static void try_variable(unsigned pick, const char *text)
{
	static struct config config;
	struct error err = {""};

	set_name = names[pick % (sizeof(names) / sizeof(names[0]))];
	set_value = text;
	if (config_read(&config, get, &err) < 0) {
		require(strncmp(err.text, set_name, strlen(set_name)) == 0);
		return;
	}
	for (unsigned i = 0; i < config.mem.count; i++) {
		const struct spec *spec = &config.mem.specs[i];

		require(spec_bytes(spec, 0) != QUOTA_UNSET);
		require(config_quota(&config, spec->index, spec->uuid, 1 << 20).mem_bytes !=
			QUOTA_UNSET);
	}
}

static void try_policy(char *text)
{
	struct section_list list = {0};
	struct error err = {""};

	require(policy_parse(text, &list, &err) == 0 || err.text[0]);
	free(list.sections);
}

static void try_group(const char *text)
{
	struct group_hints hints = {.cgroup_text = text, .mountinfo_text = text};
	char name[GROUP_NAME_BYTES];

	group_auto(&hints, name);
	require(group_name_check(name, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text;

	if (!bytes)
		return 0;
	text = malloc(bytes);
	memcpy(text, data + 1, bytes - 1);
	text[bytes - 1] = '\0';
	if (data[0] == 'P')
		try_policy(text);
	else if (data[0] == 'G')
		try_group(text);
	else
		try_variable(data[0], text);
	free(text);
	return 0;
}
