/*
 * Objects behind CUDA handles: typed, recyclable, and recognisable after destruction.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static struct object *free_list[OBJECT_KIND_END - OBJECT_CONTEXT];

void *object_new(enum object_kind kind, size_t size)
{
	struct object **list = &free_list[kind - OBJECT_CONTEXT];
	struct object *object = *list;
	if (object)
		*list = object->next_free;
	else
		object = malloc(size);
	if (!object)
		return NULL;
	memset(object, 0, size);
	object->kind = kind;
	return object;
}

void object_destroy(void *handle)
{
	struct object *object = handle;
	struct object **list = &free_list[object->kind - OBJECT_CONTEXT];
	object->kind = 0;
	object->next_free = *list;
	*list = object;
}

void *object_check(const void *handle, enum object_kind kind)
{
	uintptr_t address = (uintptr_t)handle;
	if (address < 65536 || address % sizeof(void *))
		return NULL;
	return ((const struct object *)handle)->kind == kind ? (void *)address : NULL;
}
