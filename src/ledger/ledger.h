/*
 * The shared ledger of one GPU: who is on it, what each group may use and uses. docs/ledger.md is
 * the protocol. No CUDA here.
 *
 * Threads: a struct member may be used by any thread of the process that joined; charging
 * serialises inside the process with a private lock of rank LEDGER (innermost; never held across a
 * driver call). After fork the child must not use the parent's members: they are dead to it
 * (member_is_ours()). No function here changes errno; none allocates, starts a thread or touches a
 * signal.
 */
#ifndef CUOTA_LEDGER_LEDGER_H
#define CUOTA_LEDGER_LEDGER_H

#include <stdint.h>

#include "base/config.h"
#include "base/error.h"
#include "base/quota.h"
#include "ledger/layout.h"

/* Where a ledger file is, to see whether the path still means the same file. */
struct ledger_place {
	char dir[PATH_MAX - 128]; /* "" for a private ledger */
	uint64_t device, inode;
};

struct ledger {
	struct ledger_file *file; /* NULL when closed */
	/* A word of a page that the kernel wipes in a forked child, who must not touch the rest. */
	const _Atomic uint64_t *here;
	int private_copy; /* no shared file could be had: caps hold within this process alone */
	int read_only;
	int lock_fd_plus_1; /* byte_lock.c: only where the kernel has no robust lists */
	char uuid[UUID_TEXT_BYTES];
	struct ledger_place place;
};

/* ---- opening (open.c, map.c)
 * ----------------------------------------------------------------------- */

/*
 * The directory to use: `configured` when not empty (it must exist), else /run/cuota when it exists
 * and is usable, else /dev/shm/cuota (made 1777 when missing). 0 or -errno; ret_dir has PATH_MAX
 * bytes.
 */
int ledger_dir(const char *configured, char *ret_dir, struct error *err);

/*
 * Opens, or makes, <dir>/<uuid>.ledger and checks it: regular file, no symlink, size, magic,
 * version, checksum. Errors: -ENOENT, -EACCES, -EROFS, -ENOSPC, -ELOOP, -EPROTO (damaged or another
 * version), -EINVAL (not a UUID). The caller decides between refusing and ledger_open_private().
 */
int ledger_open(const char *dir, const char *uuid, struct ledger *ret, struct error *err);

/* A ledger in this process's own memory, for when no file can be had. -ENOMEM. */
int ledger_open_private(const char *uuid, struct ledger *ret, struct error *err);

/* For status: maps an existing file read-only. */
int ledger_open_read(const char *path, struct ledger *ret, struct error *err);

/* No member of it may be joined any more, in any thread. */
void ledger_close(struct ledger *ledger);

/*
 * 0 while the path still leads to this very file at full length; -ESTALE when it was replaced or
 * removed; -ENODATA when it was cut short, and then the mapping has been replaced by private
 * memory, so that touching it is not a SIGBUS any more. One system call: for the service thread's
 * tick.
 */
int ledger_check_file(struct ledger *ledger);

/* ---- joining (join.c, group.c, live.c)
 * ------------------------------------------------------------- */

/* What a charge touches comes first, in two cache lines: after a driver's call little of it is at hand. */
struct member {
	struct ledger *ledger;
	_Atomic uint64_t private_bytes; /* what this process has charged, in private memory: a
					       hostile ledger can not make it pass its own cap */
	uint64_t op;			/* what slot.op must hold, under lock */
	/* The effective caps now. The group's also counts what the ledger holds, unless a trusted
	 * limits file speaks: group_cap = min(ceiling, limits ? limits : min(asked, ledger)). */
	_Atomic uint64_t cap_bytes;	    /* own part of the group's cap; UINT64_MAX = none */
	_Atomic uint64_t process_cap_bytes; /* this process's; UINT64_MAX = none */
	_Atomic unsigned slot, group; /* in range always; fixed until member_tend() moves them */
	uint32_t mark;		      /* the service thread's, in live.word */
	_Atomic uint32_t lock;	      /* private, serialises charging threads; rank LEDGER */
	_Atomic uint32_t lost; /* the slot is not ours any more, or damaged: caps hold within this
				  process alone until member_tend() has joined again */
	_Atomic uint32_t follow_ledger; /* no limits file speaks about memory */
	_Atomic uint32_t limits_gen;	/* of the limits file as read last */
	_Atomic uint32_t joined;
	uint64_t kind_bytes[CHARGE_KINDS]; /* what private_bytes is for; under lock */
	uint64_t charged_ever;	    /* all that was ever added to private_bytes; under lock */
	_Atomic uint32_t sm_cap_bp; /* effective, the ledger's included; QUOTA_SM_NONE */
	_Atomic uint32_t weight, priority; /* effective, never 0 */
	uint32_t generation;
	uint64_t logged_ns;
	int alone;
	struct quota ceiling;	     /* the admin's policy: nothing raises it */
	struct quota asked;	     /* the environment: `cuota set` may replace it */
	struct quota limits;	     /* of a trusted limits file; all unset when there is none */
	char name[GROUP_NAME_BYTES]; /* the group's, made up when the process is alone */
} __attribute__((aligned(64)));

