/*
 * This process as a tenant: reads the configuration once, keeps the state that a fork must forget.
 *
 * Everything here lives in one mapping that the kernel zeroes in a forked child (MADV_WIPEONFORK), whichever way
 * the child was made: it starts at UNKNOWN, with no seat, no thread and no lock held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/policy.h"
#include "hooks/process.h"
#include "hooks/tenant.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

struct process *_Atomic tenant_process;

/* The mapping is made once and inherited, wiped, by every child; a lost race unmaps its own. */
static struct process *process_map(void)
{
	struct process *none = NULL, *made;

	made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (made == MAP_FAILED)
		return NULL;
	/* Before Linux 4.14 there is no wiping: then process.pid is compared at every start. */
	if (madvise(made, sizeof(*made), MADV_WIPEONFORK) != 0)
		made->pid = getpid();
	if (!atomic_compare_exchange_strong(&tenant_process, &none, made)) {
		munmap(made, sizeof(*made));
		return none;
	}
	return made;
}

static const char *environment(const char *name)
{
	return getenv(name);
}

static enum tenant_state refuse(const char *why)
{
	log_must("%s", why);
	return TENANT_REFUSED;
}

/* The MPS daemon's processes work for its clients, who are under quota themselves. */
static int is_mps_daemon(void)
{
	char name[17] = "";

	prctl(PR_GET_NAME, name);
	return strncmp(name, "nvidia-cuda-mps", 15) == 0;
}

/* A policy that cannot be trusted is never "no policy". */
static enum tenant_state read_all(struct process *process)
{
	struct config *config = &process->config;
	struct error err = {""};
	int rc;

	if (is_mps_daemon())
		return TENANT_OFF;
	rc = config_read(config, environment, &err);

	log_setup((enum log_level)config->log_level, config->log_file);
	if (rc != 0)
		return refuse(err.text);
	rc = policy_read(config->policy_path, &process->policy, &err);
	if (rc != 0)
		return refuse(err.text);
	if (policy_warning(process->policy)[0])
		log_line(LOG_WARN, "%s", policy_warning(process->policy));
	if (!config->any_set && !policy_any(process->policy))
		return TENANT_OFF;
	return TENANT_ON;
}

enum tenant_state tenant_start(void)
{
	struct process *process = atomic_load(&tenant_process);
	uint32_t unlocked = 0;
	int saved = errno;
	enum tenant_state state;

	if (!process)
		process = process_map();
	if (!process)
		return refuse("no memory for the quota's own state");
	while (!atomic_compare_exchange_strong(&process->start_lock, &unlocked, 1)) {
		unlocked = 0;
		cpu_relax();
	}
	state = (enum tenant_state)atomic_load(&process->state);
	if (state == TENANT_UNKNOWN) {
		state = read_all(process);
		atomic_store(&process->state, state);
	}
	atomic_store(&process->start_lock, 0);
	errno = saved;
	return state;
}

const struct config *tenant_config(void)
{
	tenant_state();
	return &atomic_load(&tenant_process)->config;
}

int tenant_is_on(void)
{
	return tenant_state() == TENANT_ON;
}

const char *tenant_dir(void)
{
	struct process *process = atomic_load(&tenant_process);

	return process ? process->dir : "";
}
