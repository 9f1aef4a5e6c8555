/*
 * Between the files of the shared state only.
 */
#ifndef SIM_SHARED_INTERNAL_H
#define SIM_SHARED_INTERNAL_H

#include <stddef.h>

struct sim_state;

/* Descriptor of the state file whose locks say that this process lives; -1 before it is open. */
extern int state_fd;

/* This process's slot, or -1. */
extern int state_slot;

/* Once per process, and once per file. */
void lock_start(void);
void lock_init(struct sim_state *state);

void state_path(char *path, size_t size);
/* Frees shares of nobody whose last descriptor was closed. Needs the lock. */
void shares_reap(void);

#endif
