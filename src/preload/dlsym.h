/*
 * The look-ups that a program makes by name: what it gets instead of the driver's own address.
 *
 * The assembly in jump.S calls these with the program's arguments and its return address. They return
 * the function to jump to with the same arguments, or NULL with *ret_answer set.
 */
#ifndef CUOTA_PRELOAD_DLSYM_H
#define CUOTA_PRELOAD_DLSYM_H

void *dlsym_answer(void *handle, const char *name, const void *caller, void **ret_answer);
void *dlvsym_answer(void *handle, const char *name, const char *version, const void *caller,
		    void **ret_answer);

#endif
