/*
 * Becoming a member and ceasing to be one. A slot is claimed by one compare-and-swap of its live
 * word, by whoever finds it free or its owner dead; what a dead owner left is retired first. Slots
 * are looked for from a different place each time, so that many who start at once do not queue for
 * the same one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/group_name.h"
#include "base/log.h"
#include "ledger/futex.h"
#include "ledger/live.h"
#include "ledger/map.h"
#include "ledger/open.h"
#include "ledger/protocol.h"

/* This process as people know it. Nothing is decided by it. */
struct identity {
	uint32_t pid, uid;
	uint64_t pid_ns_inode, start_ticks;
	char comm[17];
};

static void identify(struct identity *ret)
{
	char text[1024], *open, *close;
	struct file_status ns;
	unsigned field;

	memset(ret, 0, sizeof(*ret));
	ret->pid = (uint32_t)syscall(SYS_getpid);
	ret->uid = geteuid();
	if (file_status_followed("/proc/self/ns/pid", &ns) == 0)
		ret->pid_ns_inode = ns.inode;
	file_slurp("/proc/self/stat", text, sizeof(text));
	open = strchr(text, '(');
	close = strrchr(text, ')'); /* the name may hold anything, parentheses too */
	if (!open || !close || close < open)
		return;
	*close = '\0';
	memcpy(ret->comm, open + 1, strnlen(open + 1, 15));
	for (field = 2, close++; *close && field < 22; close++)
		field += *close == ' ';
	ret->start_ticks = strtoull(close, NULL, 10);
}

static void write_identity(struct member *member, const struct identity *who)
{
	struct slot *slot = &member->ledger->file->slot[member->slot];
	unsigned i;

	atomic_store(&slot->uid, who->uid);
	atomic_store(&slot->pid, who->pid);
	atomic_store(&slot->pid_ns_inode, who->pid_ns_inode);
	atomic_store(&slot->start_ns, clock_now_ns());
	atomic_store(&slot->start_ticks, who->start_ticks);
	words_store(slot->comm, 2, who->comm);
	atomic_store(&slot->cap_bytes, QUOTA_NONE);
	atomic_store(&slot->peak_bytes, 0);
	atomic_store(&slot->denials, 0);
	atomic_store(&slot->driver_bytes, 0);
	atomic_store(&slot->driver_at_ns, 0);
	atomic_store(&slot->byte_seconds, 0);
	atomic_store(&slot->byte_seconds_at_ns, clock_now_ns());
	for (i = 0; i < CHARGE_KINDS; i++)
		atomic_store(&slot->kind_bytes[i], 0);
	atomic_store(&slot->sm.want, 0);
	atomic_store(&slot->sm.vtime_ns, 0);
	atomic_store(&slot->sm.busy_ns, 0);
	atomic_store(&slot->sm.busy_until_ns, 0);
	atomic_store(&slot->sm.want_since_ns, 0);
	atomic_store(&slot->sm.throttled_ns, 0);
	atomic_store(&slot->sm.launches, 0);
}

static int claim_slot(struct member *member, struct error *err)
{
	struct ledger *ledger = member->ledger;
	struct ledger_file *file = ledger->file;
	uint64_t noise = (clock_now_ns() + member->mark) * 0x9e3779b97f4a7c15ull;
	unsigned n, i, first = (unsigned)(noise >> 40) % LEDGER_SLOTS;
	uint32_t word;

	for (n = 0; n < LEDGER_SLOTS; n++) {
		i = (first + n) % LEDGER_SLOTS;
		word = live_word(ledger, i);
		if ((word & FUTEX_TID_MASK) || !live_take(ledger, i, word, member->mark))
			continue;
		ledger_test_point(3);
		slot_retire(ledger, i, 1);
		if (!op_is_zero(atomic_load(&file->slot[i].op))) { /* somebody plays with it */
			live_drop(ledger, i, member->mark);
			continue;
		}
		atomic_store(&file->slot[i].group, 0);
		ledger_test_point(5);
		member->slot = i;
		member->generation = atomic_fetch_add(&file->live[i].generation, 1) + 1;
		return 0;
	}
	return error_set(err, EUSERS, "ledger %s: all %u slots are taken", ledger->uuid,
			 LEDGER_SLOTS);
}

int seat_take(struct member *member, struct error *err)
{
	struct identity who;
	int code;

	identify(&who);
	if (member->alone)
		snprintf(member->name, sizeof(member->name), "pid-%u.%llu.%llx", who.pid,
			 (unsigned long long)who.start_ticks, (unsigned long long)who.pid_ns_inode);
	code = claim_slot(member, err);
	if (code != 0)
		return code;
	write_identity(member, &who);
	code = group_enter(member, err);
	if (code != 0)
		live_drop(member->ledger, member->slot, member->mark);
	return code;
}

int ledger_join(struct ledger *ledger, const char *group, const struct quota *ceiling,
		const struct quota *asked, struct member *ret, struct error *err)
{
	int saved_errno = errno, code;

	memset(ret, 0, sizeof(*ret));
	if (!ledger->file || ledger->read_only || !map_is_here(ledger))
		return error_set(err, EINVAL, "the ledger is not open for writing here");
	if (group[0]) {
		code = group_name_check(group, err);
		if (code != 0)
			return code;
	}
	code = live_begin(&ret->mark);
	if (code != 0)
		return error_set(err, code, "robust list: %s", error_text(code));
	ret->ledger = ledger;
	if (ceiling)
		ret->ceiling = *ceiling;
	if (asked)
		ret->asked = *asked;
	ret->alone = !group[0];
	memcpy(ret->name, group, strnlen(group, sizeof(ret->name) - 1));
	code = seat_take(ret, err);
	errno = saved_errno;
	if (code != 0)
		return code;
	/* Not what the group's word says now: the file is to be read once in any case. */
	atomic_store(&ret->limits_gen,
		     atomic_load(&ledger->file->group[ret->group].limits_gen) - 1);
	member_recompute(ret);
	atomic_store(&ret->joined, 1);
	member_refresh(ret);
	return 0;
}

void seat_leave(struct member *member)
{
	struct ledger *ledger = member->ledger;
	struct live *live = &ledger->file->live[member->slot];

	/* The TID alone does not tell: another namespace's may be the same. */
	if ((atomic_load(&live->word) & FUTEX_TID_MASK) != member->mark ||
	    atomic_load(&live->generation) != member->generation) {
		live_drop(ledger, member->slot, LIVE_NOBODY);
		return;
	}
	slot_retire(ledger, member->slot, 1);
	ledger_test_point(4);
	atomic_store(&ledger->file->slot[member->slot].group, 0);
	live_drop(ledger, member->slot, member->mark);
}

void ledger_leave(struct member *member)
{
	if (!member_is_ours(member))
		return;
	member_lock(member);
	seat_leave(member);
	atomic_store(&member->joined, 0);
	atomic_store(&member->private_bytes, 0);
	memset(member->kind_bytes, 0, sizeof(member->kind_bytes));
	member_unlock(member);
	live_end();
}
