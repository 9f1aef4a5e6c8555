/*
 * The ledger file: one per GPU (or MIG instance), `<dir>/<UUID>.ledger`, mapped shared by every
 * process under a quota there. docs/ledger.md tells the protocol; this file is the layout.
 *
 * Rules that every reader keeps: any byte may be hostile, so indexes are range-checked before use
 * and a value read once is not read again; slots never move; nothing here ever raises a cap (caps
 * also live in process-private memory, and the smaller one wins). Whatever may be read while it is
 * written is _Atomic; text is kept in atomic words (words_load, words_store in protocol.h).
 *
 * Changing the layout means a new LEDGER_VERSION.
 */
#ifndef CUOTA_LEDGER_LAYOUT_H
#define CUOTA_LEDGER_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/config.h"

#define LEDGER_MAGIC   0x4741544f55431a01ull /* "\1\032CUOTAG" on disk, little endian */
#define LEDGER_VERSION 1u
#define LEDGER_SLOTS   1024u
#define LEDGER_NAMED   256u			     /* groups with a name that processes share */
#define LEDGER_GROUPS  (LEDGER_NAMED + LEDGER_SLOTS) /* group LEDGER_NAMED + i is slot i's alone */
#define LEDGER_PAGE    4096u

/* The distance in this process's memory between a word of the file and the kernel's list entry for
 * it (live.h). One constant for every ledger: the kernel knows one offset per thread. */
#define LEDGER_SPAN (2u << 20)

/* Memory is charged in granules, so that the group's total, the last writer's slot and its
 * operation number fit one atomic word (docs/ledger.md, "Detectable charge"). */
#define GRANULE_BYTES 512u

/* group.total: granules:36 | slot:11 | sequence:17 */
#define TOTAL_SEQ_BITS	   17
#define TOTAL_SLOT_BITS	   11
#define TOTAL_GRANULE_BITS 36
#define TOTAL_NO_SLOT	   ((1u << TOTAL_SLOT_BITS) - 1)

/* What the bytes are for; for showing only, the cap is on their sum. */
enum charge_kind {
	CHARGE_LINEAR, /* cuMemAlloc, pitch */
	CHARGE_MANAGED,
	CHARGE_POOL,	/* reserved by stream-ordered pools */
	CHARGE_VIRTUAL, /* cuMemCreate */
	CHARGE_ARRAY,
	CHARGE_GRAPH,	 /* graph memory nodes */
	CHARGE_CONTEXT,	 /* contexts, stacks, heaps, printf buffers */
	CHARGE_MODULE,	 /* code and globals */
	CHARGE_IMPORT,	 /* shared memory whose exporter is gone */
	CHARGE_OVERHEAD, /* what the driver's own figure shows beyond the rest (reconciler) */
	CHARGE_KINDS
};

/* Written by sched only; all times CLOCK_MONOTONIC ns. 128 bytes. */
struct group_sm {
	_Atomic uint64_t tat_ns;       /* bucket: instant at which the debt is repaid (GCRA) */
	_Atomic uint64_t vtime_ns;     /* weighted virtual time for turns */
	_Atomic uint64_t busy_ns;      /* device-busy time charged since the group began */
	_Atomic uint64_t throttled_ns; /* host time spent waiting for the cap or a turn */
	_Atomic uint64_t launches;
	_Atomic uint64_t last_busy_ns; /* when work was last charged */
	_Atomic uint64_t tat_cap_bp;   /* the cap that tat_ns was reckoned by; 0 = nobody's yet */
	_Atomic uint64_t reserved[9];
};

/*
 * A group. Named ones (index below LEDGER_NAMED) are made and recycled under the join lock only,
 * while `state` says closed; a group with a live active member is never recycled.
 */
struct group {
	_Atomic uint64_t key;	/* hash of the name; 0 = never used */
	_Atomic uint64_t state; /* epoch << 1 | open; the epoch moves at every reset */
	_Atomic uint64_t name[GROUP_NAME_BYTES / 8]; /* group_name() reads it */
	_Atomic uint32_t owner_uid;   /* of the first member: who else may `cuota set` it is root */
	_Atomic uint32_t member_hint; /* slot of a recent joiner */
	_Atomic uint64_t denials;
	_Atomic uint64_t created_ns;
	_Atomic uint64_t byte_seconds; /* accounting, integrated by members' service threads */
	_Atomic uint64_t byte_seconds_at_ns;
	/* What a charge reads and writes, in one cache line. */
	_Atomic uint64_t total __attribute__((aligned(64))); /* see above */
	_Atomic uint64_t mem_cap_bytes; /* min over members; QUOTA_NONE = none yet */
	_Atomic uint64_t peak_bytes;
	_Atomic uint32_t limits_gen; /* bumped by `cuota set`: re-read the limits file */
	_Atomic uint32_t sm_cap_bp;  /* min over members; QUOTA_SM_NONE */
	_Atomic uint32_t weight;     /* min over members that ask; 0 = nobody did: group_weight() */
	_Atomic uint32_t priority;   /* likewise: group_priority() */
	struct group_sm sm __attribute__((aligned(64)));
} __attribute__((aligned(512)));

