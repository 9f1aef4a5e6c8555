/*
 * The two functions of include/cuota.h: reads this process's seat, changes nothing but taking the seat when
 * the program has not used the device yet.
 */
#include "cuota.h"

#include <errno.h>
#include <string.h>

#include "hooks/hooks.h"
#include "hooks/tenant.h"
#include "ledger/protocol.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT const char *cuota_version(void)
{
	return CUOTA_VERSION;
}

static unsigned members_of(const struct ledger *ledger, unsigned group)
{
	unsigned count = 0;

	for (unsigned i = 0; i < LEDGER_SLOTS; i++)
		count += slot_alive(ledger, i) && slot_group(&ledger->file->slot[i]) == group;
	return count;
}

static void fill(struct device_tenant *device, struct cuota_info *ret)
{
	struct member *member = &device->member;
	const struct group *group = &device->ledger.file->group[member->group];

	ret->members = members_of(&device->ledger, member->group);
	memcpy(ret->group, member->name, sizeof(ret->group));
	memcpy(ret->uuid, device->uuid, sizeof(ret->uuid));
	ret->mem_cap_bytes = ledger_group_cap(member);
	ret->mem_used_bytes = ledger_group_used(member);
	ret->mem_process_bytes = ledger_process_used(member);
	ret->mem_process_cap_bytes = ledger_process_cap(member);
	ret->denials = atomic_load(&group->denials);
	ret->busy_ns = atomic_load(&group->sm.busy_ns);
	ret->throttled_ns = atomic_load(&group->sm.throttled_ns);
	ret->sm_cap_bp = atomic_load(&member->sm_cap_bp);
	ret->weight = atomic_load(&member->weight);
	ret->priority = atomic_load(&member->priority);
	ret->shared = !device->ledger.private_copy;
}

EXPORT int cuota_query(int device, struct cuota_info *info, unsigned long info_size)
{
	struct cuota_info full = {0};
	struct device_tenant *seat;
	int saved = errno;

	if (!info || info_size < sizeof(full))
		return -EINVAL;
	seat = hooks_load() ? NULL : tenant_of_device((CUdevice)device);
	errno = saved;
	if (!seat || !member_is_ours(&seat->member))
		return -ENODEV;
	full.size = sizeof(full);
	fill(seat, &full);
	memcpy(info, &full, sizeof(full));
	return 0;
}

_Static_assert(CUOTA_NO_CAP == UINT64_MAX && CUOTA_NO_CAP == QUOTA_NONE,
	       "no cap reads as in quota.h");
_Static_assert(sizeof(((struct cuota_info *)0)->group) == GROUP_NAME_BYTES, "a name fits");
_Static_assert(sizeof(((struct cuota_info *)0)->uuid) == UUID_TEXT_BYTES, "a UUID fits");
