/*
 * The shared ledger of one GPU: who is on it, what each group may use and uses. docs/ledger.md is the
 * protocol. No CUDA here; the clock and the file are handed in.
 *
 * Threads: a struct member may be used by any thread of the process that joined; charging serialises
 * inside the process with a private lock of rank LEDGER (innermost; never held across a driver call).
 * After fork the child must not use the parent's members: they are dead to it (see member_is_ours).
 */
#ifndef CUOTA_LEDGER_LEDGER_H
#define CUOTA_LEDGER_LEDGER_H

#include <stdint.h>

#include "base/config.h"
#include "base/error.h"
#include "base/quota.h"
#include "ledger/layout.h"

struct ledger {
	struct ledger_file *file; /* MAP_SHARED; NULL when closed */
	char uuid[UUID_TEXT_BYTES];
	int private_copy; /* no shared file could be had: caps hold within this process alone */
	int read_only;
};

/* ---- opening (open.c) ----------------------------------------------------------------------------- */

/*
 * The directory to use: `configured` when not empty, else /run/cuota when it exists and is usable, else
 * /dev/shm/cuota (made 1777 when missing). 0 or -errno; ret_dir has PATH_MAX bytes.
 */
int ledger_dir(const char *configured, char *ret_dir, struct error *err);

/*
 * Opens, or makes, <dir>/<uuid>.ledger and checks it: regular file, no symlink, size, magic, version,
 * checksum. Errors: -EACCES, -EROFS, -ENOSPC, -ELOOP, -EPROTO (damaged or a newer version), -EINVAL.
 * The caller decides between refusing and ledger_open_private().
 */
int ledger_open(const char *dir, const char *uuid, struct ledger *ret, struct error *err);

/* A ledger in this process's own memory, for when no file can be had. -ENOMEM. */
int ledger_open_private(const char *uuid, struct ledger *ret, struct error *err);

/* For status: maps an existing file read-only. */
int ledger_open_read(const char *path, struct ledger *ret, struct error *err);

void ledger_close(struct ledger *ledger);

/* ---- joining (join.c, live.c) --------------------------------------------------------------------- */

struct member {
	struct ledger *ledger;
	unsigned slot, group; /* checked at join, fixed for life */
	uint32_t generation;
	struct quota own; /* this process's own ceiling (policy, environment): private memory */
	_Atomic uint64_t private_bytes; /* what this process has charged, in private memory: a hostile
					   ledger can not make it pass its own cap */
	_Atomic uint32_t lock;	/* private, serialises charging threads */
	_Atomic uint64_t cap_bytes;   /* effective cap of the group now: min(own, ledger, limits file) */
	_Atomic uint32_t sm_cap_bp;   /* likewise; QUOTA_SM_NONE */
	_Atomic uint32_t weight, priority;
	uint32_t limits_gen;
	int joined;
};

/*
 * Joins `group` ("" = a group of this process alone) with this process's own quota. MUST be called from
 * the thread that will live as long as the process's membership (the service thread): the kernel releases
 * the slot when that thread ends. -EUSERS when all slots are taken, -ETIMEDOUT when the join lock is held
 * by a stopped process for longer than a second. The stricter of the group's and own caps counts.
 */
int ledger_join(struct ledger *ledger, const char *group, const struct quota *own,
		struct member *ret, struct error *err);

/* Gives everything back and frees the slot; same thread as ledger_join. */
void ledger_leave(struct member *member);

/* Re-reads the limits after `cuota set` when limits_gen moved; cheap when nothing changed. Service
 * thread, or whoever is about to refuse. */
void member_refresh(struct member *member);

/* ---- charging (charge.c) -------------------------------------------------------------------------- */

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
 * One atomic step against the group's cap and the process's: 0, or -ENOMEM with the numbers (ret may be
 * NULL) and nothing changed. Before refusing, dead members are reaped and it is tried once more. O(1)
 * when it succeeds. Bytes are rounded up to granules.
 */
int ledger_charge(struct member *member, enum charge_kind kind, uint64_t bytes, struct refusal *ret);

/* Charges past the cap: for bytes that the driver has already taken (reconciled overhead). */
void ledger_charge_forced(struct member *member, enum charge_kind kind, uint64_t bytes);

/* Gives back; more than is charged is clamped, logged once, never wrapped. */
void ledger_refund(struct member *member, enum charge_kind kind, uint64_t bytes);

/* Bytes the group uses now, this process uses now, and what the group may still take (0 when over). */
uint64_t ledger_group_used(const struct member *member);
uint64_t ledger_process_used(const struct member *member);
uint64_t ledger_room(const struct member *member);

/* ---- the dead (recover.c) ------------------------------------------------------------------------- */

/* Frees every slot whose owner's kernel-released lock is gone; lock-free, any process may, at any time.
 * Returns how many. */
unsigned ledger_reap(struct ledger *ledger);

/* 1 if the slot's owner lives (a stopped or debugged one does; a zombie does not). */
int slot_alive(const struct slot *slot);

/* ---- reading (view.c) ----------------------------------------------------------------------------- */

struct slot_view {
	unsigned slot, group;
	uint32_t pid, uid;
	uint64_t pid_ns_inode, start_ns, start_ticks;
	char comm[17];
	uint64_t used_bytes, peak_bytes, cap_bytes, driver_bytes, denials;
	uint64_t kind_bytes[CHARGE_KINDS];
	uint64_t busy_ns, throttled_ns, launches;
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
	unsigned members;
};

struct ledger_view {
	char uuid[UUID_TEXT_BYTES];
	char device_name[65];
	uint64_t device_bytes, context_bytes, reclaimed_slots;
	uint64_t turn_switches;
	unsigned group_count, slot_count;
	struct group_view groups[LEDGER_GROUPS];
	struct slot_view slots[LEDGER_SLOTS];
};

/* A range-checked copy that trusts nothing; takes no lock, so nobody can block it. About 1 MB. */
void ledger_view(const struct ledger *ledger, struct ledger_view *ret);

/* ---- live changes (limits.c) ---------------------------------------------------------------------- */

/*
 * `cuota set`: writes <dir>/limits/<group>.limits (owner only) and bumps limits_gen of the group in each
 * ledger. Members believe the file only when it belongs to root or to their own user and nobody else may
 * write it. An unset field is left as it is.
 */
int limits_write(const char *dir, const char *group, const struct quota *quota, struct error *err);
int limits_read(const char *dir, const char *group, unsigned euid, struct quota *ret,
		struct error *err);

#endif
