/* What a context's heap, stack and printf buffer are charged (limit.c). */
#ifndef CUOTA_HOOKS_LIMIT_H
#define CUOTA_HOOKS_LIMIT_H

#include "hooks/mem_call.h"

struct limit_call {
	struct mem_call call;
	CUlimit limit;
	uint64_t charged;
};

/* Holds what raising the limit of the current context to `value` may add. MEM_PASS: nothing to charge. */
enum mem_begin limit_begin(struct limit_call *c, CUlimit limit, uint64_t value);

/* It was raised: the hold becomes the charge, until the context ends. */
void limit_raised(struct limit_call *c);

#endif
