/*
 * The loader's functions as the next library in line has them, whatever this library exports itself.
 *
 * "Next" is load order after us: the C library, or another preload library that hooks the same functions, so
 * that chains of them work in either order. Found by walking the link map (base/object.h): neither dlsym
 * nor a private name of the C library is needed to find dlsym, and no version of one is asked for.
 */
#ifndef CUOTA_DRIVER_LOADER_H
#define CUOTA_DRIVER_LOADER_H

#include "base/object.h"

/* The definition of `name` after this library, else any outside of it; NULL when there is none. Walks all
 * objects: keep the answer. */
void *loader_next(const char *name);

/* dlsym, dlvsym and dlopen so found, kept. NULL in a program without them. */
void *(*loader_dlsym(void))(void *handle, const char *name);
void *(*loader_dlvsym(void))(void *handle, const char *name, const char *version);

void *(*loader_dlopen(void))(const char *file, int flags);

/* dlopen by the C library itself: a tool in line may answer an open of the driver with another library. It leaves
 * the program's dlerror set when it fails. */
void *loader_open(const char *file, int flags);

/* The same of something that is loaded already: a handle to give to loader_close(), or NULL. */
void *loader_handle(const char *path);
void loader_close(void *handle);

/* Takes the error that a look-up of ours has left, so that dlerror is as before a call that went well. */
void loader_clear_error(void);

/* Keeps a loaded object loaded: entry points of a driver that the program closes must not dangle. */
void loader_pin(const char *path);

/*
 * Where an object stands. START objects were there when the program started, so the global scope is all they
 * see; BEFORE and AFTER say on which side of us.
 */
enum loader_place { PLACE_START_BEFORE, PLACE_START_AFTER, PLACE_LATER };

/* Called once by the constructor: everything mapped now is START. */
void loader_mark_start(void);
enum loader_place loader_place(const struct object *object);

/* What `name` is between a START_BEFORE object and us; NULL when nothing there defines it. */
void *loader_between(const struct object *object, const char *name);

/* What `name` is in any object loaded after this one, us left out. */
void *loader_after(const struct object *object, const char *name);

/* 1 when the address lies in this library. */
int loader_is_us(const void *address);

/* 1 for what dlopen answers when this library is opened. */
int loader_is_our_handle(const void *handle);

/* A handle of a loaded object that stays so, not to be closed; NULL when the C library does not tell. */
void *loader_handle_of(const struct object *object);

#endif
