/*
 * Start of the driver in a process. A forked child finds it unusable, like the real one: the flag
 * that says "ready" lives in a page that the kernel wipes at fork, which also covers children made
 * without the C library's knowledge.
 */
#include "sim.h"
#include "entries.h"

#include <sys/mman.h>

struct sim sim;
pthread_mutex_t core_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t driver_lock = PTHREAD_RWLOCK_INITIALIZER;

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int *ready; /* in the page that fork wipes */
static bool was_ready;

bool sim_ready(void)
{
	return ready && *ready;
}

int sim_driver_version(void)
{
	if (!sim.driver_version)
		sim.driver_version = config_driver_version();
	return sim.driver_version;
}

static void in_child(void)
{
	if (was_ready)
		state_forget();
	pthread_mutex_init(&init_lock, NULL);
}

static CUresult start(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK) != 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	int slot = state_register();
	if (slot < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	sim.slot = (uint32_t)slot;
	CUresult result = device_setup();
	if (result != CUDA_SUCCESS)
		return result;
	pthread_atfork(NULL, NULL, in_child);
	ready = page;
	was_ready = true;
	*ready = 1;
	return CUDA_SUCCESS;
}

CUresult sim_init(void)
{
	if (sim_ready())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&init_lock);
	CUresult result = CUDA_SUCCESS;
	if (was_ready && !sim_ready())
		result = CUDA_ERROR_NOT_INITIALIZED;
	else if (!was_ready)
		result = start();
	pthread_mutex_unlock(&init_lock);
	return result;
}

CUresult sim_cuInit(unsigned int flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : sim_init();
}

CUresult sim_cuDriverGetVersion(int *ret_version)
{
	if (!ret_version)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_version = sim_driver_version();
	return CUDA_SUCCESS;
}
