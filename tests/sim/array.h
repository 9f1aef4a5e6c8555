/*
 * Arrays, as array.c, mipmap.c and copy_shape.c share them. All of it needs core_lock.
 */
#ifndef SIM_ARRAY_H
#define SIM_ARRAY_H

#include "memory.h"

struct array {
	struct object object;
	struct array *next;
	struct context *context;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	uint64_t pitch, slice, bytes;
	uint64_t base; /* 0 without memory of its own */
	struct range *range;
	struct mipmap *mipmap; /* whose level it is */
};

struct mipmap {
	struct object object;
	struct mipmap *next;
	struct context *context;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned levels;
	uint64_t bytes;
	struct range *range;
	struct array *level[32];
};

struct array *array_of(CUarray handle);
unsigned array_channel_bytes(CUarray_format format);
CUresult array_new(const CUDA_ARRAY3D_DESCRIPTOR *desc, struct array **ret_array);
void array_delete(struct array *array);
struct mipmap *mipmap_of(CUmipmappedArray handle);
void mipmap_delete(struct mipmap *mipmap);
/* sparse.c: physical memory behind its parts */
void sparse_release(const void *owner);

#endif
