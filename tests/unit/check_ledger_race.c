/*
 * Many at once: processes released together, and threads of one process (for ThreadSanitizer). What
 * is between the ledger's yes and the end of the driver's call is a delay here.
 *
 * CUOTA_TEST_DELAY_US (5000) and CUOTA_TEST_ROUNDS (1000) shorten or lengthen the first test.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "ledger_help.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static unsigned from_environment(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)atoi(text) : otherwise;
}

/* The driver takes its time, and now and then has no memory after all. */
static int slow_driver(unsigned delay_us, int fails)
{
	usleep(delay_us);
	return fails ? -ENOMEM : 0;
}

struct tally {
	_Atomic unsigned taken, wrong;
};

/* Six allocations of 1.5 GiB, then all is freed again when everybody has tried. */
static void six_requests(struct member *member, struct help_gate *gate, struct tally *tally,
			 unsigned round, unsigned delay_us)
{
	unsigned i, mine = 0;

	help_gate_pass(gate, 2 * round + 1);
	for (i = 0; i < 6; i++) {
		if (ledger_charge(member, CHARGE_LINEAR, 3 * GIB / 2, NULL) != 0)
			continue;
		if (ledger_group_used(member) > 8 * GIB)
			atomic_fetch_add(&tally->wrong, 1);
		slow_driver(delay_us, 0);
		mine++;
	}
	atomic_fetch_add(&tally->taken, mine);
	help_gate_pass(gate, 2 * round + 2);
	for (i = 0; i < mine; i++)
		ledger_refund(member, CHARGE_LINEAR, 3 * GIB / 2);
}

START_TEST(two_processes_of_six_requests_each_get_exactly_five_in_every_round)
{
	unsigned rounds = from_environment("CUOTA_TEST_ROUNDS", 1000);
	unsigned delay_us = from_environment("CUOTA_TEST_DELAY_US", 5000);
	struct quota quota = {.mem_bytes = 8 * GIB};
	struct help_gate *gate = help_gate();
	struct tally *tally = (struct tally *)help_gate();
	struct ledger ledger;
	struct member member;
	unsigned round, i;
	pid_t pids[2];

	for (i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] != 0)
			continue;
		help_open(&ledger);
		help_join(&ledger, "train", &quota, &member);
		for (round = 0; round < rounds; round++)
			six_requests(&member, gate, tally, round, delay_us);
		ledger_leave(&member);
		_exit(0);
	}
	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	for (round = 0; round < rounds; round++) {
		help_gate_open(gate, 2, 2 * round + 1);
		help_gate_open(gate, 2, 2 * round + 2);
		ck_assert_uint_eq(atomic_exchange(&tally->taken, 0), 5);
	}
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(waitpid(pids[i], NULL, 0), pids[i]);
	ck_assert_uint_eq(tally->wrong, 0);
	ck_assert_uint_eq(help_total(&member), 0);
}
END_TEST

START_TEST(eight_processes_that_charge_and_refund_end_at_zero)
{
	struct quota quota = {.mem_bytes = 6 * MIB};
	struct tally *tally = (struct tally *)help_gate();
	struct ledger ledger;
	struct member member;
	pid_t pids[8];
	uint64_t end_ns = clock_now_ns() + 2 * NS_PER_S;
	unsigned i;

	for (i = 0; i < 8; i++) {
		pids[i] = fork();
		if (pids[i] != 0)
			continue;
		help_open(&ledger);
		help_join(&ledger, "train", &quota, &member);
		while (clock_now_ns() < end_ns) {
			/* Every second one by the short way. */
			if (i / 2 % 2 ? ledger_charge_far(&member, CHARGE_LINEAR, MIB, 0) != 0
				      : ledger_charge(&member, CHARGE_LINEAR, MIB, NULL) != 0)
				continue;
			if (help_total(&member) > 6 * MIB)
				atomic_fetch_add(&tally->wrong, 1);
			if (slow_driver(0, rand() % 8 == 0) == 0)
				atomic_fetch_add(&tally->taken, 1);
			ledger_refund(&member, CHARGE_LINEAR, MIB);
		}
		if (i % 2)
			ledger_leave(&member);
		_exit(0);
	}
	for (i = 0; i < 8; i++)
		ck_assert_int_eq(waitpid(pids[i], NULL, 0), pids[i]);
	ck_assert_uint_eq(tally->wrong, 0);
	ck_assert_uint_gt(tally->taken, 1000);
	help_open(&ledger);
	help_join(&ledger, "train", &quota, &member);
	ledger_reap(&ledger);
	ck_assert_uint_eq(help_total(&member), 0);
}
END_TEST

static struct ledger shared;
static struct member one;
static _Atomic unsigned stop;

static void *charges(void *arg)
{
	unsigned i, kind = (unsigned)(uintptr_t)arg % CHARGE_KINDS;

	for (i = 0; i < 20000; i++) {
		if (ledger_charge(&one, kind, i % 1000, NULL) == 0)
			ledger_refund(&one, kind, i % 1000);
		ledger_room(&one);
	}
	return NULL;
}

static void *joins(void *arg)
{
	struct member self;
	unsigned i;

	for (i = 0; i < 500; i++) {
		help_join(&shared, arg, NULL, &self);
		ledger_charge(&self, CHARGE_LINEAR, MIB, NULL);
		ledger_refund(&self, CHARGE_LINEAR, MIB);
		ledger_leave(&self);
	}
	return NULL;
}

/* Ends with its seat taken: the kernel is to free it. */
static void *dies(void *arg)
{
	struct member self;

	help_join(&shared, arg, NULL, &self);
	ledger_charge(&self, CHARGE_LINEAR, MIB, NULL);
	return NULL;
}

static void *watches(void *arg)
{
	static struct ledger_view view;
	struct quota quota = {.mem_bytes = GIB};

	(void)arg;
	while (!atomic_load(&stop)) {
		ledger_view(&shared, &view);
		ck_assert_uint_le(view.slot_count, 64);
		ledger_reap(&shared);
		limits_write(help_dir, "train", &quota, NULL);
		member_refresh(&one);
	}
	return NULL;
}

START_TEST(threads_of_one_process_share_a_member_and_hold_their_own)
{
	pthread_t threads[16], watcher;
	unsigned i;

	help_open(&shared);
	help_join(&shared, "train", NULL, &one);
	ck_assert_int_eq(pthread_create(&watcher, NULL, watches, NULL), 0);
	for (i = 0; i < 16; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL,
						i < 8	 ? charges
						: i < 12 ? joins
							 : dies,
						i < 8	     ? (void *)(uintptr_t)i
						: i % 3 == 0 ? "train"
						: i % 3 == 1 ? "other"
							     : ""),
				 0);
	for (i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&stop, 1);
	pthread_join(watcher, NULL);
	ledger_reap(&shared);
	ck_assert_uint_eq(ledger_process_used(&one), 0);
	ck_assert_uint_eq(help_total(&one), 0);
	ledger_leave(&one);
	ledger_close(&shared);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("race");

	tcase_add_checked_fixture(tcase, help_setup, help_teardown);
	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, two_processes_of_six_requests_each_get_exactly_five_in_every_round);
	tcase_add_test(tcase, eight_processes_that_charge_and_refund_end_at_zero);
	tcase_add_test(tcase, threads_of_one_process_share_a_member_and_hold_their_own);
	return help_run("ledger: races", tcase);
}