/*
 * Joins `group` ("" = a group of this process alone). `ceiling` is the admin's policy, a hard
 * limit; `asked` is what the environment asks for; a limits file of `cuota set` that is to be
 * trusted replaces `asked` and the ledger's own figure, never the ceiling. Either may be NULL. MUST
 * be called from the thread that will live as long as the process's membership (the service
 * thread): the kernel releases the slot when that thread ends. -EUSERS when all slots (1,024) or
 * named groups (256) are taken, -ETIMEDOUT when a stopped process holds the join lock for longer
 * than a second (only the first member of a named group needs that lock).
 */
int ledger_join(struct ledger *ledger, const char *group, const struct quota *ceiling,
		const struct quota *asked, struct member *ret, struct error *err);

/* Gives everything back and frees the slot; same thread as ledger_join. */
void ledger_leave(struct member *member);

/* 1 in the process that joined; 0 in a forked child, which must not use the member. Costs one load.
 */
int member_is_ours(const struct member *member);

/* Re-reads the limits after `cuota set` when limits_gen moved; cheap when nothing changed. Any
 * thread; charging does it by itself. */
void member_refresh(struct member *member);

/*
 * The service thread's tick, about once a second (same thread as ledger_join, or its successor): refreshes the
 * limits, sees whether the file was cut or replaced, and joins again, charges included, when the
 * slot was lost. 0 when all is well or mended, else -errno of the attempt.
 */
int member_tend(struct member *member, struct error *err);

/* ---- charging (charge.c)
 * --------------------------------------------------------------------------- */

enum refusal_why { REFUSED_GROUP, REFUSED_PROCESS };

struct refusal {
	enum refusal_why why;
	uint64_t asked_bytes, used_bytes, cap_bytes;
	char group[GROUP_NAME_BYTES];
	unsigned members;
	uint32_t largest_pid;
	uint64_t largest_bytes;
};

/*
 * One atomic step against the group's cap and the process's: 0, or -ENOMEM with the numbers (ret
 * may be NULL) and nothing changed. Before refusing, dead members are reaped and it is tried once
 * more. O(1) when it succeeds. The process's bytes as a whole are rounded up to granules, so that
 * any split of charges and refunds comes back to zero. -ESRCH when the member is not joined, or a
 * fork's parent's.
 */
int ledger_charge(struct member *member, enum charge_kind kind, uint64_t bytes,
		  struct refusal *ret);

/* The same where others of the group are known to hold `others` bytes that they have not charged yet: both must fit
 * under the group's cap. Only `bytes` are charged. */
int ledger_charge_beside(struct member *member, enum charge_kind kind, uint64_t bytes,
			 uint64_t others, struct refusal *ret);

/*
 * The short way: charges when all caps leave `spare` bytes or more after it. Else -EAGAIN, and nothing has changed nor
 * been counted: it is too near or too much, the limits are new, or the slot is lost; ledger_charge() tells.
 */
int ledger_charge_far(struct member *member, enum charge_kind kind, uint64_t bytes, uint64_t spare);

/* Charges past the cap: for bytes that the driver has already taken (reconciled overhead). */
void ledger_charge_forced(struct member *member, enum charge_kind kind, uint64_t bytes);

/* Gives back; more than is charged for that kind is clamped, logged once, never wrapped. */
void ledger_refund(struct member *member, enum charge_kind kind, uint64_t bytes);

