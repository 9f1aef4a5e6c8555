/*
 * What every hook body includes: the typed real table and the declarations that export the wrappers.
 *
 * A body has the driver function's own name and type. It reads top to bottom: ready? -> reserve -> the
 * driver's call -> commit or roll back -> the driver's own result. With no quota the first branch calls the
 * driver and nothing else.
 */
#ifndef CUOTA_HOOKS_HOOKS_H
#define CUOTA_HOOKS_HOOKS_H

#include "driver/real.h"

#define HOOK(symbol, family) \
	extern __typeof__(symbol) symbol __attribute__((visibility("default")));
#include "hooks/hooks.def"
#undef HOOK

/*
 * Finds the driver that the program loaded, fills `real` and the look-up map; cheap after the first time.
 * Returns 0, or -ENOENT when there is no libcuda.so.1 (then a directly called wrapper answers
 * CUDA_ERROR_NOT_INITIALIZED). Defined in hooks/table.c.
 */
int hooks_load(void);

/* The same, from the object that holds an address which a look-up answered, if that is a driver. */
int hooks_load_at(const void *address);

/* For cuInit: a tool that stands in for the driver (library_behind) may have loaded the true one only then. */
void hooks_load_behind(void);

/* The wrapper for an address that a look-up answered, or the address when it is no function of the driver that we wrap. */
void *hooks_swap(void *address);

/* The same for NVML (hooks/nvml_table.c). */
int hooks_load_nvml(void);
int hooks_load_nvml_at(const void *address);

/* The dlsym of the C library (or of the next preload library in line), whatever we export ourselves. */
void *(*hooks_real_dlsym(void))(void *handle, const char *name);

#endif
