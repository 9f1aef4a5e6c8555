/*
 * What a group, or a process in it, may take of one device. Several sources each give one (admin
 * policy, environment, ledger); quota_min() merges them, and the strictest value of each field
 * wins.
 */
#ifndef CUOTA_BASE_QUOTA_H
#define CUOTA_BASE_QUOTA_H

#include <stdint.h>

#define QUOTA_UNSET 0	       /* the source says nothing about this field */
#define QUOTA_NONE  UINT64_MAX /* "none": explicitly unlimited; loses against any number */

enum quota_priority {
	PRIORITY_UNSET = 0,
	PRIORITY_LOW = 1,    /* only what is left over */
	PRIORITY_NORMAL = 2, /* the default */
	PRIORITY_HIGH = 3,   /* latency first */
};

struct quota {
	uint64_t mem_bytes; /* cap of the group on this device; QUOTA_UNSET, QUOTA_NONE or bytes */
	uint64_t mem_process_bytes; /* cap of each process in it; likewise */
	uint32_t sm_bp;	 /* SM time cap of the group, hundredths of a percent; 0 unset, 10000 = none
			  */
	uint32_t weight; /* 1..10000, 0 unset (the default is 100) */
	uint32_t priority; /* enum quota_priority */
};

#define QUOTA_SM_NONE	     10000u
#define QUOTA_WEIGHT_DEFAULT 100u

/* Field by field the stricter of the two; for weight and priority a set value of `strong` wins. */
struct quota quota_min(struct quota strong, struct quota weak);

/* Field by field the stricter of the two, weight and priority included (the smaller of the set
 * ones). */
struct quota quota_strictest(struct quota a, struct quota b);

/* `quota` with each unset field taken from `fallback`. */
struct quota quota_fill(struct quota quota, struct quota fallback);

/* 1 if any field is set. */
int quota_any(const struct quota *quota);

#endif
