/*
 * What a job may take: its options, its shards and its own environment put together. Nothing here
 * knows Slurm, so it reads like the table in docs/slurm.md.
 *
 * The strictest of all sources holds. Where two cannot be compared (a percentage and bytes, the
 * device's size not told), it is an error: never a guess.
 */
#ifndef CUOTA_SPANK_REQUEST_H
#define CUOTA_SPANK_REQUEST_H

#include "base/error.h"
#include "base/spec.h"
#include "settings.h"

#define REQUEST_TEXT_BYTES 32

struct request {
	struct spec mem, sm, weight; /* unit SPEC_UNSET: nothing asked */
};

/* 1 if anything is asked. */
int request_any(const struct request *request);

/* What `shards` shards are worth. -EINVAL when shards_per_gpu is not told, or is exceeded. */
int request_from_shards(const struct settings *settings, unsigned shards, struct request *ret,
			struct error *err);

/* Field by field the stricter one. */
int request_strictest(const struct settings *settings, const struct request *a,
		      const struct request *b, struct request *ret, struct error *err);

/* "8192M", "12.50%", "40", "none"; NULL when unset. Returns buf. */
const char *request_text(const struct spec *spec, char buf[REQUEST_TEXT_BYTES]);

#endif
