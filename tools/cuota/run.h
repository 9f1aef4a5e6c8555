/*
 * The parts of `cuota run`: the library to preload, whether the command can load it at all, and the
 * watcher that tells when a GPU program runs without it.
 */
#ifndef CUOTA_CLI_RUN_H
#define CUOTA_CLI_RUN_H

#include <limits.h>
#include <stddef.h>

#include "base/error.h"

/*
 * Finds libcuota.so: CUOTA_LIBRARY when set, else beside the command, else in the library
 * directories relative to it. The file is checked to be a loadable shared object for this machine.
 * Absolute path.
 */
int run_library_find(char ret_path[PATH_MAX], struct error *err);

/* LD_PRELOAD with `library` first, the rest of `existing` kept and older mentions of libcuota
 * dropped. */
char *run_library_merge(const char *library, const char *existing);

/*
 * Resolves `command` as execvp would and reads its header (a script's interpreter's, too). 0 = the
 * library can be loaded into it; 1 = it cannot, and ret_why says why (static, setuid, another
 * architecture); -errno when the command cannot be found or read (execvp will tell).
 */
int run_preflight(const char *command, const char *library, struct error *ret_why);

/*
 * Starts the watcher of this process: a detached process with no terminal and no pipe of ours, that
 * ends when we end. Failure to start is no reason not to run the command.
 */
int run_watch_start(const char *group, struct error *err);

#endif