/* Written by sched only. 128 bytes. What one process tells the others about its device work. */
struct slot_sm {
	_Atomic uint32_t want; /* nonzero: has work and waits for the turn */
	_Atomic uint32_t
		turn_futex;	   /* the service thread sleeps here; bumped and woken by others */
	_Atomic uint64_t vtime_ns; /* within the group */
	_Atomic uint64_t busy_ns;
	_Atomic uint64_t busy_until_ns; /* predicted end of the work already on the device */
	_Atomic uint64_t want_since_ns;
	_Atomic uint64_t throttled_ns;
	_Atomic uint64_t launches;
	_Atomic uint32_t in_sync; /* host threads blocked until device work is done */
	_Atomic uint32_t unsure;  /* work is under way whose end a mark will tell */
	_Atomic uint32_t resting; /* waits for its cap: takes no more of its turn */
	_Atomic uint32_t
		demand_bp; /* of the device, if it had it for itself: hundredths of a percent */
	_Atomic uint64_t paid_ns; /* when work was last handed to the device */
	_Atomic uint32_t deep;	  /* keeps its queue filled: never dry between two launches */
	_Atomic uint32_t
		hung; /* how often of late its work was not waited for any longer (turns.c) */
	_Atomic uint64_t reserved[5];
};

/*
 * Who holds slot i. 0 = nobody; else the TID of the owner's service thread, in which the kernel
 * puts FUTEX_OWNER_DIED when that thread ends, however it ends. Eight bytes apart, because the
 * kernel's list entries in the shadow (live.h) are pointers.
 */
struct live {
	_Atomic uint32_t word;
	_Atomic uint32_t generation; /* moves at every claim: tells an old owner from a new one */
};

/* A slot is one process on this device. Written by its owner, except op and done (protocol.h). */
struct slot {
	_Atomic uint64_t op;	  /* sequence and state of the last operation; protocol.h */
	_Atomic uint64_t done;	  /* highest sequence known to be in group.total */
	_Atomic uint64_t used[2]; /* granules: before and after the operation */
	_Atomic uint32_t group;	  /* index + 1; 0 = none: slot_group() */
	_Atomic uint32_t uid;
	_Atomic uint32_t pid; /* as the owner's own PID namespace sees it */
	_Atomic uint32_t pad0;
	_Atomic uint64_t cap_bytes; /* per process; QUOTA_NONE */
	_Atomic uint64_t peak_bytes;
	_Atomic uint64_t kind_bytes[CHARGE_KINDS]; /* breakdown, informational */
	_Atomic uint64_t denials;
	_Atomic uint64_t driver_bytes; /* the driver's own figure, last reconciled; 0 = unknown */
	_Atomic uint64_t driver_at_ns;
	_Atomic uint64_t pid_ns_inode;
	_Atomic uint64_t start_ns;    /* attach time */
	_Atomic uint64_t start_ticks; /* process start time, /proc/self/stat field 22 */
	_Atomic uint64_t comm[2];
	_Atomic uint64_t byte_seconds; /* accounting: integrated by the owner (journal_tick) */
	_Atomic uint64_t byte_seconds_at_ns;
	struct slot_sm sm __attribute__((aligned(64)));
} __attribute__((aligned(512)));

/* Written by sched only. Who has the device. */
struct turn {
	_Atomic uint64_t owner; /* epoch << 16 | slot + 1; slot part 0 = nobody */
	_Atomic uint64_t since_ns;
	_Atomic uint64_t until_ns;  /* lease: past it plus a bound anybody may take the turn */
	_Atomic uint64_t vclock_ns; /* virtual time of the last winner: a newcomer starts here */
	_Atomic uint64_t wanting[LEDGER_SLOTS / 64]; /* hint bitmap of slots with sm.want */
	_Atomic uint64_t switches;
	_Atomic uint64_t
		asked_ns[4]; /* by priority: when a group of it last asked for the device */
	_Atomic uint64_t contended_ns; /* when somebody last asked for a device that another had */
	_Atomic uint64_t intruded_ns;  /* busy time of those who went along without a turn */
	_Atomic uint64_t reserved[5];
};

struct ledger_header {
	/* Written before the file has a name, never again. */
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t file_bytes;
	uint32_t slots, groups;
	uint32_t slot_bytes, group_bytes;
	char uuid[UUID_TEXT_BYTES];
	uint64_t checksum; /* FNV-1a of everything above */
	/* Written by members. */
	_Atomic uint64_t device_bytes;	/* as the driver says; for status */
	_Atomic uint64_t context_bytes; /* measured size of a bare context; 0 = not yet */
	_Atomic uint32_t join_lock; /* TID of who makes a group; kernel-released like live.word */
	_Atomic uint32_t device_index; /* NVML's, a hint for people */
	_Atomic uint64_t reclaimed_slots;
	_Atomic uint64_t device_name[8]; /* words_load() */
};

struct ledger_file {
	union {
		struct ledger_header header;
		unsigned char page0[LEDGER_PAGE];
	};
	union {
		struct turn turn;
		unsigned char page1[LEDGER_PAGE];
	};
	struct live live[LEDGER_SLOTS];
	struct group group[LEDGER_GROUPS];
	struct slot slot[LEDGER_SLOTS];
};

_Static_assert(sizeof(struct group_sm) == 128, "group_sm layout");
_Static_assert(sizeof(struct slot_sm) == 128, "slot_sm layout");
_Static_assert(sizeof(struct group) == 512, "group layout");
_Static_assert(sizeof(struct slot) == 512, "slot layout");
_Static_assert(sizeof(struct live) == 8, "a list entry fits beside each live word");
_Static_assert(sizeof(struct turn) <= LEDGER_PAGE, "the turn fits its page");
_Static_assert(sizeof(struct ledger_header) <= LEDGER_PAGE, "the header fits its page");
_Static_assert(sizeof(struct ledger_file) <= LEDGER_SPAN, "the file fits its span");
_Static_assert(LEDGER_SLOTS < TOTAL_NO_SLOT, "a slot fits the total's tag");

#endif
