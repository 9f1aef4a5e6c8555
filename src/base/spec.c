/*
 * The grammar of device lists: ENTRY[,ENTRY...], ENTRY = [DEVICE=]VALUE, DEVICE = index | GPU-... |
 * MIG-.... Everything else is an error: whatever cannot be understood must not end as "no cap".
 */
#include "base/spec.h"

#include <errno.h>
#include <string.h>

#include "base/ascii.h"
#include "base/quota.h"
#include "base/size.h"

#define ENTRY_BYTES 128 /* the longest entry that can be right is about 80 bytes */

static int parse_mem(const char *text, struct spec *ret, struct error *err)
{
	size_t length = strlen(text);
	uint32_t bp;
	int r;

	if (length && text[length - 1] == '%') {
		r = percent_parse(text, &bp, err);
		if (r < 0)
			return r;
		ret->unit = SPEC_PERCENT_BP;
		ret->value = bp;
		return 0;
	}
	r = size_parse(text, &ret->value, err);
	if (r < 0)
		return r;
	ret->unit = SPEC_BYTES;
	return 0;
}

static int parse_sm(const char *text, struct spec *ret, struct error *err)
{
	uint32_t bp;
	int r = percent_parse(text, &bp, err);

	if (r < 0)
		return r;
	ret->unit = SPEC_PERCENT_BP;
	ret->value = bp;
	return 0;
}

static int parse_priority(const char *text, struct spec *ret, struct error *err)
{
	static const char *const names[] = {
		[PRIORITY_LOW] = "low", [PRIORITY_NORMAL] = "normal", [PRIORITY_HIGH] = "high"};

	for (unsigned i = PRIORITY_LOW; i <= PRIORITY_HIGH; i++) {
		if (ascii_same(text, names[i])) {
			ret->unit = SPEC_NUMBER;
			ret->value = i;
			return 0;
		}
	}
	return error_set(err, EINVAL, "%s: write high, normal or low",
			 *text ? "unknown priority" : "empty");
}

int spec_parse_value(enum spec_kind kind, const char *text, struct spec *ret, struct error *err)
{
	int r;

	switch (kind) {
	case SPEC_MEM:
	case SPEC_SM:
		if (ascii_same(text, "none")) {
			ret->unit = SPEC_NONE;
			ret->value = 0;
			return 0;
		}
		return kind == SPEC_MEM ? parse_mem(text, ret, err) : parse_sm(text, ret, err);
	case SPEC_WEIGHT:
		r = number_parse(text, 1, 10000, &ret->value, err);
		if (r == 0)
			ret->unit = SPEC_NUMBER;
		return r;
	case SPEC_PRIORITY: return parse_priority(text, ret, err);
	}
	return error_set(err, EINVAL, "unknown kind of value");
}

int spec_check_uuid(const char *text, struct error *err)
{
	char quoted[ERROR_QUOTE_BYTES];

	if (!ascii_starts(text, "GPU-") && !ascii_starts(text, "MIG-"))
		return error_set(err, EINVAL,
				 "unknown device '%s': write an index, GPU-... or MIG-...",
				 error_quote(text, quoted));
	if (strlen(text) >= UUID_TEXT_BYTES)
		return error_set(err, EINVAL, "device '%s' is longer than a UUID",
				 error_quote(text, quoted));
	if (!text[4] || text[4 + strspn(text + 4, "0123456789abcdefABCDEF-")])
		return error_set(err, EINVAL, "device '%s' is no UUID: write GPU-8f3a...",
				 error_quote(text, quoted));
	return 0;
}

static int parse_device(const char *text, struct spec *ret, struct error *err)
{
	uint64_t index;
	int r;

	if (!*text)
		return error_set(err, EINVAL, "no device before '='");
	if (text[strspn(text, "0123456789")] == '\0') {
		if (number_parse(text, 0, DEVICE_INDEX_LIMIT - 1, &index, NULL) < 0)
			return error_set(err, ERANGE, "device index above %d",
					 DEVICE_INDEX_LIMIT - 1);
		ret->which = SPEC_INDEX;
		ret->index = (unsigned)index;
		return 0;
	}
	r = spec_check_uuid(text, err);
	if (r < 0)
		return r;
	ret->which = SPEC_UUID;
	memcpy(ret->uuid, text, strlen(text) + 1);
	return 0;
}

