/*
 * What the ledger costs: charge and refund alone, with 16 processes at it, and joining when 300 start at
 * once. Prints one line per figure; exits 1 when a promise of docs/ledger.md is broken by more than
 * three times, which no busy machine explains.
 *
 *   bench_ledger [rounds]      rounds of charge + refund in the first measurement (1,000,000)
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/ledger.h"

#define UUID	 "GPU-00000000-0000-0000-0000-0000000000be"
#define HAMMERS	 16
#define SAMPLES	 20000
#define STARTERS 300

static char dir[64] = "/dev/shm/cuota-bench.XXXXXX";

struct gate {
	_Atomic unsigned ready, open;
	uint64_t ns[STARTERS > HAMMERS ? STARTERS : HAMMERS][SAMPLES];
};

static struct gate *gate;

static void must(int code, const char *what)
{
	if (code == 0)
		return;
	fprintf(stderr, "bench_ledger: %s: %s\n", what, error_text(code));
	_exit(2);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Prints, and tells whether it is far off. */
static int report(const char *name, double value, const char *unit, double promised)
{
	printf("%-44s %10.1f %s (promised %.0f)\n", name, value, unit, promised);
	return value > 3 * promised;
}

static void join(struct ledger *ledger, const char *group, struct member *ret)
{
	struct quota asked = {.mem_bytes = 1ull << 40};

	must(ledger_open(dir, UUID, ledger, NULL), "open");
	must(ledger_join(ledger, group, NULL, &asked, ret, NULL), "join");
}

static int alone(unsigned rounds)
{
	struct ledger ledger;
	struct member member;
	uint64_t best = UINT64_MAX, start;
	unsigned i, batch;

	join(&ledger, "bench", &member);
	for (batch = 0; batch < 5; batch++) {
		start = clock_now_ns();
		for (i = 0; i < rounds / 5; i++) {
			must(ledger_charge(&member, CHARGE_LINEAR, 2 << 20, NULL), "charge");
			ledger_refund(&member, CHARGE_LINEAR, 2 << 20);
		}
		start = clock_now_ns() - start;
		best = start < best ? start : best;
	}
	ledger_leave(&member);
	ledger_close(&ledger);
	return report("charge + refund, alone", (double)best / (rounds / 5), "ns", 150);
}

static void wait_at_gate(void)
{
	atomic_fetch_add(&gate->ready, 1);
	while (!atomic_load(&gate->open))
		sched_yield();
}

static void hammer(unsigned self)
{
	struct ledger ledger;
	struct member member;
	uint64_t start;
	unsigned i;

	join(&ledger, "bench", &member);
	wait_at_gate();
	for (i = 0; i < SAMPLES; i++) {
		start = clock_now_ns();
		must(ledger_charge(&member, CHARGE_LINEAR, 2 << 20, NULL), "charge");
		ledger_refund(&member, CHARGE_LINEAR, 2 << 20);
		gate->ns[self][i] = clock_now_ns() - start;
	}
	ledger_leave(&member);
	_exit(0);
}

static void starter(unsigned self, const char *group)
{
	struct ledger ledger;
	struct member member;
	char own[16];
	uint64_t start;

	if (group[0] == '#') { /* as many groups as there may be */
		snprintf(own, sizeof(own), "job-%u", self % LEDGER_NAMED);
		group = own;
	}
	wait_at_gate();
	start = clock_now_ns();
	join(&ledger, group, &member);
	gate->ns[0][self] = clock_now_ns() - start;
	pause(); /* all are members at once; the parent kills us */
}

static void release(unsigned count)
{
	while (atomic_load(&gate->ready) < count)
		usleep(1000);
	atomic_store(&gate->open, 1);
}

static void together(unsigned count, void (*body)(unsigned, const char *), const char *group,
		     pid_t *ret_pids)
{
	unsigned i;

	memset(gate->ns, 0, sizeof(gate->ns[0]));
	atomic_store(&gate->ready, 0);
	atomic_store(&gate->open, 0);
	for (i = 0; i < count; i++) {
		ret_pids[i] = fork();
		if (ret_pids[i] == 0) {
			body(i, group);
			_exit(0);
		}
		must(ret_pids[i] < 0 ? -errno : 0, "fork");
	}
	release(count);
}

static void hammer_body(unsigned self, const char *group)
{
	(void)group;
	hammer(self);
}

static int contended(void)
{
	pid_t pids[HAMMERS];
	unsigned i;
	int status;

	together(HAMMERS, hammer_body, "", pids);
	for (i = 0; i < HAMMERS; i++)
		must(waitpid(pids[i], &status, 0) == pids[i] && status == 0 ? 0 : -ECHILD, "child");
	qsort(gate->ns, (size_t)HAMMERS * SAMPLES, sizeof(uint64_t), by_size);
	return report("charge + refund, 16 processes, p99",
		      (double)((uint64_t *)gate->ns)[(size_t)HAMMERS * SAMPLES * 99 / 100], "ns",
		      2000);
}

static int attach(const char *group, const char *name)
{
	pid_t pids[STARTERS];
	unsigned i, done;
	int status;

	together(STARTERS, starter, group, pids);
	do {
		usleep(1000);
		for (i = done = 0; i < STARTERS; i++)
			done += ((volatile uint64_t *)gate->ns[0])[i] != 0;
	} while (done < STARTERS);
	for (i = 0; i < STARTERS; i++)
		kill(pids[i], SIGKILL);
	for (i = 0; i < STARTERS; i++)
		waitpid(pids[i], &status, 0);
	qsort(gate->ns[0], STARTERS, sizeof(uint64_t), by_size);
	printf("%-44s %10.1f us\n", "  median", (double)gate->ns[0][STARTERS / 2] / 1e3);
	return report(name, (double)gate->ns[0][STARTERS * 99 / 100] / 1e3, "us", 5000);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 1000000;
	char command[96];
	int far_off;

	if (!mkdtemp(dir))
		must(-errno, dir);
	gate = mmap(NULL, sizeof(*gate), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (gate == MAP_FAILED)
		must(-errno, "mmap");
	printf("ledger on %ld processors\n", sysconf(_SC_NPROCESSORS_ONLN));
	far_off = alone(rounds < 5 ? 5 : rounds);
	far_off |= contended();
	far_off |= attach("", "open and join, 300 at once, alone, p99");
	far_off |= attach("bench", "open and join, 300 at once, one group, p99");
	far_off |= attach("#", "open and join, 300 at once, 256 groups, p99");
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if (system(command) != 0)
		return 2;
	return far_off;
}
