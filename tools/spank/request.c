#include "request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/quota.h"

#define MIB   ((uint64_t)1 << 20)
#define WHOLE QUOTA_WEIGHT_DEFAULT /* a whole GPU weighs as much as a job that asks for nothing */

int request_any(const struct request *request)
{
	return request->mem.unit != SPEC_UNSET || request->sm.unit != SPEC_UNSET ||
	       request->weight.unit != SPEC_UNSET;
}

int request_from_shards(const struct settings *settings, unsigned shards, struct request *ret,
			struct error *err)
{
	uint64_t of = settings->shards_per_gpu;

	if (!of)
		return error_set(err, EINVAL,
				 "the job has %u shards and plugstack.conf does not say "
				 "shards_per_gpu=",
				 shards);
	if (shards > of)
		return error_set(err, EINVAL,
				 "the job has %u shards, more than shards_per_gpu=%u says a GPU "
				 "has",
				 shards, settings->shards_per_gpu);
	*ret = (struct request){.mem = {.unit = SPEC_PERCENT_BP, .value = shards * 10000ull / of}};
	if (settings->gpu_bytes) {
		ret->mem.unit = SPEC_BYTES;
		ret->mem.value = settings->gpu_bytes / of * shards / MIB * MIB;
	}
	if (settings->shard_sm == SHARD_SM_CAP)
		ret->sm = (struct spec){.unit = SPEC_PERCENT_BP, .value = shards * 10000ull / of};
	else if (settings->shard_sm == SHARD_SM_WEIGHT)
		ret->weight = (struct spec){.unit = SPEC_NUMBER,
					    .value = shards * WHOLE / of ? shards * WHOLE / of : 1};
	if (!ret->mem.value)
		return error_set(err, EINVAL, "shards_per_gpu is too large for gpu_mem");
	return 0;
}

/* Smaller of the two; "none" and unset lose. */
static struct spec smaller(const struct spec *a, const struct spec *b)
{
	if (a->unit == SPEC_UNSET || (a->unit == SPEC_NONE && b->unit != SPEC_UNSET))
		return *b;
	if (b->unit == SPEC_UNSET || b->unit == SPEC_NONE)
		return *a;
	return a->value <= b->value ? *a : *b;
}

static int is_amount(const struct spec *spec)
{
	return spec->unit == SPEC_BYTES || spec->unit == SPEC_PERCENT_BP;
}

static int smaller_mem(const struct settings *settings, struct spec a, struct spec b,
		       struct spec *ret, struct error *err)
{
	if (is_amount(&a) && is_amount(&b) && a.unit != b.unit) {
		struct spec *percent = a.unit == SPEC_PERCENT_BP ? &a : &b;

		if (!settings->gpu_bytes)
			return error_set(err, EINVAL,
					 "a percentage and bytes cannot be compared: ask for a "
					 "percentage, or have gpu_mem= set in plugstack.conf");
		percent->value = spec_bytes(percent, settings->gpu_bytes) / MIB * MIB;
		percent->unit = SPEC_BYTES;
	}
	*ret = smaller(&a, &b);
	return 0;
}

int request_strictest(const struct settings *settings, const struct request *a,
		      const struct request *b, struct request *ret, struct error *err)
{
	struct spec mem;
	int r = smaller_mem(settings, a->mem, b->mem, &mem, err);

	if (r < 0)
		return r;
	*ret = (struct request){
		.mem = mem,
		.sm = smaller(&a->sm, &b->sm),
		.weight = smaller(&a->weight, &b->weight),
	};
	return 0;
}

const char *request_text(const struct spec *spec, char buf[REQUEST_TEXT_BYTES])
{
	switch (spec->unit) {
	case SPEC_UNSET: return NULL;
	case SPEC_NONE: snprintf(buf, REQUEST_TEXT_BYTES, "none"); break;
	case SPEC_NUMBER: snprintf(buf, REQUEST_TEXT_BYTES, "%" PRIu64, spec->value); break;
	case SPEC_PERCENT_BP:
		snprintf(buf, REQUEST_TEXT_BYTES, "%" PRIu64 ".%02" PRIu64 "%%", spec->value / 100,
			 spec->value % 100);
		break;
	case SPEC_BYTES:
		if (spec->value % MIB)
			snprintf(buf, REQUEST_TEXT_BYTES, "%" PRIu64 "K",
				 spec->value / 1024 ? spec->value / 1024 : 1);
		else
			snprintf(buf, REQUEST_TEXT_BYTES, "%" PRIu64 "M", spec->value / MIB);
		break;
	}
	return buf;
}
