/*
 * The kill storm and the stop storm. 64 processes join, charge, refund, fork and leave; 2,000 are killed, half of
 * them by a SIGKILL at a random instant, half at a random point inside the ledger's own steps. A bystander
 * charges all the while and measures how long that takes.
 *
 * CUOTA_TEST_KILLS (2000) makes it longer.
 */
#include "ledger_points.h"

#include <sched.h>
#include <sys/resource.h>

#include "ledger_help.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif
#ifdef SANITIZED
#define KILLS 300 /* each start is slow */
#else
#define KILLS 2000
#endif

#define MIB	(1ull << 20)
#define WORKERS 64
#define CAP	(512 * MIB)

/* What the workers and the bystander tell the parent. */
struct storm {
	_Atomic unsigned end; /* workers: finish the operation in hand and wait */
	_Atomic unsigned resting;
	_Atomic unsigned over; /* times that a total was seen above the cap */
	_Atomic unsigned operations, refusals, joins;
	_Atomic uint64_t longest_ns; /* of the bystander's charges */
	_Atomic uint64_t longest_join_ns;
	_Atomic uint64_t held[LEDGER_SLOTS]; /* what the owner itself counted, at rest */
	_Atomic unsigned switches; /* bystander: times it gave the processor away in a charge */
};

static struct storm *storm;
static const char *const groups[] = {"a", "b", "c", ""};
static const struct quota cap = {.mem_bytes = CAP};

static void random_operation(struct member *member, unsigned *seed)
{
	uint64_t bytes = (uint64_t)(rand_r(seed) % (48 << 20));
	enum charge_kind kind = (unsigned)rand_r(seed) % CHARGE_KINDS;

	if (rand_r(seed) % 3) {
		if (ledger_charge(member, kind, bytes, NULL) == 0)
			atomic_fetch_add(&storm->operations, 1);
		else
			atomic_fetch_add(&storm->refusals, 1);
	} else {
		ledger_refund(member, kind,
			      bytes < member->kind_bytes[kind] ? bytes : member->kind_bytes[kind]);
	}
	if (help_total(member) > CAP)
		atomic_fetch_add(&storm->over, 1);
	if (rand_r(seed) % 64 == 0 && fork() == 0)
		_exit(ledger_charge(member, kind, MIB, NULL) != -ESRCH);
}

/* One member's life; comes back when it left of its own will. */
static void live(struct ledger *ledger, unsigned *seed)
{
	unsigned count = (unsigned)rand_r(seed) % 100;
	struct member member;
	uint64_t start_ns = clock_now_ns(), took_ns;

	if (ledger_join(ledger, groups[(unsigned)rand_r(seed) % 4], NULL, &cap, &member, NULL) != 0)
		return;
	took_ns = clock_now_ns() - start_ns;
	if (took_ns > atomic_load(&storm->longest_join_ns))
		atomic_store(&storm->longest_join_ns, took_ns);
	atomic_fetch_add(&storm->joins, 1);
	while (count-- && !atomic_load(&storm->end)) {
		random_operation(&member, seed);
		usleep((unsigned)rand_r(seed) % 2000);
	}
	if (atomic_load(&storm->end)) {
		points_left = 0;
		atomic_store(&storm->held[member.slot], ledger_process_used(&member));
		atomic_fetch_add(&storm->resting, 1);
		for (;;)
			pause();
	}
	ledger_leave(&member);
}

static void worker(unsigned seed, int suicidal)
{
	struct ledger ledger;

	signal(SIGCHLD, SIG_IGN);
	points_left = suicidal ? 1 + (unsigned)rand_r(&seed) % 400 : 0;
	help_open(&ledger);
	for (;;)
		live(&ledger, &seed);
}

/* Charges in every group all the time, with the processor to itself when it wants it. */
static void bystander(void)
{
	struct ledger ledger;
	struct member members[4];
	struct rusage before, after;
	uint64_t start_ns, took_ns;
	unsigned i, round;

	setpriority(PRIO_PROCESS, 0, -20);
	help_open(&ledger);
	for (i = 0; i < 4; i++)
		help_join(&ledger, groups[i], NULL, &members[i]);
	for (round = 0;; round++) {
		i = round % 4;
		getrusage(RUSAGE_SELF, &before);
		start_ns = clock_now_ns();
		if (ledger_charge(&members[i], CHARGE_LINEAR, MIB, NULL) == 0)
			ledger_refund(&members[i], CHARGE_LINEAR, MIB);
		took_ns = clock_now_ns() - start_ns;
		getrusage(RUSAGE_SELF, &after);
		if (took_ns > atomic_load(&storm->longest_ns))
			atomic_store(&storm->longest_ns, took_ns);
		atomic_fetch_add(&storm->switches, (unsigned)(after.ru_nvcsw - before.ru_nvcsw));
		usleep(200);
	}
}

static int all_are_pid_1; /* each worker in a PID namespace of its own, where every TID is 1 */

static pid_t start_worker(unsigned number)
{
	long pid = syscall(SYS_clone, SIGCHLD | (all_are_pid_1 ? CLONE_NEWPID : 0), 0, 0, 0, 0);

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		points_signal = all_are_pid_1 ? 0 : SIGKILL;
		worker(number * 7919 + 1, number % 2);
		_exit(0);
	}
	return (pid_t)pid;
}

static pid_t start_bystander(void)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		bystander();
		_exit(0);
	}
	return pid;
}

