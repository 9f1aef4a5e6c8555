/*
 * What a program is told about a device's memory under a cap: the same arithmetic for CUDA and for NVML, so that
 * all views agree.
 */
#ifndef CUOTA_HOOKS_VIEW_H
#define CUOTA_HOOKS_VIEW_H

#include <stdint.h>

struct view_memory {
	uint64_t total_bytes, free_bytes, used_bytes;
};

/*
 * `cap`: the smallest of the caps that bind; `room`: what may still be taken under them; UINT64_MAX = none.
 * free + used = total, except that free is no more than the card really has: it depends on others only then.
 */
static inline struct view_memory view_memory(uint64_t real_total, uint64_t real_free, uint64_t cap,
					     uint64_t room)
{
	struct view_memory view = {.total_bytes = cap < real_total ? cap : real_total};

	if (room > view.total_bytes)
		room = view.total_bytes;
	view.used_bytes = view.total_bytes - room;
	view.free_bytes = room < real_free ? room : real_free;
	return view;
}

#endif
