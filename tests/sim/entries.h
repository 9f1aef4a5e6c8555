/*
 * Every exported function, as one table (entries_*.def), and what is made from it: here the
 * prototypes of the bodies, in entry.c the exports and the look-up table.
 *
 *   E(export, body, since, needs, per_thread, parameter types...)    body is sim_<body>
 *   N(export, since, needs, per_thread, parameter types...)          not implemented
 *   E0 and N0 are the same for functions without parameters.
 *
 * `since` is the CUDA version that brought this ABI, `needs` what must be there before the body is
 * called (NOTHING, INIT, CONTEXT, EXCLUSIVE), `per_thread` 1 for the _ptds and _ptsz twins: they share the
 * body, which sees another meaning of the NULL stream. The exports are checked against cuda.h.
 */
#ifndef SIM_ENTRIES_H
#define SIM_ENTRIES_H

#include "sim.h"

#include <cudaProfiler.h>

#define SIM_BODY(body, ...)			       CUresult sim_##body(__VA_ARGS__);
#define E(export, body, since, needs, per_thread, ...) SIM_BODY(body, __VA_ARGS__)
#define E0(export, body, since, needs, per_thread)     SIM_BODY(body, void)
#define N(export, since, needs, per_thread, ...)
#define N0(export, since, needs, per_thread)
#include "entries_all.def"
#undef E
#undef E0
#undef N
#undef N0

#endif
