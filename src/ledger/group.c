/*
 * Groups: finding one by name, entering it, and making or recycling one.
 *
 * Entering a group that has a live member takes no lock: the joiner makes itself visible, then
 * looks whether the group is still the one it found. Whoever makes or recycles a group holds the
 * join lock, first closes the group and then looks for members. One of the two sees the other, as
 * in Dekker's algorithm, so a group is never reset under somebody's feet; hence the sequentially
 * consistent accesses here (plain atomic_load, atomic_store).
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/live.h"
#include "ledger/protocol.h"

#define STATE_OPEN	1ull
#define STATE_EPOCH	2ull
#define JOIN_TIMEOUT_NS NS_PER_S

static uint64_t name_key(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	while (*name)
		hash = (hash ^ (unsigned char)*name++) * 0x100000001b3ull;
	return hash | 1; /* 0 is "never used" */
}

/* The named group with this key, LEDGER_NAMED if none; *ret_state is its state, read after the key.
 */
static unsigned find(const struct ledger_file *file, uint64_t key, int open_only,
		     uint64_t *ret_state)
{
	unsigned i, g;

	for (i = 0; i < LEDGER_NAMED; i++) {
		g = (unsigned)(key / 2 + i) % LEDGER_NAMED;
		if (atomic_load(&file->group[g].key) != key)
			continue;
		*ret_state = atomic_load(&file->group[g].state);
		if (!open_only || (*ret_state & STATE_OPEN))
			return g;
	}
	return LEDGER_NAMED;
}

static int is_active_in(const struct ledger *ledger, unsigned i, unsigned g)
{
	const struct slot *slot = &ledger->file->slot[i];

	return live_is_held(ledger, i) && slot_group(slot) == g &&
	       (atomic_load(&slot->op) & OP_ACTIVE);
}

/* A live active member other than slot `self`? The hint makes it one look, as a rule. */
static int has_member(const struct ledger *ledger, unsigned g, unsigned self)
{
	unsigned hint = atomic_load(&ledger->file->group[g].member_hint), i;

	if (hint < LEDGER_SLOTS && hint != self && is_active_in(ledger, hint, g))
		return 1;
	for (i = 0; i < LEDGER_SLOTS; i++)
		if (i != self && is_active_in(ledger, i, g))
			return 1;
	return 0;
}

/* Under the join lock, with group g closed: no member left, and the dead ones' charges are gone. */
static int is_empty(struct ledger *ledger, unsigned g)
{
	struct slot *slot;
	unsigned i;

	for (i = 0; i < LEDGER_SLOTS; i++) {
		slot = &ledger->file->slot[i];
		if (atomic_load(&ledger->file->live[i].word) == 0 || slot_group(slot) != g)
			continue;
		slot_retire(ledger, i, 0);
		if (slot_group(slot) == g && !op_is_zero(atomic_load(&slot->op)))
			return 0;
	}
	return 1;
}

/* Under the join lock: closes g, and opens it again unless it is empty. 1 = closed and empty. */
static int close_if_empty(struct ledger *ledger, unsigned g)
{
	struct group *group = &ledger->file->group[g];
	uint64_t state = atomic_load(&group->state);

	atomic_store(&group->state, state & ~STATE_OPEN);
	ledger_test_point(30);
	if (is_empty(ledger, g))
		return 1;
	atomic_store(&group->state, state | STATE_OPEN);
	return 0;
}

static void lower64(_Atomic uint64_t *word, uint64_t value)
{
	uint64_t seen = atomic_load(word);

	while ((seen == 0 || seen > value) && !atomic_compare_exchange_weak(word, &seen, value))
		;
}

/* 1 when that changed something. */
static int lower32(_Atomic uint32_t *word, uint32_t value)
{
	uint32_t seen = atomic_load(word);

	while (value && (seen == 0 || seen > value))
		if (atomic_compare_exchange_weak(word, &seen, value))
			return 1;
	return 0;
}

