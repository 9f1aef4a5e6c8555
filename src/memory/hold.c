#include "memory/hold.h"

#include <errno.h>
#include <stdio.h>

#include "base/size.h"

int hold_take(struct hold *hold, struct member *member, enum charge_kind kind, uint64_t bytes,
	      const struct relief *relief, struct refusal *ret)
{
	unsigned attempt = 0;
	int result;

	*hold = (struct hold){.member = member, .kind = kind};
	if (!bytes)
		return 0;
	/* Our own pools may hold what nobody uses; a refusal is counted only when that was no help. */
	while (relief && ledger_room(member) < bytes && relief->give_up(relief->arg, attempt++))
		;
	result = ledger_charge(member, kind, bytes, ret);
	/* Not a member any more: the process is on its way out and is not stopped from that. */
	if (result == -ESRCH)
		return 0;
	if (!result)
		hold->bytes = bytes;
	return result;
}

void hold_drop(struct hold *hold)
{
	if (hold->bytes)
		ledger_refund(hold->member, hold->kind, hold->bytes);
	hold->bytes = 0;
}

int hold_settle(struct hold *hold, uint64_t actual, struct refusal *ret)
{
	if (actual > hold->bytes) {
		int result = ledger_charge(hold->member, hold->kind, actual - hold->bytes, ret);

		if (result)
			return result == -ESRCH ? 0 : result;
	} else if (actual < hold->bytes) {
		ledger_refund(hold->member, hold->kind, hold->bytes - actual);
	}
	hold->bytes = actual;
	return 0;
}

void hold_settle_forced(struct hold *hold, uint64_t actual)
{
	if (actual > hold->bytes)
		ledger_charge_forced(hold->member, hold->kind, actual - hold->bytes);
	else if (actual < hold->bytes)
		ledger_refund(hold->member, hold->kind, hold->bytes - actual);
	hold->bytes = actual;
}

const char *refusal_text(const struct refusal *refusal, const char *uuid,
			 char buf[REFUSAL_TEXT_BYTES])
{
	char asked[16], used[16], cap[16], largest[16];

	size_format(refusal->asked_bytes, asked, sizeof(asked));
	size_format(refusal->used_bytes, used, sizeof(used));
	size_format(refusal->cap_bytes, cap, sizeof(cap));
	size_format(refusal->largest_bytes, largest, sizeof(largest));
	if (refusal->why == REFUSED_PROCESS)
		snprintf(buf, REFUSAL_TEXT_BYTES,
			 "out of memory on %.8s…: asked %s, used %s of %s (cap of each process, "
			 "group "
			 "%s)",
			 uuid, asked, used, cap, refusal->group);
	else
		snprintf(buf, REFUSAL_TEXT_BYTES,
			 "out of memory on %.8s…: asked %s, used %s of %s (group %s, %u process%s; "
			 "largest pid %u %s)",
			 uuid, asked, used, cap, refusal->group, refusal->members,
			 refusal->members == 1 ? "" : "es", refusal->largest_pid, largest);
	return buf;
}
