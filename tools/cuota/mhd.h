/*
 * libmicrohttpd, loaded when the exporter starts: the rest of the command runs where it is not installed (compute
 * nodes, the relocatable tarball).
 */
#ifndef CUOTA_TOOLS_MHD_H
#define CUOTA_TOOLS_MHD_H

#include <microhttpd.h>

#include "base/error.h"

#define MHD_FUNCTIONS(X) \
	X(create_response_from_buffer) \
	X(add_response_header) \
	X(queue_response) \
	X(destroy_response) \
	X(lookup_connection_value) \
	X(start_daemon) \
	X(stop_daemon)

struct mhd {
#define X(name) __typeof__(MHD_##name) *name;
	MHD_FUNCTIONS(X)
#undef X
};

extern struct mhd mhd;

/* 0, or -ENOENT with what is missing. */
int mhd_load(struct error *err);

#endif
