/*
 * Every name that a driver exports, through dlsym and through cuGetProcAddress v1 and v2 with every version and
 * flag: the answer must be our wrapper of exactly the function that the bare driver answers, or that function
 * itself when it is none of ours; result, status and a NULL status pointer unchanged.
 *
 *   answers /path/to/libcuda.so.1        under LD_PRELOAD=libcuota.so; prints the counts; needs no GPU
 */
#include <dlfcn.h>

#include "doors/library.h"
#include "driver/cuda_abi.h"

static struct object driver, cuota;
static unsigned looked_up, ours, passed_through;

static const int versions[] = {1,     2000,  3020,  4000,  4010,  5050,	 6000,	6050,
			       7000,  7050,  8000,  9000,  10000, 11000, 11020, 11030,
			       11040, 11060, 11070, 11080, 12000, 12010, 12020, 12030,
			       12050, 12080, 12090, 13000, 13010, 13020, 13030, 99990};
#define VERSIONS (sizeof(versions) / sizeof(versions[0]))

/* Names of the symbols that the driver itself defines, in the order of its table. */
static const char *symbol_name(uint32_t index)
{
	const ElfW(Sym) *symbol = &driver.symbols[index];
	const char *name = driver.strings + symbol->st_name;

	if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value)
		return NULL;
	return strncmp(name, "cu", 2) == 0 ? name : NULL;
}

/* How many symbols the table has: told by the System V hash, or found by walking the GNU one. */
static uint32_t symbol_count(void)
{
	const uint32_t *table = driver.gnu_hash;
	uint32_t count = 0;

	if (driver.hash)
		return driver.hash[1];
	const uint32_t *bucket = (const uint32_t *)&((const ElfW(Addr) *)&table[4])[table[2]];
	const uint32_t *chain = bucket + table[0];

	for (uint32_t i = 0; i < table[0]; i++) {
		for (uint32_t s = bucket[i]; s >= table[1]; s++) {
			count = s + 1 > count ? s + 1 : count;
			if (chain[s - table[1]] & 1)
				break;
		}
	}
	return count;
}

/* The wrapper that must stand for an address of the driver: that of the same exact name. */
static void *expected(void *address)
{
	for (uint32_t i = 0, n = symbol_count(); i < n && address; i++) {
		const char *name = symbol_name(i);
		void *wrapper = name ? object_symbol(&cuota, name) : NULL;

		if (wrapper && object_symbol(&driver, name) == address)
			return wrapper;
	}
	return address;
}

static void check_answer(void *got, void *truth, const char *how, const char *name, int version,
			 unsigned long flags)
{
	void *want = expected(truth);

	CHECK(got == want, "%s of %s, version %d, flags %lu: %s instead of %s", how, name, version,
	      flags, owner_of(got), owner_of(want));
	looked_up++;
	if (want != truth)
		ours++;
	else
		passed_through++;
}

typedef CUresult get_v1(const char *, void **, int, cuuint64_t);
typedef CUresult get_v2(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

/* `one` and `two` are NULL in drivers that lack them. */
static void check_procaddress(const char *base, get_v1 *real_one, get_v1 *one, get_v2 *real_two,
			      get_v2 *two)
{
	for (unsigned v = 0; v < VERSIONS; v++) {
		for (cuuint64_t flags = 0; flags <= 4; flags++) {
			CUdriverProcAddressQueryResult want_status =
				(CUdriverProcAddressQueryResult)7;
			CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)7;
			void *want = (void *)1, *got = (void *)1;
			CUresult want_rc, rc;

			if (real_one) {
				want_rc = real_one(base, &want, versions[v], flags);
				rc = one(base, &got, versions[v], flags);
				CHECK(rc == want_rc, "v1 of %s", base);
				check_answer(got, want, "v1", base, versions[v], flags);
			}
			want = got = (void *)1;
			if (real_two) {
				want_rc = real_two(base, &want, versions[v], flags, &want_status);
				rc = two(base, &got, versions[v], flags, &status);
				CHECK(rc == want_rc && status == want_status, "v2 of %s", base);
				check_answer(got, want, "v2", base, versions[v], flags);
				CHECK(two(base, &got, versions[v], flags, NULL) ==
					      real_two(base, &want, versions[v], flags, NULL),
				      "v2 of %s without status", base);
			}
		}
	}
}

static int ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), e = strlen(end);

	return n > e && strcmp(name + n - e, end) == 0;
}

/* cuMemAllocAsync_ptsz -> cuMemAllocAsync; cuStreamWaitValue32_v2_ptsz -> cuStreamWaitValue32 */
static void base_name(const char *name, char ret[128])
{
	snprintf(ret, 128, "%s", name);
	if (ends_with(ret, "_ptsz") || ends_with(ret, "_ptds"))
		ret[strlen(ret) - 5] = '\0';
	if (strlen(ret) > 3 && strncmp(ret + strlen(ret) - 3, "_v", 2) == 0)
		ret[strlen(ret) - 3] = '\0';
}

int main(int argc, char **argv)
{
	void *handle = dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW);
	get_v1 *real_one, *one = NULL;
	get_v2 *real_two, *two = NULL;
	char base[128];

	CHECK(handle, "%s", dlerror());
	CHECK(object_by_soname("libcuda.so.1", &driver) == 0, "no driver");
	CHECK(object_by_soname("libcuota.so.0", &cuota) == 0, "not under LD_PRELOAD");
	real_one = (get_v1 *)object_symbol(&driver, "cuGetProcAddress");
	real_two = (get_v2 *)object_symbol(&driver, "cuGetProcAddress_v2");
	if (real_one)
		one = (get_v1 *)dlsym(handle, "cuGetProcAddress");
	if (real_two)
		two = (get_v2 *)dlsym(handle, "cuGetProcAddress_v2");
	CHECK(!real_one || is_ours((void *)one), "cuGetProcAddress is %s", owner_of((void *)one));
	CHECK(!real_two || is_ours((void *)two), "cuGetProcAddress_v2 is %s",
	      owner_of((void *)two));
	for (uint32_t i = 0, n = symbol_count(); i < n; i++) {
		const char *name = symbol_name(i);

		if (!name)
			continue;
		check_answer(dlsym(handle, name), object_symbol(&driver, name), "dlsym", name, 0,
			     0);
		CHECK(!dlerror(), "dlerror after a good look-up of %s", name);
		base_name(name, base);
		check_procaddress(base, real_one, one, real_two, two);
	}
	check_procaddress("cuFooNotThere", real_one, one, real_two, two);
	printf("%u look-ups: %u answered by a wrapper, %u passed through\n", looked_up, ours,
	       passed_through);
	return ours == 0;
}
