/*
 * The service thread: one per process, started with the first seat, asleep in a futex unless there is work.
 *
 * It never calls CUDA: a program thread may hold a driver lock while its stream waits at a gate that only this
 * thread can open. NVML is another library and is called only for the books, about once a second. All signals
 * are blocked in it; the kernel frees the process's seats when it ends.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/log.h"
#include "driver/loader.h"
#include "hooks/hooks.h"
#include "hooks/launch.h"
#include "hooks/process.h"
#include "ledger/journal.h"
#include "hooks/books.h"

#define HOUSEKEEPING_NS (100 * NS_PER_MS) /* limits, pending charges, journal */
#define TIMER_SLACK_NS	1000ul		  /* ends of turns are looked for every 25 us */
#define BOOKS_NS	NS_PER_S	  /* ledger against the driver's figure */

/* pthread_create lives in libc or libpthread, depending on the C library: found at run time, since libcuda
 * itself needs it and has loaded it, so that our own file asks for no new symbol. */
typedef int thread_create(unsigned long *thread, const void *attr, void *(*body)(void *),
			  void *arg);
typedef int thread_detach(unsigned long thread);

static void join_if_asked(struct process *process)
{
	struct service *service = &process->service;
	struct device_tenant *device = atomic_exchange(&service->to_join, NULL);
	struct error err = {""};

	if (!device)
		return;
	service->join_result = ledger_join(&device->ledger, process->config.group, &device->ceiling,
					   &device->asked, &device->member, &err);
	memcpy(service->join_error, err.text, sizeof(err.text));
	atomic_fetch_add(&service->answer, 1);
	futex_wake(&service->answer, 1);
}

static int seated(const struct device_tenant *device)
{
	uint32_t attached = atomic_load_explicit(&device->attached, memory_order_acquire);

	return attached == 1 || attached == 2;
}

/* The seat may have been lost (a removed or damaged file) and taken anew: the scheduler follows. */
static void tend(struct device_tenant *device)
{
	struct error err = {""};

	if (member_tend(&device->member, &err) != 0)
		log_line(LOG_WARN, "%s: the seat in the ledger is lost: %s", device->uuid,
			 err.text);
	sched_rebind(device->sched);
}

/* Looks at every seat; returns when to look again. */
static uint64_t round_of_seats(struct process *process, uint64_t now, int housekeeping, int books)
{
	uint64_t next = now + HOUSEKEEPING_NS;

	for (int i = 0; i < TENANT_DEVICES; i++) {
		struct device_tenant *device = &process->devices[i];
		unsigned wake = 0;
		uint64_t at;

		if (!seated(device))
			continue;
		at = sched_tick(device->sched, now, &wake);
		tenant_wake(device, wake);
		if (at && at < next)
			next = at;
		gate_watch(&((struct launcher *)device->sched)->gate, now);
		if (housekeeping) {
			member_refresh(&device->member);
			journal_tick(&device->ledger, &device->member, now);
		}
		if (books) {
			tend(device);
			books_keep(device);
		}
	}
	return next;
}

/* Gated work is woken for by the ledger's futex of the seat; all else by the bell. */
static _Atomic uint32_t *where_to_sleep(struct process *process)
{
	for (int i = 0; i < TENANT_DEVICES; i++) {
		struct device_tenant *device = &process->devices[i];

		if (seated(device) && device->sched->closed_launches)
			return &device->sched->slot_sm->turn_futex;
	}
	return &process->service.bell;
}

static void *service_body(void *arg)
{
	struct process *process = arg;
	struct service *service = &process->service;
	uint64_t kept_house = 0, kept_books = clock_now_ns();

	prctl(PR_SET_NAME, "cuota");
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS); /* of this thread only */
	for (;;) {
		_Atomic uint32_t *sleep_at = where_to_sleep(process);
		uint32_t bell = atomic_load(&service->bell), seen = atomic_load(sleep_at);
		uint64_t now = clock_now_ns(), next;
		int house = now - kept_house >= HOUSEKEEPING_NS;
		int books = now - kept_books >= BOOKS_NS;

		atomic_store(&service->running, 2);
		join_if_asked(process);
		if (house)
			kept_house = now;
		if (books)
			kept_books = now;
		next = round_of_seats(process, now, house, books);
		now = clock_now_ns();
		if (next > now && bell == atomic_load(&service->bell))
			futex_wait(sleep_at, seen, next - now);
	}
	return NULL;
}

static int start_thread(struct process *process)
{
	thread_create *create = (thread_create *)loader_next("pthread_create");
	thread_detach *detach = (thread_detach *)loader_next("pthread_detach");
	unsigned long thread, all = ~0ul, old = 0;
	int rc;

	if (!create || !detach)
		return -ENOSYS;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
	rc = create(&thread, NULL, service_body, process);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
	if (rc != 0)
		return -rc;
	detach(thread);
	return 0;
}

int service_join(struct process *process, struct device_tenant *device, char ret_error[256])
{
	struct service *service = &process->service;
	uint32_t answer = atomic_load(&service->answer);

	atomic_store(&service->to_join, device);
	if (atomic_load(&service->running) == 0) {
		int rc;

		atomic_store(&service->running, 1);
		rc = start_thread(process);
		if (rc != 0) {
			snprintf(ret_error, 256, "no service thread: %s", strerror(-rc));
			atomic_store(&service->running, 0);
			return rc;
		}
	} else {
		service_kick();
	}
	while (atomic_load(&service->answer) == answer)
		futex_wait(&service->answer, answer, NS_PER_S);
	memcpy(ret_error, service->join_error, 256);
	return service->join_result;
}

void service_kick(void)
{
	struct process *process = atomic_load(&tenant_process);
	_Atomic uint32_t *asleep;

	if (!process)
		return;
	asleep = where_to_sleep(process);
	atomic_fetch_add(&process->service.bell, 1);
	futex_wake(&process->service.bell, 1);
	if (asleep != &process->service.bell) {
		atomic_fetch_add(asleep, 1);
		futex_wake(asleep, INT32_MAX);
	}
}
