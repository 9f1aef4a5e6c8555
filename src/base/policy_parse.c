/*
 * The INI of the policy file: [kind name] and key = value, # or ; for comments. Strict: what is not
 * understood is an error with its line, since a section that is skipped is a limit that is missing.
 */
#include "base/policy_parse.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/size.h"

static const char blanks[] = " \t\r";

/* The text without blanks around it; cuts in place. */
static char *trim(char *text)
{
	size_t length;

	text += strspn(text, blanks);
	length = strlen(text);
	while (length && strchr(blanks, text[length - 1]))
		text[--length] = '\0';
	return text;
}

/* No value holds # or ;, so a comment may also stand behind one, after a blank. */
static void cut_comment(char *line)
{
	for (char *c = line; *c; c++) {
		if ((*c == '#' || *c == ';') && (c == line || strchr(blanks, c[-1]))) {
			*c = '\0';
			return;
		}
	}
}

static char *unquote(char *text)
{
	size_t length = strlen(text);

	if (length < 2 || text[0] != '"' || text[length - 1] != '"')
		return text;
	text[length - 1] = '\0';
	return text + 1;
}

static struct section *append_section(struct section_list *list)
{
	struct section *section;

	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 8;
		struct section *more = reallocarray(list->sections, room, sizeof(*more));

		if (!more)
			return NULL;
		list->sections = more;
		list->room = room;
	}
	section = &list->sections[list->count++];
	memset(section, 0, sizeof(*section));
	return section;
}

/* A number, or a name looked up in a text of /etc/passwd's shape. */
static int resolve_id(struct section *section, const char *database, struct error *err)
{
	uint64_t number;
	int r;

	if (!section->name[strspn(section->name, "0123456789")]) {
		r = number_parse(section->name, 0, UINT_MAX - 1, &number, err);
		section->id = r < 0 ? 0 : (unsigned)number;
		return r;
	}
	if (strpbrk(section->name, ":/"))
		return error_set(err, EINVAL, "not a name: '%s'", section->name);
	section->unknown = file_find_id(database, section->name, &section->id) < 0;
	return 0;
}

static int check_name(struct section *section, struct error *err)
{
	switch (section->kind) {
	case SECTION_USER: return resolve_id(section, "/etc/passwd", err);
	case SECTION_UNIX_GROUP: return resolve_id(section, "/etc/group", err);
	case SECTION_GROUP: return group_name_check(section->name, err);
	case SECTION_GPU: return spec_check_uuid(section->name, err);
	case SECTION_DEFAULT: break;
	}
	return 0;
}

/* "[kind name]" without its brackets. */
static int parse_header(char *header, struct section *section, struct error *err)
{
	static const char *const kinds[] = {[SECTION_DEFAULT] = "default",
					    [SECTION_USER] = "user",
					    [SECTION_UNIX_GROUP] = "unix-group",
					    [SECTION_GROUP] = "group",
					    [SECTION_GPU] = "gpu"};
	char *kind = trim(header), *name = kind + strcspn(kind, blanks);
	char quoted[ERROR_QUOTE_BYTES];
	size_t i, count = sizeof(kinds) / sizeof(kinds[0]);

	if (*name)
		*name++ = '\0';
	name = unquote(trim(name));
	for (i = 0; i < count && strcmp(kind, kinds[i]) != 0; i++)
		;
	if (i == count)
		return error_set(err, EINVAL,
				 "unknown section [%s]: default, user, unix-group, group or gpu",
				 error_quote(kind, quoted));
	section->kind = (enum section_kind)i;
	if (section->kind == SECTION_DEFAULT && *name)
		return error_set(err, EINVAL, "[default] takes no name");
	if (section->kind != SECTION_DEFAULT && !*name)
		return error_set(err, EINVAL, "[%s] without a name", kind);
	if (strlen(name) >= sizeof(section->name))
		return error_set(err, EINVAL, "name longer than %d bytes", GROUP_NAME_BYTES - 1);
	memcpy(section->name, name, strlen(name) + 1);
	return check_name(section, err);
}

static int parse_setting(char *line, struct section *section, struct error *err)
{
	const struct {
		const char *key;
		struct spec *spec;
		enum spec_kind kind;
	} keys[] = {
		{"mem", &section->mem, SPEC_MEM},
		{"mem-per-process", &section->mem_process, SPEC_MEM},
		{"sm", &section->sm, SPEC_SM},
		{"weight", &section->weight, SPEC_WEIGHT},
		{"priority", &section->priority, SPEC_PRIORITY},
	};
	char *equals = strchr(line, '='), *value, *key;
	char quoted[ERROR_QUOTE_BYTES];

	if (!equals)
		return error_set(err, EINVAL, "neither [section] nor key = value: '%s'",
				 error_quote(line, quoted));
	*equals = '\0';
	key = trim(line);
	value = trim(equals + 1);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		int r;

		if (strcmp(key, keys[i].key) != 0)
			continue;
		if (keys[i].spec->unit != SPEC_UNSET)
			return error_set(err, EINVAL, "%s twice in one section", key);
		r = spec_parse_value(keys[i].kind, value, keys[i].spec, err);
		if (r < 0)
			error_prefix(err, "%s='%s'", key, error_quote(value, quoted));
		return r;
	}
	return error_set(err, EINVAL,
			 "unknown key '%s': mem, mem-per-process, sm, weight or priority",
			 error_quote(key, quoted));
}

/* *section is the one that settings go to, NULL before the first header. */
static int parse_line(char *line, struct section_list *list, struct section **section,
		      struct error *err)
{
	size_t length;

	cut_comment(line);
	line = trim(line);
	length = strlen(line);
	if (!length)
		return 0;
	if (*line != '[') {
		if (!*section)
			return error_set(err, EINVAL, "a setting before any [section]");
		return parse_setting(line, *section, err);
	}
	if (line[length - 1] != ']')
		return error_set(err, EINVAL, "no ] at the end of the line");
	line[length - 1] = '\0';
	*section = append_section(list);
	if (!*section)
		return error_set(err, ENOMEM, "out of memory");
	return parse_header(line + 1, *section, err);
}

int policy_parse(char *text, struct section_list *list, struct error *err)
{
	struct section *section = NULL;
	unsigned number = 1;
	int r;

	for (; *text; number++) {
		char *end = text + strcspn(text, "\n");
		int is_last = !*end;

		*end = '\0';
		r = parse_line(text, list, &section, err);
		if (r < 0) {
			error_prefix(err, "%u", number);
			return r == -ENOMEM ? r : -EINVAL;
		}
		text = is_last ? end : end + 1;
	}
	return 0;
}
