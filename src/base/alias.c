/*
 * Bare numbers keep their owners' meaning where it is beyond doubt, and only there:
 *
 * memory  bytes. Koordinator and KAI write plain byte counts; a hand-written 8192 meant MiB, so
 * below 1 MiB it is an error. 0 is "no limit" to HAMi and an error here. SM      percent. HAMi's
 * device plugin always sets the variable, to 0 when the pod asked for no core limit, so 0 is "none"
 * here: it takes no cap away that anybody asked for.
 */
#include "base/alias.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/size.h"

#define BARE_BYTES_MIN (1ull << 20)

static int parse_value(enum spec_kind kind, const char *text, struct spec *ret, struct error *err)
{
	uint64_t number;
	int is_bare = *text && !text[strspn(text, "0123456789")];

	if (!*text)
		return error_set(err, EINVAL, "empty: write a value, or unset the variable");
	if (is_bare && kind == SPEC_SM && number_parse(text, 0, 0, &number, NULL) == 0) {
		ret->unit = SPEC_NONE;
		return 0;
	}
	if (is_bare && kind == SPEC_MEM) {
		if (number_parse(text, 0, 0, &number, NULL) == 0)
			return error_set(err, EINVAL, "zero: unset it, or set CUOTA_MEM=none");
		if (number_parse(text, 1, BARE_BYTES_MIN - 1, &number, NULL) == 0)
			return error_set(err, EINVAL,
					 "no unit, and less than 1M as bytes: write %sM", text);
		if (number_parse(text, BARE_BYTES_MIN, SIZE_MAX_BYTES, &number, NULL) < 0)
			return error_set(err, ERANGE, "too large: more than 1048576T");
		ret->unit = SPEC_BYTES;
		ret->value = number;
		return 0;
	}
	return spec_parse_value(kind, text, ret, err);
}

static int has_entry(const struct spec_list *list, const struct spec *spec)
{
	for (unsigned i = 0; i < list->count; i++)
		if (list->specs[i].which == spec->which && list->specs[i].index == spec->index)
			return 1;
	return 0;
}

static int read_one(const char *name, struct spec spec, enum spec_kind kind,
		    const char *(*get)(const char *name), struct spec_list *list, struct error *err)
{
	const char *text = get(name);
	char quoted[ERROR_QUOTE_BYTES];
	int r;

	if (!text || has_entry(list, &spec))
		return 0;
	r = parse_value(kind, text, &spec, err);
	if (r < 0) {
		error_prefix(err, "%s='%s'", name, error_quote(text, quoted));
		return r;
	}
	if (list->count == CONFIG_DEVICES)
		return error_set(err, EINVAL, "%s: more than %d entries", name, CONFIG_DEVICES);
	list->specs[list->count++] = spec;
	return 0;
}

int alias_read(const char *name, enum spec_kind kind, const char *(*get)(const char *name),
	       struct spec_list *list, struct error *err)
{
	struct spec spec = {.which = SPEC_ALL};
	char indexed[64];
	int r = read_one(name, spec, kind, get, list, err);

	for (unsigned i = 0; r == 0 && i < ALIAS_DEVICES; i++) {
		spec.which = SPEC_INDEX;
		spec.index = i;
		snprintf(indexed, sizeof(indexed), "%s_%u", name, i);
		r = read_one(indexed, spec, kind, get, list, err);
	}
	return r;
}