/* What this member brings: it can make the group's caps smaller, never larger. The cap on memory is read
 * at every charge; of the others, members keep copies, and are told to look again. */
static void bring_caps(struct member *member)
{
	struct group *group = &member->ledger->file->group[member->group];
	struct quota own = quota_strictest(member->ceiling, member->asked);
	int lowered;

	ledger_test_point(35);
	lowered = lower32(&group->sm_cap_bp, own.sm_bp);
	lowered |= lower32(&group->weight, own.weight);
	lowered |= lower32(&group->priority, own.priority);
	if (own.mem_bytes != QUOTA_UNSET)
		lower64(&group->mem_cap_bytes, own.mem_bytes);
	if (lowered)
		atomic_fetch_add(&group->limits_gen, 1);
}

/* A group that has no member begins anew. limits_gen goes on: members compare it with what they
 * saw. */
static void reset(struct member *member, unsigned g, uint64_t key)
{
	struct group *group = &member->ledger->file->group[g];
	uint64_t now_ns = clock_now_ns(), epoch = atomic_load(&group->state) / STATE_EPOCH;

	atomic_store(&group->key, key);
	words_store(group->name, GROUP_NAME_BYTES / 8, member->name);
	ledger_test_point(33);
	atomic_store(&group->owner_uid, geteuid());
	atomic_store(&group->member_hint, member->slot);
	atomic_store(&group->total, total_make(0, TOTAL_NO_SLOT, epoch));
	atomic_store(&group->mem_cap_bytes, QUOTA_NONE);
	atomic_store(&group->sm_cap_bp, QUOTA_SM_NONE);
	atomic_store(&group->weight, 0);
	atomic_store(&group->priority, 0);
	atomic_store(&group->peak_bytes, 0);
	atomic_store(&group->denials, 0);
	atomic_store(&group->created_ns, now_ns);
	atomic_store(&group->byte_seconds, 0);
	atomic_store(&group->byte_seconds_at_ns, now_ns);
	atomic_store(&group->sm.tat_ns, 0);
	atomic_store(&group->sm.tat_cap_bp, 0);
	atomic_store(&group->sm.vtime_ns, 0);
	atomic_store(&group->sm.busy_ns, 0);
	atomic_store(&group->sm.throttled_ns, 0);
	atomic_store(&group->sm.launches, 0);
	atomic_store(&group->sm.last_busy_ns, 0);
}

/* Makes the slot visible in group g. Its own tag of an earlier life goes from the total first: a
 * tag that stands always tells of an owner's last operation. */
static void appear(struct member *member, unsigned g)
{
	struct ledger_file *file = member->ledger->file;
	struct slot *slot = &file->slot[member->slot];
	uint64_t total = atomic_load(&file->group[g].total);

	while (total_slot(total) == member->slot &&
	       !atomic_compare_exchange_weak(
		       &file->group[g].total, &total,
		       total_make(total_granules(total), TOTAL_NO_SLOT, total)))
		;
	atomic_store(&slot->used[0], 0);
	atomic_store(&slot->used[1], 0);
	atomic_store(&slot->group, g + 1);
	member->group = g;
}

static void activate(struct member *member)
{
	struct slot *slot = &member->ledger->file->slot[member->slot];
	uint64_t op = atomic_load(&slot->op);

	ledger_test_point(34);
	member->op = ((op | 7) ^ 7) + OP_SEQ_ONE + OP_ACTIVE;
	atomic_compare_exchange_strong(&slot->op, &op, member->op);
	atomic_store(&member->ledger->file->group[member->group].member_hint, member->slot);
}

static void disappear(struct member *member)
{
	struct slot *slot = &member->ledger->file->slot[member->slot];

	slot_retire(member->ledger, member->slot, 1);
	atomic_store(&slot->group, 0);
}

