/*
 * Is this name in hooks.def or nvml.def? Exact names, never a prefix: libraries have names of their own
 * that begin with "cu" (cuDNN, cuBLAS, cuRAND, curl).
 */
#ifndef CUOTA_DRIVER_NAMES_H
#define CUOTA_DRIVER_NAMES_H

enum name_kind {
	NAME_OTHER,
	NAME_CUDA,   /* a row of hooks.def */
	NAME_NVML,   /* a row of nvml.def */
	NAME_LOADER, /* dlsym, dlvsym, dlopen */
};

/* Any thread. Names that no row can have are told by their first bytes; the rest cost one hash. */
enum name_kind name_kind(const char *name);

#endif
