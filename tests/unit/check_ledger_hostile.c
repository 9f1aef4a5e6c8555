/*
 * Bytes flipped under living members: nobody crashes, nobody hangs, nobody gets more than its own cap, and
 * when it has stopped and the file is removed, every member is back in a new one. What it may cost
 * meanwhile is the group's sum.
 *
 * CUOTA_TEST_HOSTILE_S (3) makes it longer.
 */
#include <check.h>
#include <errno.h>

#include "base/clock.h"
#include "ledger_help.h"

#define MIB (1ull << 20)
#define OWN (64 * MIB)

static const struct quota own = {.mem_bytes = OWN};

/* Where it hurts: the words of the protocol, or anywhere past the header. */
static void flip(struct ledger_file *file, unsigned *seed)
{
	unsigned i = (unsigned)rand_r(seed), g = i % LEDGER_GROUPS, s = i % LEDGER_SLOTS;
	uint64_t word = (uint64_t)rand_r(seed) << (rand_r(seed) % 34);
	unsigned char *bytes = (unsigned char *)file;

	switch (rand_r(seed) % 12) {
	case 0: atomic_store(&file->slot[s].op, word); break;
	case 1: atomic_store(&file->slot[s].done, word); break;
	case 2: atomic_store(&file->slot[s].used[i % 2], word); break;
	case 3: atomic_store(&file->slot[s].group, (uint32_t)word); break;
	case 4: atomic_store(&file->live[s].word, (uint32_t)word); break;
	case 5: atomic_store(&file->group[g].total, word); break;
	case 6: atomic_store(&file->group[g % 8].state, word); break;
	case 7: atomic_store(&file->group[g % 8].key, word); break;
	case 8: atomic_store(&file->group[g].mem_cap_bytes, word | 1ull << 40); break;
	case 9: atomic_store(&file->header.join_lock, (uint32_t)word); break;
	case 10: atomic_fetch_add(&file->group[g].limits_gen, 1); break;
	default: bytes[LEDGER_PAGE + i % (sizeof(*file) - LEDGER_PAGE)] = (unsigned char)word;
	}
}

/* The same, at words that are in use. */
static void flip_busy(struct ledger_file *file, unsigned *seed)
{
	unsigned i, tries;

	for (tries = 0; tries < 64; tries++) {
		i = (unsigned)rand_r(seed) % LEDGER_SLOTS;
		if (atomic_load(&file->live[i].word) == 0)
			continue;
		switch (rand_r(seed) % 5) {
		case 0: atomic_fetch_xor(&file->slot[i].op, 1ull << (rand_r(seed) % 64)); break;
		case 1: atomic_fetch_xor(&file->live[i].word, 1u << (rand_r(seed) % 32)); break;
		case 2: atomic_fetch_xor(&file->slot[i].group, 1u << (rand_r(seed) % 12)); break;
		case 3:
			atomic_fetch_xor(&file->slot[i].used[0], 1ull << (rand_r(seed) % 64));
			break;
		case 4:
			atomic_fetch_xor(&file->group[LEDGER_NAMED + i].total,
					 1ull << (rand_r(seed) % 64));
			break;
		}
	}
}

static void hostile(unsigned seed)
{
	struct ledger ledger;

	help_open(&ledger);
	for (;;) {
		flip(ledger.file, &seed);
		if (rand_r(&seed) % 16 == 0)
			flip_busy(ledger.file, &seed);
		if (rand_r(&seed) % 64 == 0)
			usleep(50);
	}
}

/* Ends the process with a telling status when something is not as it must be. */
static void must(int truth, int status)
{
	if (!truth)
		_exit(status);
}

static void victim_round(struct ledger *ledger, struct member *member, unsigned *seed)
{
	static struct ledger_view view;
	uint64_t bytes = (uint64_t)(rand_r(seed) % (16 << 20));
	unsigned kind = (unsigned)rand_r(seed) % CHARGE_KINDS, i;
	struct refusal why;

	if (rand_r(seed) % 2)
		ledger_charge(member, kind, bytes, &why);
	else
		ledger_refund(member, kind, bytes);
	must(ledger_process_used(member) <= OWN, 3);
	must(ledger_room(member) <= OWN, 4);
	if (rand_r(seed) % 64)
		return;
	member_tend(member, NULL);
	must(member->slot < LEDGER_SLOTS && member->group < LEDGER_GROUPS, 5);
	ledger_reap(ledger);
	ledger_view(ledger, &view);
	must(view.slot_count <= LEDGER_SLOTS && view.group_count <= LEDGER_SLOTS, 6);
	for (i = 0; i < view.slot_count; i++)
		must(view.slots[i].slot < LEDGER_SLOTS && view.slots[i].group < LEDGER_GROUPS, 7);
}

static void victim(unsigned seed, uint64_t end_ns)
{
	struct ledger ledger;
	struct member member;
	uint64_t start_ns, held;

	alarm(60); /* a hang is a death by SIGALRM */
	help_open(&ledger);
	if (ledger_join(&ledger, seed % 2 ? "train" : "", NULL, &own, &member, NULL) != 0)
		_exit(0); /* all slots may look taken */
	while (clock_now_ns() < end_ns) {
		start_ns = clock_now_ns();
		victim_round(&ledger, &member, &seed);
		must(clock_now_ns() - start_ns < 5 * NS_PER_S, 8);
	}
	/* Peace: a seat is taken again and the books are right again. */
	held = ledger_process_used(&member);
	for (start_ns = clock_now_ns(); clock_now_ns() - start_ns < 5 * NS_PER_S;) {
		usleep(10000);
		if (member_tend(&member, NULL) == 0 && !member.lost &&
		    help_total(&member) >= held && ledger_check_file(&ledger) == 0)
			break;
	}
	must(!member.lost && ledger.private_copy == 0, 9);
	must(ledger_check_file(&ledger) == 0, 11);
	must(ledger_process_used(&member) == held, 10);
	ledger_refund(&member, CHARGE_LINEAR, UINT64_MAX);
	ledger_leave(&member);
	_exit(0);
}

START_TEST(bytes_flipped_under_living_members_cost_fairness_and_nothing_else)
{
	unsigned seconds =
		getenv("CUOTA_TEST_HOSTILE_S") ? (unsigned)atoi(getenv("CUOTA_TEST_HOSTILE_S")) : 3;
	uint64_t end_ns = clock_now_ns() + seconds * NS_PER_S;
	struct ledger ledger;
	pid_t victims[8], enemy;
	unsigned i;
	int status;

	help_open(&ledger);
	enemy = fork();
	if (enemy == 0)
		hostile(7);
	for (i = 0; i < 8; i++) {
		victims[i] = fork();
		if (victims[i] == 0)
			victim(i + 1, end_ns + 100 * NS_PER_MS);
	}
	while (clock_now_ns() < end_ns)
		usleep(10000);
	kill(enemy, SIGKILL);
	waitpid(enemy, NULL, 0);
	/* Words of owners that never were stay taken; the remedy is the administrator's: a new file. */
	ck_assert_int_eq(unlink(help_path), 0);
	for (i = 0; i < 8; i++) {
		ck_assert_int_eq(waitpid(victims[i], &status, 0), victims[i]);
		ck_assert_msg(status == 0, "victim %u: signal %d, status %d", i, WTERMSIG(status),
			      WEXITSTATUS(status));
	}
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("hostile");

	tcase_add_checked_fixture(tcase, help_setup, help_teardown);
	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, bytes_flipped_under_living_members_cost_fairness_and_nothing_else);
	return help_run("ledger: a hostile neighbour", tcase);
}
