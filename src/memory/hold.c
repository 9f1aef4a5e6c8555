#include "memory/hold.h"

#include <errno.h>
#include <stdio.h>

#include "base/size.h"

int hold_is_short(struct member *member, uint64_t bytes, const struct relief *relief,
		  uint64_t *ret_others)
{
	uint64_t room = ledger_room(member), left = books_less(room, bytes);

	*ret_others = 0;
	if (relief->books && books_is_near(relief->books, left)) {
		*ret_others = relief->look(relief->arg, left);
		room = ledger_room(member);
	}
	if (room < bytes || !*ret_others)
		return room < bytes;
	left = books_less(ledger_group_cap(member), ledger_group_used(member));
	return books_less(left, bytes) < *ret_others;
}

/* 1 when others took so much of the room between the question and the charge that now it is near: ask again. */
static int came_near(struct hold *hold, const struct relief *relief, uint64_t left)
{
	if (!relief || !relief->books || books_is_near(relief->books, left) ||
	    !books_is_near(relief->books, ledger_room(hold->member)))
		return 0;
	hold_drop(hold);
	return 1;
}

int hold_take_near(struct hold *hold, const struct relief *relief, uint64_t bytes,
		   struct refusal *ret)
{
	struct member *member = hold->member;
	enum charge_kind kind = hold->kind;
	unsigned attempt = 0;
	uint64_t others = 0, left;
	int result;

	do {
		left = books_less(ledger_room(member), bytes);
		/* Our own pools may hold what nobody uses; a refusal is counted only when that was no help. */
		while (relief && hold_is_short(member, bytes, relief, &others) &&
		       relief->give_up(relief->arg, attempt++))
			;
		result = ledger_charge_beside(member, kind, bytes, others, ret);
		/* Not a member any more: the process is on its way out and is not stopped from that. */
		if (result == -ESRCH)
			return 0;
		if (result)
			return result;
		hold->bytes = bytes;
	} while (came_near(hold, relief, left));
	return 0;
}

int hold_take(struct hold *hold, struct member *member, enum charge_kind kind, uint64_t bytes,
	      const struct relief *relief, struct refusal *ret)
{
	*hold = (struct hold){.member = member, .kind = kind};
	if (!bytes || (relief && relief->books && hold_take_far(hold, relief->books, bytes)))
		return 0;
	return hold_take_near(hold, relief, bytes, ret);
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
