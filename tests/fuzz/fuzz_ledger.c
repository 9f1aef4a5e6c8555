/*
 * A hostile ledger under living members: the input is a script of steps, each either a call (join, charge,
 * refund, tend, reap, view, leave) or bytes written into the shared file. Nothing may crash or hang, and no
 * process may hold more than its own cap in private memory, whatever the file says.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "ledger/open.h"
#include "ledger/protocol.h"

#define UUID	"GPU-f022f022-0000-0000-0000-000000000000"
#define MIB	(1ull << 20)
#define MEMBERS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char dir[64] = "/dev/shm/cuota-fuzz.XXXXXX";
static struct ledger ledger;
static struct member members[MEMBERS];
static const struct quota own = {.mem_bytes = 64 * MIB, .mem_process_bytes = 48 * MIB};

static void require(int holds)
{
	if (!holds)
		abort();
}

struct script {
	const uint8_t *at, *end;
};

static uint8_t next(struct script *script)
{
	return script->at < script->end ? *script->at++ : 0;
}

static uint64_t next_word(struct script *script)
{
	uint64_t word = 0;
	unsigned i, count = next(script) % 9;

	for (i = 0; i < count; i++)
		word |= (uint64_t)next(script) << (8 * i);
	return word;
}

static void remove_dir(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if (system(command) != 0)
		perror(command);
}

static void begin(void)
{
	if (!ledger.file) {
		require(mkdtemp(dir) != NULL);
		atexit(remove_dir);
		require(ledger_open(dir, UUID, &ledger, NULL) == 0);
	}
	memset(ledger.file, 0, sizeof(*ledger.file));
	ledger_header_make(&ledger.file->header, UUID);
}

/* Writes past the header's fixed part, at a word of the protocol near a member or anywhere. */
static void write_somewhere(struct script *script, const struct member *member)
{
	struct ledger_file *file = ledger.file;
	unsigned s = member->slot, g = member->group;
	uint8_t where = next(script);
	uint64_t word = next_word(script);
	size_t offset;

	if (where & 0x80) { /* another slot or group, that may be looked at in passing */
		s = next(script) % LEDGER_SLOTS;
		g = next(script) % LEDGER_GROUPS;
	}
	switch (where & 0x1f) {
	case 0: atomic_store(&file->slot[s].op, word); break;
	case 1: atomic_store(&file->slot[s].done, word); break;
	case 2: atomic_store(&file->slot[s].used[0], word); break;
	case 3: atomic_store(&file->slot[s].used[1], word); break;
	case 4: atomic_store(&file->slot[s].group, (uint32_t)word); break;
	case 5: atomic_store(&file->live[s].word, (uint32_t)word); break;
	case 6: atomic_store(&file->group[g].total, word); break;
	case 7: atomic_store(&file->group[g].state, word); break;
	case 8: atomic_store(&file->group[g].key, word); break;
	case 9: atomic_store(&file->group[g].mem_cap_bytes, word); break;
	case 10: atomic_store(&file->group[g].sm_cap_bp, (uint32_t)word); break;
	case 11: atomic_store(&file->group[g].limits_gen, (uint32_t)word); break;
	case 12: atomic_store(&file->group[g].member_hint, (uint32_t)word); break;
	case 13: atomic_store(&file->slot[s].op, members[0].op + (word & 15)); break;
	case 14:
		atomic_store(&file->group[g].total,
			     total_make(word & GRANULES_MAX, s, members[0].op >> 3));
		break;
	default:
		offset = offsetof(struct ledger_header, device_bytes) +
			 (next(script) << 16 | next(script) << 8 | next(script)) %
				 (sizeof(*file) - offsetof(struct ledger_header, device_bytes) - 8);
		memcpy((char *)file + offset, &word, 1 + where % 8);
		/* A lock that nobody holds is a second's wait: tested elsewhere. */
		atomic_store(&file->header.join_lock, 0);
	}
}

static void check_view(void)
{
	static struct ledger_view view;
	unsigned i;

	ledger_view(&ledger, &view);
	require(view.slot_count <= LEDGER_SLOTS && view.group_count <= LEDGER_SLOTS);
	for (i = 0; i < view.slot_count; i++) {
		require(view.slots[i].slot < LEDGER_SLOTS && view.slots[i].group < LEDGER_GROUPS);
		require(strlen(view.slots[i].comm) < sizeof(view.slots[i].comm));
	}
	for (i = 0; i < view.group_count; i++)
		require(strlen(view.groups[i].name) < sizeof(view.groups[i].name));
}

static void check_member(const struct member *member)
{
	if (!member->joined)
		return;
	require(member->slot < LEDGER_SLOTS && member->group < LEDGER_GROUPS);
	require(ledger_process_used(member) <= own.mem_process_bytes);
	require(ledger_room(member) <= own.mem_process_bytes);
}

static void step(struct script *script, unsigned what)
{
	static const char *const groups[] = {"", "train", "other", "train"};
	struct member *member = &members[(what >> 4) % MEMBERS];
	struct refusal why;
	uint64_t size = next_word(script);

	switch (what % 16) {
	case 0:
		if (!member->joined)
			ledger_join(&ledger, groups[size % 4], NULL, &own, member, NULL);
		break;
	case 1: ledger_leave(member); break;
	case 2: ledger_charge(member, next(script), size, &why); break;
	case 3: ledger_charge(member, size % CHARGE_KINDS, size % (64 * MIB), &why); break;
	case 4: ledger_refund(member, next(script), size); break;
	case 5: ledger_refund(member, size % CHARGE_KINDS, size % (64 * MIB)); break;
	case 6: member_tend(member, NULL); break;
	case 7: ledger_reap(&ledger); break;
	case 8: check_view(); break;
	default: write_somewhere(script, member);
	}
	check_member(member);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct script script = {data, data + bytes};
	unsigned i, steps;

	begin();
	/* The first member is there in any case: most scripts are about what it suffers. */
	require(ledger_join(&ledger, "train", NULL, &own, &members[0], NULL) == 0);
	require(ledger_charge(&members[0], CHARGE_LINEAR, 16 * MIB, NULL) == 0);
	for (steps = 0; steps < 64 && script.at < script.end; steps++)
		step(&script, next(&script));
	check_view();
	for (i = 0; i < MEMBERS; i++)
		ledger_leave(&members[i]);
	return 0;
}
