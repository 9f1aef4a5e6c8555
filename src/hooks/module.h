/* What loading code is charged, for modules (module.c) and libraries (library.c). */
#ifndef CUOTA_HOOKS_MODULE_H
#define CUOTA_HOOKS_MODULE_H

#include "hooks/mem_call.h"
#include "memory/image.h"

struct module_call {
	struct mem_call call;
	struct image_size size;
};

/* What to hold before a load. */
uint64_t module_estimate(const struct image_size *size);

/* Makes the hold what the load took. 0, or -ENOMEM: unload and refuse. */
int module_settle(struct module_call *c);

#endif
