/*
 * Our own handle, taken for the driver's.
 *
 * A tool that asks in which file a function of the driver's is may find our wrapper, open libcuota.so, and hand it to
 * the program as the driver; so may a profiler that asks for the file of its own dlopen, when ours stands before
 * it. What the vendor's library has must be found by that handle too, also what we do not wrap.
 */
#ifndef CUOTA_PRELOAD_OWN_HANDLE_H
#define CUOTA_PRELOAD_OWN_HANDLE_H

/* 1 when the handle is ours and the name one that only the driver or NVML may have. Any other look-up is told by the
 * first bytes of its name. */
int own_handle_asked(const void *handle, const char *name);

/*
 * What stands behind us under this name: in the global scope, as for a linked program, or else in the vendor's library,
 * which is loaded if it is not. Not swapped. NULL, with dlerror set, when there is none. `version` NULL: any.
 */
void *own_handle_find(const char *name, const char *version);

#endif
