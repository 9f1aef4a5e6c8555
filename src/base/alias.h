/*
 * Variables of other GPU-sharing systems, so that their pod and job templates go on working.
 */
#ifndef CUOTA_BASE_ALIAS_H
#define CUOTA_BASE_ALIAS_H

#include "base/error.h"
#include "base/spec.h"

/*
 * Adds NAME (for every device) and NAME_0, NAME_1, ... (CUDA indexes) to list, unless it already
 * has an entry for that device. -EINVAL or -ERANGE with the whole line, variable and value
 * included.
 */
int alias_read(const char *name, enum spec_kind kind, const char *(*get)(const char *name),
	       struct spec_list *list, struct error *err);

#endif
