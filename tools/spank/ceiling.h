/*
 * A file per job in the directory of the admin's policy (policy_dir=): a job that unsets or raises
 * its own CUOTA_MEM still meets the cap, because nothing in its environment can raise the policy.
 */
#ifndef CUOTA_SPANK_CEILING_H
#define CUOTA_SPANK_CEILING_H

#include "base/error.h"
#include "request.h"
#include "survivors.h"

/* Writes <dir>/<group>.conf, root's, in one step. */
int ceiling_write(const char *dir, const char *group, const struct request *request,
		  struct error *err);

/*
 * Removes the files of the job (0: those that are older than this boot). The file of a group in
 * which a process still lives is set aside instead, still in force; it goes when a later call finds
 * the process gone.
 */
void ceiling_remove(const char *dir, unsigned job, const struct survivors *survivors);

#endif
