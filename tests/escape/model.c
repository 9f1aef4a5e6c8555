/*
 * `escape model SEED STEPS [THREADS [DEVICES]]`: random operations over all families, and an oracle of what
 * they hold, made from what the driver itself answers (addresses, pool and graph figures, requirements). What
 * the program is told it uses must equal the oracle: after every step with one thread, else whenever all threads
 * stand still; and nothing at the end.
 */
#include "model.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct model_oracle oracle[MODEL_DEVICES];
CUcontext model_context[MODEL_DEVICES];
static int devices = 1;
static unsigned thread_count = 1;
static uint64_t steps, seed;
static uint64_t base_bytes[MODEL_DEVICES];
static pthread_barrier_t barrier;
static _Atomic int failed;

uint64_t model_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* ---- the oracle's pages --------------------------------------------------------------------------- */

enum { PAGE_SHIFT = 21, PAGE_PLACES = 1 << 17 };

static struct {
	uint64_t page;
	uint32_t count;
} pages[PAGE_PLACES];
static pthread_mutex_t pages_lock = PTHREAD_MUTEX_INITIALIZER;

/* Counts who stands on each page; by a different road than cuota's. */
void model_stand(int device, uint64_t address, uint64_t bytes, int sign)
{
	pthread_mutex_lock(&pages_lock);
	for (uint64_t page = address >> PAGE_SHIFT; page <= (address + bytes - 1) >> PAGE_SHIFT;
	     page++) {
		size_t i = (size_t)(page * 0x9e3779b97f4a7c15ull >> 47) % PAGE_PLACES;

		while (pages[i].page && pages[i].page != page)
			i = (i + 1) % PAGE_PLACES;
		pages[i].page = page;
		if (sign > 0 && !pages[i].count++)
			oracle[device].fixed += 1ull << PAGE_SHIFT;
		if (sign < 0 && !--pages[i].count)
			oracle[device].fixed -= 1ull << PAGE_SHIFT;
	}
	pthread_mutex_unlock(&pages_lock);
}

static uint64_t expected(int device)
{
	cuuint64_t reserved = 0;
	CUmemoryPool pool;
	uint64_t sum = oracle[device].fixed;

	cu.cuDeviceGetDefaultMemPool(&pool, device);
	cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
	sum += reserved;
	cu.cuMemPoolGetAttribute(oracle[device].pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
				 &reserved);
	sum += reserved;
	cu.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved);
	return sum + reserved;
}

static uint64_t told(int device)
{
	size_t free_bytes = 0, total = 0;

	cu.cuCtxSetCurrent(model_context[device]);
	cu.cuMemGetInfo_v2(&free_bytes, &total);
	return total - free_bytes - base_bytes[device];
}

static int compare(const char *when, uint64_t step)
{
	for (int device = 0; device < devices; device++) {
		uint64_t is = told(device), should = expected(device);

		if (is == should)
			continue;
		printf("device %d, %s %llu: told %llu, holds %llu\n", device, when,
		       (unsigned long long)step, (unsigned long long)is,
		       (unsigned long long)should);
		return 1;
	}
	return 0;
}

/* ---- the threads ---------------------------------------------------------------------------------- */

enum { ITEMS = 48, STAND_STILL = 2000 };

static void *run(void *arg)
{
	struct model_item items[ITEMS];
	uint64_t state = seed + (uint64_t)(uintptr_t)arg * 1000003;
	uint64_t mine = steps / thread_count;

	memset(items, 0, sizeof(items));
	for (uint64_t step = 0; step < mine; step++) {
		struct model_item *item = &items[model_random(&state) % ITEMS];
		int device = (int)(model_random(&state) % (unsigned)devices);

		/* A free may come from any context; what is made is made in its device's. */
		cu.cuCtxSetCurrent(model_context[device]);
		if (item->kind)
			failed |= model_give(item, &state);
		else
			failed |= model_take(item, device, &state);
		if (thread_count == 1 && compare("step", step)) {
			failed = 1;
			printf("after kind %d, %llu bytes at %llx\n", item->kind,
			       (unsigned long long)item->bytes, (unsigned long long)item->address);
		}
		if (thread_count > 1 && step % STAND_STILL == STAND_STILL - 1) {
			pthread_barrier_wait(&barrier);
			if ((uintptr_t)arg == 0)
				failed |= compare("step", step);
			pthread_barrier_wait(&barrier);
		}
		if (failed && thread_count == 1)
			break;
	}
	for (unsigned i = 0; i < ITEMS; i++)
		if (items[i].kind)
			model_give(&items[i], &state);
	return NULL;
}

static int prepare(void)
{
	CUmemPoolProps props;
	CUresult result = cu.cuInit(0);

	for (int device = 0; !result && device < devices; device++) {
		result = cu.cuDevicePrimaryCtxRetain(&model_context[device], device);
		memset(&props, 0, sizeof(props));
		props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
		props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		props.location.id = device;
		if (!result)
			result = cu.cuMemPoolCreate(&oracle[device].pool, &props);
		if (!result)
			base_bytes[device] = told(device);
	}
	return result != CUDA_SUCCESS;
}

static int finish(void)
{
	CUmemoryPool pool;

	for (int device = 0; device < devices; device++) {
		cu.cuCtxSetCurrent(model_context[device]);
		cu.cuCtxSynchronize();
		cu.cuDeviceGraphMemTrim(device);
		cu.cuDeviceGetDefaultMemPool(&pool, device);
		cu.cuMemPoolTrimTo(pool, 0);
		cu.cuMemPoolTrimTo(oracle[device].pool, 0);
		if (oracle[device].fixed || told(device)) {
			printf("device %d: %llu bytes at the end, the oracle has %llu\n", device,
			       (unsigned long long)told(device),
			       (unsigned long long)oracle[device].fixed);
			return 1;
		}
	}
	return 0;
}

int model_run(int argc, char **argv)
{
	pthread_t threads[16];

	seed = strtoull(argv[2], NULL, 0);
	steps = strtoull(argv[3], NULL, 0);
	thread_count = argc > 4 ? (unsigned)atoi(argv[4]) : 1;
	devices = argc > 5 ? atoi(argv[5]) : 1;
	if (thread_count < 1 || thread_count > 16 || devices > MODEL_DEVICES || driver_load() ||
	    prepare())
		return 2;
	pthread_barrier_init(&barrier, NULL, thread_count);
	for (unsigned i = 0; i < thread_count; i++)
		pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	failed |= finish();
	printf("%llu steps, %llu granted, %llu refused: %s\n", (unsigned long long)steps,
	       (unsigned long long)model_granted, (unsigned long long)model_refused,
	       failed ? "differs" : "equal");
	return failed != 0;
}
