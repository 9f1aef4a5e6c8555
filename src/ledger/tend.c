/*
 * Keeping a seat: the service thread's look, about once a second, at whether the ledger is still the one that
 * everybody uses and the slot still ours. Whatever has happened, the member is counted again in full.
 */
#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "ledger/byte_lock.h"
#include "ledger/futex.h"
#include "ledger/live.h"
#include "ledger/map.h"
#include "ledger/open.h"
#include "ledger/protocol.h"

/* From the old file, if the seat is still ours there, to the new one at the same addresses. */
static int move_over(struct member *member, struct ledger *fresh, struct error *err)
{
	int code;

	seat_leave(member);
	byte_lock_close(member->ledger); /* of the old file */
	code = map_replace(member->ledger, fresh);
	return code != 0 ? error_set(err, code, "map: %s", error_text(code)) : 0;
}

/* Under the member's lock. */
static int sit_again(struct member *member, struct ledger *fresh, struct error *err)
{
	struct slot *slot;
	uint32_t mark;
	unsigned i;
	int code = live_begin(&mark); /* the thread that joined may be gone, this its successor */

	if (code == 0 && fresh)
		code = move_over(member, fresh, err);
	else if (code == 0)
		seat_leave(member);
	if (code != 0)
		return code;
	member->mark = mark;
	code = seat_take(member, err);
	if (code != 0)
		return code;
	atomic_store(&member->lost, 0);
	member_recompute(member);
	member_count_again(member);
	slot = &member->ledger->file->slot[member->slot];
	for (i = 0; i < CHARGE_KINDS; i++)
		atomic_store(&slot->kind_bytes[i], member->kind_bytes[i]);
	log_line(LOG_INFO, "ledger %s: joined again in slot %u", member->ledger->uuid,
		 member->slot);
	return 0;
}

static int is_mine(const struct member *member)
{
	const struct live *live = &member->ledger->file->live[member->slot];

	return (atomic_load(&live->word) & FUTEX_TID_MASK) == member->mark &&
	       atomic_load(&live->generation) == member->generation;
}

int member_tend(struct member *member, struct error *err)
{
	struct ledger *ledger = member->ledger, fresh;
	int saved_errno = errno, code, replaced = 0;

	if (!member_is_ours(member))
		return -ESRCH;
	code = ledger_check_file(ledger);
	if (code == -ENODATA) { /* it is memory of our own now: an empty private ledger */
		ledger_header_make(&ledger->file->header, ledger->uuid);
		ledger->private_copy = 1;
		ledger->place.dir[0] = '\0';
		member_lose(member, "its file was cut short");
	}
	/* A path that leads nowhere is not left for: a program may have changed its root. */
	if (code == -ESTALE && ledger_open(ledger->place.dir, ledger->uuid, &fresh, NULL) == 0) {
		replaced = 1;
		member_lose(member, "its file was replaced");
	}
	if (!is_mine(member))
		member_lose(member, "its owner's mark is gone");
	code = 0;
	if (atomic_load(&member->lost)) {
		member_lock(member);
		code = sit_again(member, replaced ? &fresh : NULL, err);
		member_unlock(member);
	}
	if (replaced)
		ledger_close(&fresh);
	member_refresh(member);
	errno = saved_errno;
	return code;
}
