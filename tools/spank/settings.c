#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

static int read_path(const char *text, char ret[PATH_MAX], struct error *err)
{
	if (text[0] != '/' || strpbrk(text, ": \t"))
		return error_set(err, EINVAL, "write an absolute path without colon or space");
	if (strlen(text) >= PATH_MAX)
		return error_set(err, EINVAL, "path too long");
	strcpy(ret, text);
	return 0;
}

static int read_library(const char *text, struct settings *ret, struct error *err)
{
	return read_path(text, ret->library, err);
}

static int read_dir(const char *text, struct settings *ret, struct error *err)
{
	return read_path(text, ret->dir, err);
}

static int read_policy_dir(const char *text, struct settings *ret, struct error *err)
{
	return read_path(text, ret->policy_dir, err);
}

static int read_shards(const char *text, struct settings *ret, struct error *err)
{
	uint64_t number;
	int r = number_parse(text, 1, 10000, &number, err);

	if (r == 0)
		ret->shards_per_gpu = (unsigned)number;
	return r;
}

static int read_gpu_mem(const char *text, struct settings *ret, struct error *err)
{
	return size_parse(text, &ret->gpu_bytes, err);
}

static int find_word(const char *text, const char *const words[], unsigned count, struct error *err)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(text, words[i]))
			return (int)i;
	return error_set(err, EINVAL, "unknown word");
}

static int read_shard_sm(const char *text, struct settings *ret, struct error *err)
{
	static const char *const words[] = {"cap", "weight", "none"};
	int r = find_word(text, words, 3, err);

	if (r >= 0)
		ret->shard_sm = (enum shard_sm)r;
	return r < 0 ? r : 0;
}

static int read_attach(const char *text, struct settings *ret, struct error *err)
{
	static const char *const words[] = {"asked", "gpu"};
	int r = find_word(text, words, 2, err);

	ret->attach_all = r == 1;
	return r < 0 ? r : 0;
}

static int read_strict(const char *text, struct settings *ret, struct error *err)
{
	static const char *const words[] = {"0", "1"};
	int r = find_word(text, words, 2, err);

	ret->strict = r == 1;
	return r < 0 ? r : 0;
}

static const struct argument {
	const char *name;
	int (*read)(const char *text, struct settings *ret, struct error *err);
} arguments[] = {
	{"library", read_library},	 {"dir", read_dir},	    {"policy_dir", read_policy_dir},
	{"shards_per_gpu", read_shards}, {"gpu_mem", read_gpu_mem}, {"shard_sm", read_shard_sm},
	{"attach", read_attach},	 {"strict", read_strict},
};

static int read_one(const char *text, struct settings *ret, struct error *err)
{
	for (size_t i = 0; i < sizeof(arguments) / sizeof(*arguments); i++) {
		size_t length = strlen(arguments[i].name);

		if (!strncmp(text, arguments[i].name, length) && text[length] == '=')
			return arguments[i].read(text + length + 1, ret, err);
	}
	return error_set(err, EINVAL, "no such argument");
}

int settings_read(int argc, char **argv, struct settings *ret, struct error *err)
{
	char quoted[ERROR_QUOTE_BYTES];

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->library, sizeof(ret->library), "%s", CUOTA_LIBRARY);
	snprintf(ret->dir, sizeof(ret->dir), "/run/cuota");
	for (int i = 0; i < argc; i++) {
		int r = read_one(argv[i], ret, err);

		if (r < 0) {
			error_prefix(err, "plugstack.conf: %s", error_quote(argv[i], quoted));
			return r;
		}
	}
	return 0;
}
