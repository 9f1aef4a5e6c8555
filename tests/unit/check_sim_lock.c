/*
 * The lock of the simulated driver's shared state (tests/sim/shared_lock.c): holders that die or
 * are stopped do not keep the others.
 */
#include <check.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../sim/shared_lock.c"

struct sim_state *sim_shared;

static void set_up(void)
{
	sim_shared = mmap(NULL, sizeof(*sim_shared), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ck_assert_ptr_ne(sim_shared, MAP_FAILED);
	lock_init(sim_shared);
	lock_start();
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A child that takes the lock and then does what `signal_number` does to it. */
static pid_t holder(int signal_number)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		state_lock();
		sim_shared->births++;
		raise(signal_number);
		sim_shared->births++;
		state_unlock();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
	return child;
}

START_TEST(a_dead_holder_is_replaced_at_once_and_its_numbers_are_mended)
{
	sim_shared->context_top = 1;
	sim_shared->context[0].process = 1;
	sim_shared->context[0].tail = 3;
	sim_shared->cursor[0].next = 9;
	holder(SIGKILL);
	double begin = seconds();
	state_lock();
	ck_assert(seconds() - begin < 0.04);
	ck_assert_uint_eq(sim_shared->cursor[0].next, 3);
	state_unlock();
}
END_TEST

/* As the thread that holds cuota's seat, which has a robust list of its own. Row 1: it dies before it has written who it is. */
START_TEST(a_holder_whose_death_the_kernel_does_not_tell_is_replaced)
{
	static struct robust_list_head own = {.list = {&own.list}};
	double begin;
	pid_t child = fork();

	if (child == 0) {
		syscall(SYS_set_robust_list, &own, sizeof(own));
		if (_i == 0)
			state_lock();
		else
			pthread_mutex_lock(&sim_shared->lock);
		raise(SIGKILL);
	}
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	begin = seconds();
	state_lock();
	ck_assert(seconds() - begin < (_i ? 10 : 1));
	state_unlock();
	begin = seconds();
	for (int i = 0; i < 1000; i++) {
		state_lock();
		state_unlock();
	}
	ck_assert(seconds() - begin < 1);
}
END_TEST

START_TEST(a_stopped_holder_does_not_keep_the_others)
{
	pid_t child = holder(SIGSTOP);
	double begin = seconds();

	for (int i = 0; i < 1000; i++) {
		state_lock();
		state_unlock();
	}
	ck_assert(seconds() - begin < 1);
	kill(child, SIGCONT);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	ck_assert_uint_eq(sim_shared->births, 2);
	state_lock();
	state_unlock();
	ck_assert_int_eq(sim_shared->stopped_owner, 0);
}
END_TEST

START_TEST(a_holder_that_is_killed_while_stopped_is_forgotten)
{
	pid_t child = holder(SIGSTOP);

	state_lock();
	state_unlock();
	ck_assert_int_ne(sim_shared->stopped_owner, 0);
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	state_lock();
	state_unlock();
	ck_assert_int_eq(sim_shared->stopped_owner, 0);
}
END_TEST

START_TEST(one_at_a_time_holds_it)
{
	enum { CHILDREN = 8, ROUNDS = 20000 };

	for (int i = 0; i < CHILDREN; i++) {
		if (fork() != 0)
			continue;
		for (int j = 0; j < ROUNDS; j++) {
			state_lock();
			sim_shared->births++;
			state_unlock();
		}
		_exit(0);
	}
	for (int i = 0; i < CHILDREN; i++)
		wait(NULL);
	ck_assert_uint_eq(sim_shared->births, CHILDREN * ROUNDS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim_lock");
	TCase *tcase = tcase_create("lock");

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, set_up, NULL);
	tcase_add_test(tcase, a_dead_holder_is_replaced_at_once_and_its_numbers_are_mended);
	tcase_add_loop_test(tcase, a_holder_whose_death_the_kernel_does_not_tell_is_replaced, 0, 2);
	tcase_add_test(tcase, a_stopped_holder_does_not_keep_the_others);
	tcase_add_test(tcase, a_holder_that_is_killed_while_stopped_is_forgotten);
	tcase_add_test(tcase, one_at_a_time_holds_it);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