/* The index of the process that died, replaced; -1 when none has. */
static int replace_dead(pid_t *pids, unsigned *started)
{
	int status;
	pid_t pid = waitpid(-1, &status, WNOHANG);
	int i;

	if (pid <= 0)
		return -1;
	for (i = 0; i < WORKERS; i++)
		if (pids[i] == pid)
			break;
	ck_assert_int_lt(i, WORKERS); /* the bystander does not die */
	ck_assert((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
		  (all_are_pid_1 && WIFEXITED(status) && WEXITSTATUS(status) == 9));
	pids[i] = start_worker((*started)++);
	return i;
}

static void check_sums(const struct ledger *ledger)
{
	unsigned g;

	for (g = 0; g < LEDGER_GROUPS; g++)
		ck_assert_uint_eq(total_granules(atomic_load(&ledger->file->group[g].total)) *
					  GRANULE_BYTES,
				  help_sum(ledger, g));
}

/* Lets everybody come to rest, compares, kills them all, reaps: zero. */
static void end_of_storm(pid_t *pids, pid_t by, unsigned expected)
{
	struct ledger ledger;
	unsigned i, tries;

	atomic_store(&storm->end, 1);
	for (tries = 0; tries < 20000 && atomic_load(&storm->resting) < expected; tries++) {
		for (i = 0; i < WORKERS; i++)
			if (waitpid(pids[i], NULL, WNOHANG) == pids[i])
				expected--;
		usleep(1000);
	}
	ck_assert_uint_ge(atomic_load(&storm->resting), expected);
	kill(by, SIGKILL);
	waitpid(by, NULL, 0);
	help_open(&ledger);
	check_sums(&ledger);
	ledger_reap(&ledger);
	check_sums(&ledger);
	for (i = 0; i < LEDGER_SLOTS; i++)
		ck_assert_uint_eq(slot_granules(ledger.file, i),
				  granules_of(atomic_load(&storm->held[i])));
	for (i = 0; i < WORKERS; i++)
		kill(pids[i], SIGKILL);
	for (i = 0; i < WORKERS; i++)
		waitpid(pids[i], NULL, 0);
	check_sums(&ledger);
	ledger_reap(&ledger);
	for (i = 0; i < LEDGER_GROUPS; i++)
		ck_assert_uint_eq(total_granules(atomic_load(&ledger.file->group[i].total)), 0);
	for (i = 0; i < LEDGER_SLOTS; i++) {
		ck_assert(!slot_alive(&ledger, i));
		ck_assert(op_is_zero(atomic_load(&ledger.file->slot[i].op)));
	}
	printf("%u operations, %u refusals, %u joins, longest charge %.3f ms, join %.1f ms\n",
	       storm->operations, storm->refusals, storm->joins, (double)storm->longest_ns / 1e6,
	       (double)storm->longest_join_ns / 1e6);
	ck_assert_uint_eq(storm->over, 0);
#ifndef SANITIZED /* whose runtime gives the processor away itself */
	ck_assert_uint_eq(storm->switches, 0);
#endif
	ck_assert_uint_lt(storm->longest_ns, 50 * NS_PER_MS);
	ck_assert_uint_gt(storm->refusals, 0);
	ck_assert_uint_gt(storm->operations, 1000);
}

static void setup(void)
{
	help_setup();
	storm = mmap(NULL, sizeof(*storm), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	ck_assert_ptr_ne(storm, MAP_FAILED);
}

static void storm_of_kills(void)
{
	unsigned kills =
		getenv("CUOTA_TEST_KILLS") ? (unsigned)atoi(getenv("CUOTA_TEST_KILLS")) : KILLS;
	unsigned started = 0, dead = 0, i, seed = 1;
	pid_t pids[WORKERS], by;

	for (i = 0; i < WORKERS; i++)
		pids[i] = start_worker(started++);
	by = start_bystander();
	while (dead < kills) {
		while (replace_dead(pids, &started) >= 0)
			dead++;
		kill(pids[(unsigned)rand_r(&seed) % WORKERS], SIGKILL);
		usleep((unsigned)rand_r(&seed) % 10000);
	}
	end_of_storm(pids, by, WORKERS);
}

START_TEST(two_thousand_kills_lose_nothing_and_hold_nobody_up)
{
	storm_of_kills();
}
END_TEST

START_TEST(so_do_two_thousand_of_processes_that_are_all_pid_1)
{
	all_are_pid_1 = 1;
	if (geteuid() == 0)
		storm_of_kills();
	else
		printf("skipped: needs root for PID namespaces\n");
}
END_TEST

START_TEST(stops_and_continues_lose_nothing_and_hold_nobody_up)
{
	unsigned i, round, seed = 2;
	pid_t pids[WORKERS], by;
	char stopped[WORKERS] = {0};

	for (i = 0; i < WORKERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			worker(i * 7919 + 1, 0);
			_exit(0);
		}
	}
	by = start_bystander();
	for (round = 0; round < KILLS * 3 / 2; round++) {
		i = (unsigned)rand_r(&seed) % WORKERS;
		kill(pids[i], stopped[i] ? SIGCONT : SIGSTOP);
		stopped[i] = !stopped[i];
		usleep((unsigned)rand_r(&seed) % 2000);
	}
	for (i = 0; i < WORKERS; i++)
		kill(pids[i], SIGCONT);
	end_of_storm(pids, by, WORKERS);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("storm");

	tcase_add_checked_fixture(tcase, setup, help_teardown);
	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, two_thousand_kills_lose_nothing_and_hold_nobody_up);
	tcase_add_test(tcase, so_do_two_thousand_of_processes_that_are_all_pid_1);
	tcase_add_test(tcase, stops_and_continues_lose_nothing_and_hold_nobody_up);
	return help_run("ledger: storms", tcase);
}