/* Enters an open group that has a member. 1 when in; 0 = it is empty or being recycled. */
static int enter_open(struct member *member, unsigned g, uint64_t key, uint64_t state)
{
	struct group *group = &member->ledger->file->group[g];

	appear(member, g);
	if (has_member(member->ledger, g, member->slot)) {
		ledger_test_point(31);
		activate(member);
		/* From here on nobody recycles it without seeing us, unless he closed it before. */
		if (atomic_load(&group->state) == state && atomic_load(&group->key) == key) {
			bring_caps(member);
			return 1;
		}
	}
	disappear(member);
	return 0;
}

/* Under the join lock: an entry to make the group in, closed; LEDGER_NAMED if all have members. */
static unsigned pick_entry(struct ledger *ledger, uint64_t key)
{
	unsigned i, g;

	for (i = 0; i < LEDGER_NAMED; i++) {
		g = (unsigned)(key / 2 + i) % LEDGER_NAMED;
		if (atomic_load(&ledger->file->group[g].key) == 0)
			return g; /* never used, so closed and empty */
	}
	for (i = 0; i < LEDGER_NAMED; i++) {
		g = (unsigned)(key / 2 + i) % LEDGER_NAMED;
		if (!has_member(ledger, g, LEDGER_SLOTS) && close_if_empty(ledger, g))
			return g;
	}
	return LEDGER_NAMED;
}

static int enter_locked(struct member *member, uint64_t key, struct error *err)
{
	struct ledger *ledger = member->ledger;
	uint64_t state;
	unsigned g = find(ledger->file, key, 0, &state);
	struct group *group;
	int fresh = 1;

	if (g < LEDGER_NAMED)
		fresh = close_if_empty(ledger, g);
	else
		g = pick_entry(ledger, key);
	if (g == LEDGER_NAMED)
		return error_set(err, EUSERS, "ledger %s: all %u named groups have members",
				 ledger->uuid, LEDGER_NAMED);
	group = &ledger->file->group[g];
	if (fresh)
		reset(member, g, key);
	ledger_test_point(32);
	appear(member, g);
	activate(member);
	bring_caps(member);
	ledger_test_point(36);
	if (fresh)
		atomic_store(&group->state, atomic_load(&group->state) + STATE_EPOCH + STATE_OPEN);
	return 0;
}

static void enter_alone(struct member *member)
{
	unsigned g = LEDGER_NAMED + member->slot;
	struct group *group = &member->ledger->file->group[g];

	reset(member, g, name_key(member->name));
	appear(member, g);
	activate(member);
	bring_caps(member);
	atomic_store(&group->state, (atomic_load(&group->state) | STATE_OPEN) + STATE_EPOCH);
}

/* 1 when in; 0 when that needs the lock: there is no such group, or it has no member. */
static int enter_unlocked(struct member *member, uint64_t key)
{
	uint64_t state;
	unsigned g, tries;

	for (tries = 0; tries < 4; tries++) {
		g = find(member->ledger->file, key, 1, &state);
		if (g == LEDGER_NAMED)
			return 0;
		if (enter_open(member, g, key, state))
			return 1;
	}
	return 0;
}

int group_enter(struct member *member, struct error *err)
{
	struct ledger *ledger = member->ledger;
	uint64_t key = name_key(member->name), start_ns = clock_now_ns();
	int code, waited = 0;

	if (member->alone) {
		enter_alone(member);
		return 0;
	}
	while (!enter_unlocked(member, key)) {
		if (ledger_lock_try(ledger, member->mark, waited)) {
			code = enter_locked(member, key, err);
			ledger_unlock(ledger, member->mark, key);
			return code;
		}
		if (clock_now_ns() - start_ns >= JOIN_TIMEOUT_NS)
			return error_set(err, ETIMEDOUT,
					 "ledger %s: a stopped process holds the join lock",
					 ledger->uuid);
		ledger_lock_wait(ledger, key);
		waited = 1;
	}
	return 0;
}
