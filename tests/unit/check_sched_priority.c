/*
 * The scheduler in the virtual-time model: a service of high priority beside a job, against the service alone and against
 * the driver's slicing. The service is PyTorch inference as measured on the card: 70 launches in 1.9 ms, every 5 ms.
 */
#include "sched_help.h"

static int longer(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The p99 of what its bursts took, in milliseconds. */
static double p99_ms(struct process_model *p)
{
	unsigned n = p->bursts < WORLD_BURSTS ? p->bursts : WORLD_BURSTS;

	ck_assert_uint_gt(n, 100);
	qsort(p->burst_ns, n, sizeof(p->burst_ns[0]), longer);
	return (double)p->burst_ns[n * 99 / 100] / 1e6;
}

static const struct program jobs[] = {
	{"training large", 32000, 54000, 100000, 300, 0},
	{"training xl", 100000, 30000, 100000, 300, 0},
	{"dense training", 100000, 5000, 100000, 300, 0},
	{"66 us, queue", 66000, 4000, 0, 0, 256},
};
static const uint64_t service_kernel_ns[] = {5000, 15000};
static const unsigned jitters[] = {0, 40};

static struct process_model *add_service(uint64_t kernel_ns, unsigned jitter,
					 enum quota_priority priority, enum sched_mode mode)
{
	const struct program requests = {"service", kernel_ns, 27000, 3100000, 70, 0};
	struct process_model *p = world_add(&w, "service", 0, 100, priority, mode);

	become(p, &requests);
	p->jitter = jitter;
	return p;
}

struct measured {
	double p99_ms, job;
};

/* Five seconds after the first two; without a job or without a service when NULL or 0. */
static struct measured measure(const struct program *job, uint64_t kernel_ns, unsigned jitter,
			       enum quota_priority low, enum quota_priority high,
			       enum sched_mode mode)
{
	struct measured got = {0};
	struct process_model *jobs_process = NULL, *service = NULL;

	world_begin(&w);
	if (job) {
		jobs_process = world_add(&w, "job", 0, 100, low, mode);
		become(jobs_process, job);
	}
	if (kernel_ns)
		service = add_service(kernel_ns, jitter, high, mode);
	world_run(&w, 2 * SECOND);
	world_reset(&w);
	world_run(&w, 5 * SECOND);
	if (service)
		got.p99_ms = p99_ms(service);
	if (jobs_process)
		got.job = (double)jobs_process->launches;
	world_end(&w);
	return got;
}

START_TEST(a_service_of_high_priority_hardly_notices_the_job)
{
	const struct program *job = &jobs[_i % COUNT(jobs)];
	uint64_t kernel_ns = service_kernel_ns[_i / COUNT(jobs) % 2];
	unsigned jitter = jitters[_i / COUNT(jobs) / 2 % 2];
	enum quota_priority low = _i / COUNT(jobs) / 4 ? PRIORITY_LOW : PRIORITY_NORMAL;
	double alone = measure(NULL, kernel_ns, jitter, low, PRIORITY_HIGH, SCHED_AUTO).p99_ms;
	struct measured sliced =
		measure(job, kernel_ns, jitter, PRIORITY_NORMAL, PRIORITY_NORMAL, SCHED_RATE);
	struct measured got = measure(job, kernel_ns, jitter, low, PRIORITY_HIGH, SCHED_AUTO);

	ck_assert_msg(got.p99_ms <= 1.25 * alone, "%s: p99 %.2f ms, alone %.2f, driver %.2f",
		      job->name, got.p99_ms, alone, sliced.p99_ms);
	ck_assert_msg(got.job >= 0.9 * sliced.job, "%s: %.2f of what the driver gives", job->name,
		      got.job / sliced.job);
}
END_TEST

/* A kernel that runs is not interrupted: long ones of the job are waited for. */
START_TEST(beside_long_kernels_it_waits_for_one)
{
	static const struct program queue = {"0.57 ms, queue", 570000, 4000, 0, 0, 64};
	double alone = measure(NULL, 5000, 0, PRIORITY_NORMAL, PRIORITY_HIGH, SCHED_AUTO).p99_ms;
	struct measured got = measure(&queue, 5000, 0, PRIORITY_NORMAL, PRIORITY_HIGH, SCHED_AUTO);

	ck_assert_msg(got.p99_ms <= alone + 0.57 + 0.5, "p99 %.2f ms, alone %.2f", got.p99_ms,
		      alone);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched_priority");
	TCase *tcase = tcase_create("priority");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, a_service_of_high_priority_hardly_notices_the_job, 0,
			    8 * COUNT(jobs));
	tcase_add_test(tcase, beside_long_kernels_it_waits_for_one);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
