/*
 * Does it cost more with many allocations alive? Pairs of stream-ordered allocation and free through the address that
 * a program gets and through the driver's own, in turn, with 0, 10^4 and 10^6 blocks of 512 bytes alive.
 *
 *   bench_memory [--seconds 6] [--live 1000000]     in all; one JSON line per number alive
 */
#include "driver.h"
#include "samples.h"

enum { ROUNDS = 32, BLOCK_BYTES = 512 };

struct entry_points {
	__typeof__(&cuMemAllocAsync) alloc;
	__typeof__(&cuMemFreeAsync) free;
};

static struct entry_points asked, raw;
static CUstream stream;
static __typeof__(&cuStreamSynchronize) synchronize;
static struct samples asked_ns, raw_ns, added_ns;

static CUresult sample(const struct entry_points *e, double *ret_ns)
{
	uint64_t began = driver_now_ns();
	CUresult rc = CUDA_SUCCESS;
	CUdeviceptr at;

	for (unsigned i = 0; i < ROUNDS && rc == CUDA_SUCCESS; i++) {
		rc = e->alloc(&at, BLOCK_BYTES, stream);
		if (rc == CUDA_SUCCESS)
			rc = e->free(at, stream);
	}
	*ret_ns = (double)(driver_now_ns() - began) / ROUNDS;
	synchronize(stream);
	return rc;
}

static CUresult compare(double seconds)
{
	uint64_t end = driver_now_ns() + (uint64_t)(seconds * 1e9);
	CUresult rc = CUDA_SUCCESS;

	raw_ns.count = asked_ns.count = added_ns.count = 0;
	for (unsigned i = 0; rc == CUDA_SUCCESS && (i < 10 || driver_now_ns() < end); i++) {
		double a = 0, r = 0;

		if (i & 1)
			rc = sample(&raw, &r);
		rc = rc ? rc : sample(&asked, &a);
		if (!(i & 1))
			rc = rc ? rc : sample(&raw, &r);
		if (i < 4)
			continue;
		samples_add(&raw_ns, r);
		samples_add(&asked_ns, a);
		samples_add(&added_ns, a - r);
	}
	return rc;
}

static void report(unsigned live, CUresult rc)
{
	printf("{\"what\":\"cuMemAllocAsync + cuMemFreeAsync, %u alive\",\"interposed\":%s,", live,
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
	fflush(stdout);
}

/* The pool keeps what it has, so that the fast path is what is seen. */
static CUresult start(void)
{
	__typeof__(&cuDevicePrimaryCtxRetain) retain = DRIVER_ASKED(cuDevicePrimaryCtxRetain);
	CUmemoryPool pool;
	cuuint64_t all = UINT64_MAX;
	CUcontext context;
	CUresult rc = DRIVER_ASKED(cuInit)(0);

	rc = rc ? rc : retain(&context, 0);
	rc = rc ? rc : DRIVER_ASKED(cuCtxSetCurrent)(context);
	rc = rc ? rc : DRIVER_ASKED(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
	rc = rc ? rc : DRIVER_ASKED(cuDeviceGetDefaultMemPool)(&pool, 0);
	rc = rc ? rc
		: DRIVER_ASKED(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
						      &all);
	asked = (struct entry_points){DRIVER_ASKED(cuMemAllocAsync), DRIVER_ASKED(cuMemFreeAsync)};
	raw = (struct entry_points){DRIVER_RAW(cuMemAllocAsync), DRIVER_RAW(cuMemFreeAsync)};
	synchronize = DRIVER_ASKED(cuStreamSynchronize);
	return rc;
}

int main(int argc, char **argv)
{
	unsigned most = 1000000, live = 0;
	double seconds = 6;
	CUresult rc;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--seconds"))
			seconds = atof(argv[i + 1]);
		else if (!strcmp(argv[i], "--live"))
			most = (unsigned)atoi(argv[i + 1]);
	}
	rc = start();
	if (rc != CUDA_SUCCESS) {
		fprintf(stderr, "the driver answers %d\n", (int)rc);
		return 77;
	}
	for (unsigned want = 0; rc == CUDA_SUCCESS && want <= most;
	     want = want ? want * 100 : 10000) {
		for (CUdeviceptr at; live < want && rc == CUDA_SUCCESS; live++)
			rc = asked.alloc(&at, BLOCK_BYTES, stream);
		rc = rc ? rc : compare(seconds / 3);
		report(live, rc);
	}
	return rc != CUDA_SUCCESS;
}
