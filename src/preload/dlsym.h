/*
 * The look-ups that a program makes by name: what it gets instead of the driver's own address.
 *
 * The assembly in jump.S calls the *_answer functions with the program's arguments and its return address. They
 * return the function to jump to with the same arguments, or NULL with *ret_answer set.
 */
#ifndef CUOTA_PRELOAD_DLSYM_H
#define CUOTA_PRELOAD_DLSYM_H

#include "driver/names.h"
#include "base/object.h"

void *dlsym_answer(void *handle, const char *name, const void *caller, void **ret_answer);
void *dlvsym_answer(void *handle, const char *name, const char *version, const void *caller,
		    void **ret_answer);
void *dlopen_answer(const char *file, int flags, const void *caller, void **ret_answer);

/* What stands for an address that the real look-up of this name answered: our wrapper, or the address. */
void *dlsym_swap(void *found, const char *name, enum name_kind kind);

/* 1 for the driver's own libraries, which must find each other and not us; address: in it, or NULL. */
int dlsym_is_driver_part(const struct object *object, const void *address);

#endif
