/*
 * Objects opened with RTLD_DEEPBIND look for symbols among their own dependencies first: their calls of the
 * driver, and of dlsym itself, would go round this library. Julia opens everything that way.
 *
 * The flag stays as the program set it, since what else binds by it is the program's business. After such
 * an open the new objects' own slots for hooked names are set to our wrappers, as the loader would have
 * set them without the flag; nothing else of theirs is touched.
 */
#ifndef CUOTA_PRELOAD_DEEPBIND_H
#define CUOTA_PRELOAD_DEEPBIND_H

/*
 * For dlopen with RTLD_DEEPBIND: how many objects are loaded now, and after it, so that the new ones' slots are
 * set. Between them the new objects' constructors have already run.
 */
unsigned deepbind_objects(void);
void deepbind_set(unsigned first_new);

/* For an open that had to be passed on by a jump: remembers to do it at the next look-up. */
void deepbind_later(unsigned first_new);
void deepbind_now_if_due(void);

#endif
