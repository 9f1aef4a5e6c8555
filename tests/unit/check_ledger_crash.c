/*
 * Death at every point: a child lives through a scenario and is killed at its n-th test point, for each n until it
 * survives. After each death the total is the sum of what the slots count for, and reaping brings it to zero;
 * so it does when the reaper is killed in its turn, at every point of its own.
 */
#include "ledger_points.h"

#include "ledger_help.h"

#define MIB (1ull << 20)

static struct ledger ledger;
static struct member survivor;

static void setup(void)
{
	help_setup();
	help_open(&ledger);
	help_join(&ledger, "other", NULL, &survivor);
	ck_assert_int_eq(ledger_charge(&survivor, CHARGE_LINEAR, MIB, NULL), 0);
}

static void check_sums(void)
{
	unsigned g;

	for (g = 0; g < LEDGER_GROUPS; g++)
		ck_assert_uint_eq(total_granules(atomic_load(&ledger.file->group[g].total)) *
					  GRANULE_BYTES,
				  help_sum(&ledger, g));
}

/* 1 if the child was killed at its n-th point. */
static int dies_at(unsigned n, void (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		points_left = n;
		body();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) || status == 0);
	return WIFSIGNALED(status);
}

static void use(const char *group)
{
	struct quota quota = {.mem_bytes = 8 * MIB};
	struct ledger own;
	struct member self;

	help_open(&own);
	help_join(&own, group, &quota, &self);
	ledger_charge(&self, CHARGE_LINEAR, 6 * MIB, NULL);
	ledger_charge(&self, CHARGE_LINEAR, 6 * MIB, NULL); /* refused: reaps */
	ledger_charge(&self, CHARGE_ARRAY, MIB, NULL);
	ledger_refund(&self, CHARGE_LINEAR, 6 * MIB);
	if (group[0] != 'l')
		ledger_leave(&self);
}

static void uses_a_group_of_its_own(void)
{
	use("");
}

static void makes_a_group(void)
{
	use("made");
}

static void enters_a_group(void)
{
	use("other");
}

static void leaves_something(void)
{
	use("left-behind");
}

static void reaps(void)
{
	ledger_reap(&ledger);
}

/* As the child sees it: the parent's mapping is not there. */
static void opens_and_reaps(void)
{
	struct ledger own;

	help_open(&own);
	ledger = own;
	reaps();
}

static void (*const scenarios[])(void) = {uses_a_group_of_its_own, makes_a_group, enters_a_group};

START_TEST(death_at_every_point_leaves_the_sum_right_and_nothing_behind)
{
	unsigned n;

	for (n = 1; dies_at(n, scenarios[_i]); n++) {
		check_sums();
		ck_assert_uint_eq(help_total(&survivor) >= MIB, 1);
		/* The survivor takes all there is under a cap: nothing of the dead is in its way. */
		ledger_reap(&ledger);
		check_sums();
		ck_assert_uint_eq(help_total(&survivor), MIB);
	}
	ck_assert_uint_gt(n, 10);
	printf("%u points\n", n - 1);
}
END_TEST

START_TEST(a_reaper_that_dies_at_every_point_is_finished_by_the_next)
{
	unsigned victim, n, died = 0;

	for (victim = 1; dies_at(victim, enters_a_group); victim++) {
		for (n = 1; n < 6; n++) {
			died += (unsigned)dies_at(n, opens_and_reaps);
			check_sums();
			dies_at(victim, enters_a_group);
		}
		ledger_reap(&ledger);
		check_sums();
		ck_assert_uint_eq(help_total(&survivor), MIB);
	}
	ck_assert_uint_gt(died, 20);
}
END_TEST

START_TEST(a_claimer_that_dies_at_every_point_of_retiring_loses_nothing)
{
	unsigned n;

	for (n = 1; n < 60; n++) {
		ck_assert(!dies_at(0, leaves_something)); /* dead, not reaped */
		dies_at(n, makes_a_group);
		check_sums();
	}
	ledger_reap(&ledger);
	check_sums();
	ck_assert_uint_eq(help_total(&survivor), MIB);
}
END_TEST

static void stops_in_the_lock(void)
{
	points_left = 1;
	points_only = 32;
	points_signal = SIGSTOP;
	use("made");
}

START_TEST(who_is_stopped_in_the_join_lock_delays_new_groups_for_a_second_and_nobody_else)
{
	struct member self;
	uint64_t start_ns;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		stops_in_the_lock();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status));
	start_ns = clock_now_ns();
	ck_assert_int_eq(ledger_join(&ledger, "other", NULL, NULL, &self, NULL), 0);
	ck_assert_int_eq(ledger_charge(&self, CHARGE_LINEAR, MIB, NULL), 0);
	ledger_leave(&self);
	ck_assert_int_eq(ledger_join(&ledger, "", NULL, NULL, &self, NULL), 0);
	ledger_leave(&self);
	ck_assert_uint_lt(clock_now_ns() - start_ns, 50 * NS_PER_MS);
	ck_assert_int_eq(ledger_join(&ledger, "new", NULL, NULL, &self, NULL), -ETIMEDOUT);
	ck_assert_uint_lt(clock_now_ns() - start_ns, 3 * NS_PER_S);
	kill(pid, SIGKILL); /* dead, the lock is free at once */
	waitpid(pid, NULL, 0);
	start_ns = clock_now_ns();
	ck_assert_int_eq(ledger_join(&ledger, "new", NULL, NULL, &self, NULL), 0);
	ck_assert_uint_lt(clock_now_ns() - start_ns, 50 * NS_PER_MS);
	ledger_leave(&self);
	check_sums();
}
END_TEST

START_TEST(waiters_for_the_join_lock_have_it_within_50_ms_of_its_holders_death)
{
	struct help_gate *gate = help_gate();
	struct member self;
	uint64_t start_ns;
	int status;
	pid_t pid = fork(), killer;

	if (pid == 0) {
		stops_in_the_lock();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	killer = fork();
	if (killer == 0) {
		help_gate_pass(gate, 1);
		usleep(100000); /* let the other wait */
		kill(pid, SIGKILL);
		_exit(0);
	}
	help_gate_open(gate, 1, 1);
	start_ns = clock_now_ns();
	ck_assert_int_eq(ledger_join(&ledger, "new", NULL, NULL, &self, NULL), 0);
	ck_assert_uint_lt(clock_now_ns() - start_ns, 150 * NS_PER_MS);
	waitpid(pid, NULL, 0);
	waitpid(killer, NULL, 0);
	ledger_leave(&self);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("crash");

	tcase_add_checked_fixture(tcase, setup, help_teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, death_at_every_point_leaves_the_sum_right_and_nothing_behind, 0,
			    3);
	tcase_add_test(tcase, a_reaper_that_dies_at_every_point_is_finished_by_the_next);
	tcase_add_test(tcase, a_claimer_that_dies_at_every_point_of_retiring_loses_nothing);
	tcase_add_test(
		tcase,
		who_is_stopped_in_the_join_lock_delays_new_groups_for_a_second_and_nobody_else);
	tcase_add_test(tcase, waiters_for_the_join_lock_have_it_within_50_ms_of_its_holders_death);
	return help_run("ledger: death at every point", tcase);
}
