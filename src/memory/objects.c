#include "memory/objects.h"

#include <errno.h>

int object_create(struct charges *charges, uint64_t object, uint64_t handle, unsigned device,
		  uint64_t bytes, uint8_t flags)
{
	struct charge entry = {.key = object,
			       .bytes = bytes,
			       .owner = handle,
			       .refs = 1,
			       .space = AT_OBJECT,
			       .device = (uint8_t)device,
			       .flags = flags};
	struct charge old;

	if (charges_put(charges, &entry, &old) < 0)
		return -ENOMEM;
	entry.space = AT_HANDLE;
	entry.key = handle;
	entry.owner = object;
	if (charges_put(charges, &entry, &old) < 0) {
		charges_take(charges, AT_OBJECT, object, &old);
		return -ENOMEM;
	}
	return 0;
}

void object_let_go(struct charges *charges, const struct charge *gone, struct object_end *ret)
{
	*ret = (struct object_end){.gone = *gone};
	if (charges_add(charges, AT_OBJECT, gone->owner, -1, 0, &ret->object))
		ret->gone.space = AT_NOTHING;
	else
		ret->last = ret->object.refs == 0;
}

void object_put_back(struct charges *charges, const struct object_end *end)
{
	struct charge again = end->object;
	struct charge gone = end->gone;

	if (gone.space == AT_NOTHING)
		return;
	again.refs = 1;
	charges_ref(charges, &again);
	gone.refs = 1;
	charges_ref(charges, &gone);
}

int object_retain(struct charges *charges, uint64_t handle)
{
	struct charge entry, object;

	if (charges_add(charges, AT_HANDLE, handle, 1, 0, &entry))
		return -ENOENT;
	return charges_add(charges, AT_OBJECT, entry.owner, 1, 0, &object);
}

static int mapping_holds(const struct charge *entry, void *arg)
{
	uint64_t address = *(const uint64_t *)arg;

	return entry->space == AT_MAPPING && !entry->within && address - entry->key < entry->bytes;
}

/* The mapping that an address is in. 0, or -ENOENT. */
static int mapping_at(struct charges *charges, uint64_t address, struct charge *ret)
{
	struct charges_walk walk = {0};

	if (!charges_get(charges, AT_MAPPING, address, ret) ||
	    charges_collect(charges, &walk, 0, mapping_holds, &address, ret, 1))
		return 0;
	return -ENOENT;
}

int object_retain_address(struct charges *charges, uint64_t address, uint64_t handle)
{
	struct charge mapping, object;
	struct charge entry = {.key = handle, .refs = 1, .space = AT_HANDLE};
	int result;

	if (mapping_at(charges, address, &mapping) ||
	    charges_add(charges, AT_OBJECT, mapping.owner, 1, 0, &object))
		return -ENOENT;
	entry.owner = mapping.owner;
	entry.device = object.device;
	result = charges_ref(charges, &entry);
	return result < 0 ? result : 0;
}

void object_release(struct charges *charges, uint64_t handle, struct object_end *ret)
{
	struct charge entry;

	*ret = (struct object_end){.gone.space = AT_NOTHING};
	if (!charges_add(charges, AT_HANDLE, handle, -1, 0, &entry))
		object_let_go(charges, &entry, ret);
}

/* One more mapping of an object. */
static int add_mapping(struct charges *charges, uint64_t object, struct charge *entry,
		       struct object_end *ret_replaced)
{
	struct charge whole, old;
	int result;

	*ret_replaced = (struct object_end){.gone.space = AT_NOTHING};
	if (charges_add(charges, AT_OBJECT, object, 1, 0, &whole))
		return -ENOENT;
	entry->owner = object;
	entry->refs = 1;
	entry->space = AT_MAPPING;
	entry->device = whole.device;
	result = charges_put(charges, entry, &old);
	if (result == 1)
		object_let_go(charges, &old, ret_replaced);
	if (result < 0)
		object_let_go(charges, entry, ret_replaced);
	return result < 0 ? result : 0;
}

int object_map(struct charges *charges, uint64_t handle, uint64_t place, uint64_t bytes,
	       uint64_t within, struct object_end *ret_replaced)
{
	struct charge entry = {.key = place, .bytes = bytes, .within = within}, of;

	*ret_replaced = (struct object_end){.gone.space = AT_NOTHING};
	if (charges_get(charges, AT_HANDLE, handle, &of))
		return -ENOENT;
	return add_mapping(charges, of.owner, &entry, ret_replaced);
}

int object_map_address(struct charges *charges, uint64_t address, uint64_t place, uint64_t bytes,
		       uint64_t within, struct object_end *ret_replaced)
{
	struct charge entry = {.key = place, .bytes = bytes, .within = within}, at;

	*ret_replaced = (struct object_end){.gone.space = AT_NOTHING};
	if (mapping_at(charges, address, &at))
		return -ENOENT;
	return add_mapping(charges, at.owner, &entry, ret_replaced);
}

uint64_t object_unmap(struct charges *charges, uint64_t place, struct object_end *ret)
{
	struct charge entry;

	*ret = (struct object_end){.gone.space = AT_NOTHING};
	if (charges_take(charges, AT_MAPPING, place, &entry))
		return 0;
	object_let_go(charges, &entry, ret);
	return entry.bytes;
}

int object_of_handle(struct charges *charges, uint64_t handle, struct charge *ret)
{
	struct charge entry;

	if (charges_get(charges, AT_HANDLE, handle, &entry))
		return -ENOENT;
	return charges_get(charges, AT_OBJECT, entry.owner, ret);
}
