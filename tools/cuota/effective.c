/*
 * See effective.h. Unlike the library, the command may ask NSS which groups a user is in.
 */
#include "effective.h"

#include <stdlib.h>

#include "base/policy.h"
#include "cli.h"

#define GIDS_MAX 256

static const struct policy *policy(void)
{
	static struct policy *read_once;
	static int tried;

	if (!tried++ && policy_read(getenv("CUOTA_CONFIG"), &read_once, NULL))
		read_once = NULL; /* `cuota doctor` and `config check` tell why */
	return read_once;
}

/* Group after group belongs to the same user; NSS is asked once. */
static unsigned unix_groups(unsigned uid, const unsigned **ret_gids)
{
	static unsigned gids[GIDS_MAX], count, of_uid = UINT_MAX;

	if (uid != of_uid)
		count = cli_unix_groups(uid, gids, GIDS_MAX);
	of_uid = uid;
	*ret_gids = gids;
	return count;
}

static struct quota ceiling_of(const struct ledger_view *ledger, const struct group_view *group)
{
	struct policy_subject who = {
		.uid = group->owner_uid,
		.group = group->name,
		.uuid = ledger->uuid,
		.device_bytes = ledger->device_bytes,
	};

	if (!policy())
		return (struct quota){0};
	who.gid_count = unix_groups(group->owner_uid, &who.gids);
	return policy_quota(policy(), &who);
}

struct quota effective_quota(const char *limits_dir, const struct ledger_view *ledger,
			     const struct group_view *group)
{
	struct quota held = {
		.mem_bytes = group->mem_cap_bytes,
		.sm_bp = group->sm_cap_bp,
		.weight = group->weight,
		.priority = group->priority,
	};
	struct quota limits = {0};

	if (limits_read(limits_dir, group->name, group->owner_uid, &limits, NULL))
		limits = (struct quota){0};
	return quota_strictest(ceiling_of(ledger, group), quota_fill(limits, held));
}
