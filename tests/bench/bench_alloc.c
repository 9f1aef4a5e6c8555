/*
 * What an interposer adds to taking and giving back memory: pairs of calls through the address that a
 * program gets and through the driver's own, in turn, in one process.
 *
 *   bench_alloc [--seconds 4]     in all; one JSON line per kind of call
 */
#include "driver.h"
#include "samples.h"

#define MIB (1ull << 20)

struct entry_points {
	__typeof__(&cuMemAlloc) alloc;
	__typeof__(&cuMemFree) free;
	__typeof__(&cuMemAllocAsync) alloc_async;
	__typeof__(&cuMemFreeAsync) free_async;
	__typeof__(&cuMemCreate) create;
	__typeof__(&cuMemRelease) release;
	__typeof__(&cuMemGetInfo) info;
};

static struct entry_points asked, raw;
static CUstream stream;
static __typeof__(&cuStreamSynchronize) synchronize;
static struct samples asked_ns, raw_ns, added_ns;

static CUresult linear(const struct entry_points *e, size_t bytes)
{
	CUdeviceptr at;
	CUresult rc = e->alloc(&at, bytes);

	return rc ? rc : e->free(at);
}

/* The pool keeps what it has: after the first round this is the stream-ordered fast path. */
static CUresult pooled(const struct entry_points *e, size_t bytes)
{
	CUdeviceptr at;
	CUresult rc = e->alloc_async(&at, bytes, stream);

	return rc ? rc : e->free_async(at, stream);
}

static CUresult virtual(const struct entry_points *e, size_t bytes)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
	};
	CUmemGenericAllocationHandle handle;
	CUresult rc = e->create(&handle, bytes, &prop, 0);

	return rc ? rc : e->release(handle);
}

static CUresult information(const struct entry_points *e, size_t bytes)
{
	size_t free_bytes, total_bytes;

	(void)bytes;
	return e->info(&free_bytes, &total_bytes);
}

/* Else the pool gives its memory back at every synchronisation, and the fast path is never seen. */
static void keep_pool(void)
{
	__typeof__(&cuDeviceGetDefaultMemPool) get = DRIVER_ASKED(cuDeviceGetDefaultMemPool);
	__typeof__(&cuMemPoolSetAttribute) set = DRIVER_ASKED(cuMemPoolSetAttribute);
	cuuint64_t all = UINT64_MAX;
	CUmemoryPool pool;

	if (get && set && get(&pool, 0) == CUDA_SUCCESS)
		set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
}

static const struct subject {
	const char *name;
	CUresult (*call)(const struct entry_points *, size_t);
	size_t bytes;
	unsigned rounds; /* in one sample */
} subjects[] = {
	{"cuMemAlloc + cuMemFree, 1 MiB", linear, MIB, 4},
	{"cuMemAlloc + cuMemFree, 64 MiB", linear, 64 * MIB, 2},
	{"cuMemAlloc + cuMemFree, 1 GiB", linear, 1024 * MIB, 1},
	{"cuMemAllocAsync + cuMemFreeAsync, 1 MiB", pooled, MIB, 32},
	{"cuMemCreate + cuMemRelease, 2 MiB", virtual, 2 * MIB, 4},
	{"cuMemGetInfo", information, 0, 16},
};

#define SUBJECTS (sizeof(subjects) / sizeof(*subjects))

static CUresult sample(const struct subject *s, const struct entry_points *e, double *ret_ns)
{
	uint64_t began = driver_now_ns();
	CUresult rc = CUDA_SUCCESS;

	for (unsigned i = 0; i < s->rounds && rc == CUDA_SUCCESS; i++)
		rc = s->call(e, s->bytes);
	*ret_ns = (double)(driver_now_ns() - began) / s->rounds;
	synchronize(stream);
	return rc;
}

static CUresult compare(const struct subject *s, double seconds)
{
	uint64_t end = driver_now_ns() + (uint64_t)(seconds * 1e9);
	CUresult rc = CUDA_SUCCESS;

	raw_ns.count = asked_ns.count = added_ns.count = 0;
	for (unsigned i = 0; rc == CUDA_SUCCESS && (i < 10 || driver_now_ns() < end); i++) {
		double a = 0, r = 0;

		if (i & 1)
			rc = sample(s, &raw, &r);
		rc = rc ? rc : sample(s, &asked, &a);
		if (!(i & 1))
			rc = rc ? rc : sample(s, &raw, &r);
		if (i < 4) /* the pool grows, the driver warms up */
			continue;
		samples_add(&raw_ns, r);
		samples_add(&asked_ns, a);
		samples_add(&added_ns, a - r);
	}
	return rc;
}

static void report(const struct subject *s, CUresult rc)
{
	printf("{\"what\":\"%s\",\"interposed\":%s,", s->name,
	       asked.alloc != raw.alloc ? "true" : "false");
	if (rc != CUDA_SUCCESS) {
		printf("\"error\":%d}\n", (int)rc);
		return;
	}
	samples_print("raw_ns", &raw_ns);
	printf(",");
	samples_print("asked_ns", &asked_ns);
	printf(",");
	samples_print("added_ns", &added_ns);
	printf("}\n");
}

int main(int argc, char **argv)
{
	double seconds = argc > 2 && !strcmp(argv[1], "--seconds") ? atof(argv[2]) : 4;

	driver_start();
	driver_must(DRIVER_ASKED(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), "stream");
	synchronize = DRIVER_ASKED(cuStreamSynchronize);
	keep_pool();
#define BOTH(field, symbol) (asked.field = DRIVER_ASKED(symbol), raw.field = DRIVER_RAW(symbol))
	BOTH(alloc, cuMemAlloc);
	BOTH(free, cuMemFree);
	BOTH(alloc_async, cuMemAllocAsync);
	BOTH(free_async, cuMemFreeAsync);
	BOTH(create, cuMemCreate);
	BOTH(release, cuMemRelease);
	BOTH(info, cuMemGetInfo);
#undef BOTH
	if (!raw.alloc || !raw.free || !raw.alloc_async || !raw.free_async || !raw.create ||
	    !raw.release || !raw.info) {
		fprintf(stderr, "bench_alloc: cannot find the driver's own entry points\n");
		return 1;
	}
	for (unsigned i = 0; i < SUBJECTS; i++)
		report(&subjects[i], compare(&subjects[i], seconds / SUBJECTS));
	return 0;
}
