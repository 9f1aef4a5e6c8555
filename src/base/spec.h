/*
 * One quota value as written in a variable or the policy file ("8G", "50%", "high"), and lists of
 * them by device ("8G,1=4G,GPU-8f3a=2G"). Kept as written, because a percent means bytes only once
 * the device is known.
 */
#ifndef CUOTA_BASE_SPEC_H
#define CUOTA_BASE_SPEC_H

#include <stdint.h>

#include "base/error.h"

#define UUID_TEXT_BYTES	   48	/* "GPU-" or "MIG-" and 36 characters, terminated */
#define CONFIG_DEVICES	   64	/* entries in one device list */
#define DEVICE_INDEX_LIMIT 1024 /* a larger index is a typing error */

enum spec_kind { SPEC_MEM, SPEC_SM, SPEC_WEIGHT, SPEC_PRIORITY };

enum spec_unit { SPEC_UNSET, SPEC_BYTES, SPEC_PERCENT_BP, SPEC_NUMBER, SPEC_NONE };

/* One value of a device list: for every device, one CUDA index, or a UUID or prefix of one. */
struct spec {
	enum { SPEC_ALL, SPEC_INDEX, SPEC_UUID } which;
	unsigned index;
	char uuid[UUID_TEXT_BYTES];
	enum spec_unit unit;
	uint64_t value; /* bytes, hundredths of a percent, weight or enum quota_priority */
};

struct spec_list {
	unsigned count;
	struct spec specs[CONFIG_DEVICES];
};

/* Sets unit and value of *ret from one value without a device. -EINVAL or -ERANGE with the reason.
 */
int spec_parse_value(enum spec_kind kind, const char *text, struct spec *ret, struct error *err);

/* A whole list; *ret is defined only on success. Two entries for one device are an error. */
int spec_parse_list(enum spec_kind kind, const char *text, struct spec_list *ret,
		    struct error *err);

/* -EINVAL, with the reason, unless text is GPU- or MIG- and at least one of [0-9a-f-]. */
int spec_check_uuid(const char *text, struct error *err);

/* 1 if `uuid` (may be NULL) starts with `prefix`, in any case. */
int spec_uuid_matches(const char *prefix, const char *uuid);

/* The last entry that matches the device, a specific one before one for every device; NULL if none.
 */
const struct spec *spec_find(const struct spec_list *list, unsigned cuda_index, const char *uuid);

/* What a value means on a device (spec may be NULL): QUOTA_UNSET, QUOTA_NONE or bytes, never 0
 * bytes. */
uint64_t spec_bytes(const struct spec *spec, uint64_t device_bytes);
uint32_t spec_sm_bp(const struct spec *spec);
uint32_t spec_number(const struct spec *spec);

#endif
