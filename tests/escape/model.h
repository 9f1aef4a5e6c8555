/* Between model.c (threads, the oracle) and model_items.c (what is taken and given). */
#ifndef ESCAPE_MODEL_H
#define ESCAPE_MODEL_H

#include <stdint.h>

#include "driver.h"

enum { MODEL_DEVICES = 4 };

struct model_oracle {
	_Atomic uint64_t fixed; /* held outside of pools */
	CUmemoryPool pool;
};

struct model_item {
	int kind, device;
	uint64_t handle, address, bytes;
};

extern struct model_oracle oracle[MODEL_DEVICES];
extern CUcontext model_context[MODEL_DEVICES];
extern _Atomic uint64_t model_granted, model_refused;

int model_run(int argc, char **argv);
uint64_t model_random(uint64_t *state);

/* Linear memory by the pages it stands on. */
void model_stand(int device, uint64_t address, uint64_t bytes, int sign);

/* One operation; nonzero when the driver answers what it may not. */
int model_take(struct model_item *item, int device, uint64_t *state);
int model_give(struct model_item *item, uint64_t *state);

#endif
