/*
 * NVML's real entry points, typed by hooks/nvml_abi.h, as driver/real.h has those of CUDA: a HOOK entry can be
 * called at any time and answers NVML_ERROR_LIBRARY_NOT_FOUND when there is no NVML, FUNCTION_NOT_FOUND when
 * this one lacks it; a CALL entry is NULL until hooks_load_nvml() and when it is lacking.
 */
#ifndef CUOTA_HOOKS_NVML_H
#define CUOTA_HOOKS_NVML_H

#include "hooks/nvml_abi.h"

struct real_nvml {
#define NVML_HOOK(symbol, family) __typeof__(symbol) *symbol;
#define NVML_CALL(symbol)
#include "hooks/nvml.def"
#undef NVML_HOOK
#undef NVML_CALL
#define NVML_HOOK(symbol, family)
#define NVML_CALL(symbol) __typeof__(symbol) *symbol;
#include "hooks/nvml.def"
#undef NVML_HOOK
#undef NVML_CALL
};

extern struct real_nvml real_nvml;

#define NVML_HOOK(symbol, family) \
	extern __typeof__(symbol) symbol __attribute__((visibility("default")));
#define NVML_CALL(symbol)
#include "hooks/nvml.def"
#undef NVML_HOOK
#undef NVML_CALL

#endif
