/*
 * What dlsym would answer for RTLD_DEFAULT and RTLD_NEXT if this library were not in the way.
 *
 * For hooked names only: all others are passed on with the caller kept. Exact for whatever was loaded at
 * start. For callers loaded later it may find a driver that is loaded but outside their scope, never less
 * than the C library would. A look-up that fails leaves dlerror set, one that succeeds leaves it clean.
 */
#ifndef CUOTA_PRELOAD_SCOPE_H
#define CUOTA_PRELOAD_SCOPE_H

#include "base/object.h"

/* `from`: the object that the caller is in. `soname`: whose function it is. */
void *scope_default(const struct object *from, const char *name, const char *soname);
void *scope_next(const struct object *from, const char *name);

#endif
