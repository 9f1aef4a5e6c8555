/* Objects of virtual memory as the hooks end them. */
#ifndef CUOTA_HOOKS_MEM_VIRTUAL_H
#define CUOTA_HOOKS_MEM_VIRTUAL_H

#include "hooks/mem_call.h"

/* The driver answered `result` to what `end` tells of: puts it back, or refunds it when it was the last. */
void mem_object_ended(struct memory *memory, const struct object_end *end, CUresult result);

/* Nothing of it is left in this process. */
void mem_object_refund(struct memory *memory, const struct charge *object);

/* An array is gone, and with it what is mapped into it if it is a sparse one (mem_sparse.c). */
void mem_sparse_ended(struct memory *memory, const struct charge *array);

#endif
