#include "container.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_BYTES (1u << 20)

int container_bundle(const struct environment *env, char ret_path[PATH_MAX])
{
	return env->get(env->handle, "SLURM_CONTAINER", ret_path, PATH_MAX) && ret_path[0] == '/';
}

/* 1 if the file mentions the text; a mount's destination is written as it is. */
static int file_mentions(const char *path, const char *text)
{
	FILE *file = fopen(path, "re");
	char *content = file ? malloc(CONFIG_BYTES) : NULL;
	int found = 0;

	if (content) {
		size_t length = fread(content, 1, CONFIG_BYTES - 1, file);

		content[length] = '\0';
		found = strstr(content, text) != NULL;
	}
	free(content);
	if (file)
		fclose(file);
	return found;
}

static int has_library(const char *bundle, const char *library)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/rootfs%s", bundle, library);
	if (!access(path, R_OK))
		return 1;
	snprintf(path, sizeof(path), "%s/config.json", bundle);
	return file_mentions(path, library);
}

static int same(const struct spec *a, const struct spec *b)
{
	return a->unit == b->unit && (a->unit == SPEC_UNSET || a->value == b->value);
}

int container_check(const struct environment *env, const struct settings *settings,
		    const char *bundle, const struct request *wanted, struct error *err)
{
	struct request there, both;

	environment_request(env, &there);
	if (!environment_has_library(env, settings) ||
	    request_strictest(settings, &there, wanted, &both, NULL) < 0 ||
	    !same(&both.mem, &there.mem) || !same(&both.sm, &there.sm))
		return error_set(err, EINVAL,
				 "the job's share cannot be passed on to a container here: submit "
				 "with --gpu-mem-cap and --gpu-sm-cap, or run srun inside a batch "
				 "script");
	if (!has_library(bundle, settings->library))
		return error_set(err, EINVAL,
				 "%.120s has no %.80s, so no cap would hold: add a mount of it to "
				 "config.json",
				 bundle, settings->library);
	return 0;
}