static int same_device(const struct spec *a, const struct spec *b)
{
	return a->which == b->which && a->index == b->index && ascii_same(a->uuid, b->uuid);
}

static int check_twice(const struct spec_list *list, const struct spec *spec, struct error *err)
{
	for (unsigned i = 0; i < list->count; i++) {
		if (!same_device(&list->specs[i], spec))
			continue;
		if (spec->which == SPEC_ALL)
			return error_set(err, EINVAL, "two values without a device");
		if (spec->which == SPEC_INDEX)
			return error_set(err, EINVAL, "device %u twice", spec->index);
		return error_set(err, EINVAL, "device '%s' twice", spec->uuid);
	}
	return 0;
}

static int parse_entry(enum spec_kind kind, char *entry, struct spec *ret, struct error *err)
{
	char *equals = strchr(entry, '=');
	const char *value = entry;
	int r;

	memset(ret, 0, sizeof(*ret));
	ret->which = SPEC_ALL;
	if (equals) {
		*equals = '\0';
		value = equals + 1;
		r = parse_device(entry, ret, err);
		if (r < 0)
			return r;
		if (!*value)
			return error_set(err, EINVAL, "no value after '%s='", entry);
	}
	return spec_parse_value(kind, value, ret, err);
}

int spec_parse_list(enum spec_kind kind, const char *text, struct spec_list *ret, struct error *err)
{
	char entry[ENTRY_BYTES];
	int r;

	ret->count = 0;
	if (!*text)
		return error_set(err, EINVAL, "empty: write a value, or unset the variable");
	if (strpbrk(text, " \t\r\n"))
		return error_set(err, EINVAL, "blank inside: write it without");
	for (;; text++) {
		size_t length = strcspn(text, ",");
		struct spec *spec = &ret->specs[ret->count];

		if (!length)
			return error_set(err, EINVAL, "empty entry at a comma");
		if (length >= sizeof(entry))
			return error_set(err, EINVAL, "entry longer than %d bytes",
					 ENTRY_BYTES - 1);
		if (ret->count == CONFIG_DEVICES)
			return error_set(err, EINVAL, "more than %d entries", CONFIG_DEVICES);
		memcpy(entry, text, length);
		entry[length] = '\0';
		r = parse_entry(kind, entry, spec, err);
		if (r < 0)
			return r;
		r = check_twice(ret, spec, err);
		if (r < 0)
			return r;
		ret->count++;
		text += length;
		if (!*text)
			return 0;
	}
}

int spec_uuid_matches(const char *prefix, const char *uuid)
{
	return uuid && ascii_starts(uuid, prefix);
}

const struct spec *spec_find(const struct spec_list *list, unsigned cuda_index, const char *uuid)
{
	const struct spec *for_all = NULL, *for_device = NULL;

	for (unsigned i = 0; i < list->count; i++) {
		const struct spec *spec = &list->specs[i];

		if (spec->which == SPEC_ALL)
			for_all = spec;
		else if (spec->which == SPEC_INDEX ? spec->index == cuda_index
						   : spec_uuid_matches(spec->uuid, uuid))
			for_device = spec;
	}
	return for_device ? for_device : for_all;
}

uint64_t spec_bytes(const struct spec *spec, uint64_t device_bytes)
{
	uint64_t bytes;

	if (!spec || spec->unit == SPEC_UNSET)
		return QUOTA_UNSET;
	if (spec->unit == SPEC_NONE)
		return QUOTA_NONE;
	if (spec->unit == SPEC_BYTES)
		return spec->value;
	bytes = device_bytes / 10000 * spec->value + device_bytes % 10000 * spec->value / 10000;
	return bytes ? bytes : 1; /* 0 would read as "unset": no limit */
}

uint32_t spec_sm_bp(const struct spec *spec)
{
	if (!spec || spec->unit == SPEC_UNSET)
		return QUOTA_UNSET;
	return spec->unit == SPEC_NONE ? QUOTA_SM_NONE : (uint32_t)spec->value;
}

uint32_t spec_number(const struct spec *spec)
{
	return spec && spec->unit == SPEC_NUMBER ? (uint32_t)spec->value : QUOTA_UNSET;
}