/* Bytes the group uses now, this process uses now, and what may still be taken under the group's
 * and the process's cap (0 when over, UINT64_MAX when neither is capped). */
uint64_t ledger_group_used(const struct member *member);
uint64_t ledger_process_used(const struct member *member);
uint64_t ledger_room(const struct member *member);

/* What this process may have used at any moment between two looks at it, which may lie far from both: memory that
 * was taken and given back, or given back and taken. */
struct used_mark {
	uint64_t used_bytes, charged_ever;
};
struct used_range {
	uint64_t least, most;
};
void ledger_used_mark(struct member *member, struct used_mark *ret);
void ledger_used_since(struct member *member, const struct used_mark *mark, struct used_range *ret);

/* 0 when all that the group uses is this process's: no other member holds anything, living or dead. */
int ledger_others_hold(const struct member *member);

/* The group's cap and the process's as they bind this member now; UINT64_MAX = none. */
uint64_t ledger_group_cap(const struct member *member);
uint64_t ledger_process_cap(const struct member *member);

/* Another member of the same group, in the same PID namespace as this process. */
struct peer {
	unsigned slot;
	uint32_t pid;
	uint64_t used_bytes, op;
};

/* The living ones, `most` at most; returns how many (view.c). */
unsigned ledger_peers(const struct member *member, struct peer *ret, unsigned most);

/* The most it may have used since it was looked at; UINT64_MAX when it has charged and refunded too often to tell. */
uint64_t ledger_peer_most(const struct member *member, const struct peer *peer);

/* ---- the dead (recover.c)
 * -------------------------------------------------------------------------- */

/* Frees every slot whose owner's kernel-released word is dead; lock-free, any process may, at any
 * time. Returns how many slots this call brought to zero. */
unsigned ledger_reap(struct ledger *ledger);

/* 1 if the slot has an owner that lives (a stopped or debugged one does; a zombie does not). */
int slot_alive(const struct ledger *ledger, unsigned slot);

/* ---- reading (view.c)
 * ------------------------------------------------------------------------------ */

struct slot_view {
	unsigned slot, group; /* group: the `index` of its group_view */
	uint32_t pid, uid;
	uint64_t pid_ns_inode, start_ns, start_ticks;
	char comm[17];
	uint64_t used_bytes, peak_bytes, cap_bytes, driver_bytes, denials;
	uint64_t kind_bytes[CHARGE_KINDS];
	uint64_t busy_ns, throttled_ns, launches, byte_seconds;
	int alive;
};

struct group_view {
	unsigned index;
	char name[GROUP_NAME_BYTES];
	uint32_t owner_uid;
	uint64_t used_bytes, peak_bytes, mem_cap_bytes, denials;
	uint64_t kind_bytes[CHARGE_KINDS];
	uint32_t sm_cap_bp, weight, priority;
	uint64_t busy_ns, throttled_ns, launches, created_ns, byte_seconds;
	unsigned members; /* slots below with this group, the dead not yet reaped included */
};

struct ledger_view {
	char uuid[UUID_TEXT_BYTES];
	char device_name[65];
	uint64_t device_bytes, context_bytes, reclaimed_slots;
	uint64_t turn_switches;
	unsigned group_count, slot_count;
	struct group_view groups[LEDGER_SLOTS]; /* only groups that have a member */
	struct slot_view slots[LEDGER_SLOTS];
};

/* A range-checked copy that trusts nothing; takes no lock, so nobody can block it. About 600 KB:
 * not for a host program's stack. */
void ledger_view(const struct ledger *ledger, struct ledger_view *ret);

/* ---- live changes (limits.c)
 * ----------------------------------------------------------------------- */

/*
 * `cuota set`: writes <dir>/limits/<group>.limits (the writer's own, 0644) and bumps limits_gen of
 * the group in each ledger of dir. Members believe the file only when it belongs to root or to
 * their own user and nobody else may write it. An unset field is left as it is in the file.
 */
int limits_write(const char *dir, const char *group, const struct quota *quota, struct error *err);

/* -ENOENT when there is none, -EPERM when it is not to be trusted by euid, -EINVAL when malformed.
 */
int limits_read(const char *dir, const char *group, unsigned euid, struct quota *ret,
		struct error *err);

#endif
