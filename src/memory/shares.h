/*
 * Memory that more than one process has: who exported it, who holds it, and who carries its charge.
 *
 * One file per device beside the ledger, `<dir>/<UUID>.shares`, mapped by those who export or import. A
 * share is charged exactly once: to its carrier. That is the exporter while it lives, also after its own last
 * release, as long as somebody else holds the memory; when the carrier is gone, one of the holders becomes
 * the carrier, at the latest at its next tick.
 *
 * No lock: words are claimed by compare and swap, so nobody waits for the dead. Every field may be hostile: slots are
 * range-checked, and bytes never exceed the device's. A lost or damaged file costs accuracy, never a crash.
 */
#ifndef CUOTA_MEMORY_SHARES_H
#define CUOTA_MEMORY_SHARES_H

#include <stdatomic.h>
#include <stdint.h>

#include "ledger/ledger.h"

enum { SHARES = 2048, SHARE_HOLDERS = 15, SHARE_SERIALS = 64 };

#define SHARES_MAGIC 0x314552414853431aull

enum share_exported {
	EXPORT_OVER,
	EXPORT_HELD,
	EXPORT_DESCRIPTOR, /* no handle or mapping any more, but a descriptor is open */
};

struct share {
	_Atomic uint64_t owner; /* who: generation << 32 | slot + 1; 0 free; all ones: being made */
	_Atomic uint64_t carrier; /* who */
	_Atomic uint64_t key;	  /* of an IPC or fabric handle; 0: by owner and serial */
	_Atomic uint64_t bytes;
	_Atomic uint32_t serial; /* 1..SHARE_SERIALS, travels with a descriptor */
	_Atomic uint32_t
		exported;      /* enum share_exported: what the owner itself has of the memory */
	_Atomic uint64_t born; /* order of making: of two alike the younger is meant */
	_Atomic uint64_t holders[SHARE_HOLDERS]; /* who, once per import */
	_Atomic uint64_t reserved[3];
};

struct shares_file {
	uint64_t magic;
	_Atomic uint64_t births;
	uint64_t reserved[6];
	struct share share[SHARES];
};

_Static_assert(sizeof(struct share) == 192, "share layout");

struct shares {
	struct shares_file *file; /* NULL: not opened, or not to be had */
	int tried;
};

/* Opens or makes the file of the member's ledger. 0 or -errno; then nothing is shared knowingly. */
int shares_open(struct shares *shares, const struct member *member);
void shares_close(struct shares *shares);

/* Enters memory that the member exports; returns its number and the serial, or -ENOSPC. */
int share_export(struct shares *shares, const struct member *member, uint64_t key, uint64_t bytes,
		 uint32_t *ret_serial);

/* The share of an IPC handle, or -ENOENT. */
int share_find(struct shares *shares, uint64_t key);

/* The share that a living process of this host exported under that serial, or -ENOENT. */
int share_find_serial(struct shares *shares, const struct member *member, uint32_t pid,
		      uint32_t serial);

/* What it says of its size; never more than the device has. */
uint64_t share_bytes(struct shares *shares, const struct member *member, int number);

/*
 * The member holds it from now on. 0: somebody carries the charge. 1: nobody does any more, and the member is to
 * charge it (as CHARGE_IMPORT) and say so with share_carry(), or give up with share_let_go().
 */
int share_hold(struct shares *shares, const struct member *member, int number);
void share_carry(struct shares *shares, const struct member *member, int number);

/* 1 when the member carries it. */
int share_is_carried(struct shares *shares, const struct member *member, int number);

/*
 * The member lets go of one import, or (as owner) of its own. 1: its charge may be refunded now. 0: there was none, or
 * it stays the carrier because others hold the memory; shares_tick() tells when that ends.
 */
int share_let_go(struct shares *shares, const struct member *member, int number, int as_owner);

/*
 * A descriptor keeps memory, too. 1 when the share is one of descriptors and its serial is among those that are `open`
 * in the owner's process (bit serial - 1). The owner that then lets go of all else stays the carrier until
 * shares_end_descriptors() finds it closed; shares_tick() tells. That answers 1 while there are more of them.
 */
int share_has_descriptor(struct shares *shares, int number, uint64_t open);
void share_leave_to_descriptor(struct shares *shares, int number);
int shares_end_descriptors(struct shares *shares, const struct member *member, uint64_t open);

/* What a tick finds for this member: bytes to charge past the cap, or to refund. */
struct shares_change {
	uint64_t adopt_bytes;	/* shares whose carrier is gone: now the member's */
	uint64_t release_bytes; /* shares that it carried for others, who are gone */
};

void shares_tick(struct shares *shares, const struct member *member, struct shares_change *ret);

#endif
