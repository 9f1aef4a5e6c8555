/*
 * Every way to take device memory that we know. A way takes `piece` bytes at each call and keeps them.
 */
#ifndef ESCAPE_WAYS_H
#define ESCAPE_WAYS_H

#include <stddef.h>
#include <stdint.h>

#include "driver.h"

/* What a way answers when the driver or the device cannot do it at all. */
#define NOT_HERE ((CUresult)10000)

struct way {
	const char *name;
	/* Takes about `piece` bytes more; *ret_bytes is what it got for sure. */
	CUresult (*take)(uint64_t piece, uint64_t *ret_bytes);
};

extern const struct way ways[];
extern const size_t ways_count;

/* The device and stream that ways use; the context is current. */
extern CUdevice way_device;
extern CUstream way_stream;

/* ways_code.c */
CUresult take_graph(uint64_t piece, uint64_t *ret);
CUresult take_captured(uint64_t piece, uint64_t *ret);
CUresult take_uploaded(uint64_t piece, uint64_t *ret);
CUresult take_heap(uint64_t piece, uint64_t *ret);
CUresult take_printf(uint64_t piece, uint64_t *ret);
CUresult take_stack(uint64_t piece, uint64_t *ret);
CUresult take_local(uint64_t piece, uint64_t *ret);
CUresult take_module(uint64_t piece, uint64_t *ret);
CUresult take_library(uint64_t piece, uint64_t *ret);
CUresult take_context(uint64_t piece, uint64_t *ret);
CUresult take_green(uint64_t piece, uint64_t *ret);
CUresult take_second_device(uint64_t piece, uint64_t *ret);
CUresult take_sparse(uint64_t piece, uint64_t *ret);

/* ways_peer.c: a second process, started before the driver is, holds what the first one exports. */
void peer_start(void);
void peer_stop(void);
CUresult take_by_peer(uint64_t piece, uint64_t *ret);
CUresult take_by_descriptor(uint64_t piece, uint64_t *ret);

#endif
