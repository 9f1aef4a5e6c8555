/*
 * For the tests of the doors: what an address belongs to, and what an object really exports, read from its ELF
 * tables, so that the truth does not come from the look-ups under test.
 */
#ifndef CUOTA_DOORS_LIBRARY_H
#define CUOTA_DOORS_LIBRARY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/object.h"

/* Ends the test program unless cond holds. */
#define CHECK(cond, ...) \
	do { \
		if (!(cond)) { \
			printf("%s:%d: %s: ", __FILE__, __LINE__, #cond); \
			printf(__VA_ARGS__); \
			printf("\n"); \
			exit(1); \
		} \
	} while (0)

/* "cuota", "driver", "nvml", "NULL" or the path: whose code an address is. */
static inline const char *owner_of(const void *address)
{
	static struct object object;

	if (!address)
		return "NULL";
	if (object_of_address(address, &object))
		return "nobody";
	if (strncmp(object.soname, "libcuota.so", 11) == 0)
		return "cuota";
	if (object_symbol(&object, "cuGetExportTable"))
		return "driver";
	if (object_symbol(&object, "nvmlInit_v2"))
		return "nvml";
	return object.path;
}

static inline int is_ours(const void *address)
{
	return strcmp(owner_of(address), "cuota") == 0;
}

#endif
