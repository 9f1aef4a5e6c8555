/*
 * One way to the driver, through which every allocating ABI is fetched and asked for more than the cap: each must
 * be refused with CUDA_ERROR_OUT_OF_MEMORY, and 1 MiB must still be had.
 *
 *   door WAY [PATH]      under a cap of less than 4 GiB; PATH: what the way opens
 *
 * Prints a row per ABI; 0 when all are held. An ABI that the driver lacks or does not support is shown as such.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "doors/abi.h"
#include "doors/library.h"

#define OVER_CAP ((size_t)4 << 30)
#define SMALL	 ((size_t)4 << 20)

static const struct abi abis[] = {
#define ROW(symbol, base, version, ptds, take) {#symbol, base, version, ptds, take},
	ABI_ROWS(ROW)};

static const char *path;
static int flag; /* of cuGetProcAddress */

/* ---- the ways: each finds a symbol by its exact name ---------------------------------------------- */

static void *open_driver(int mode)
{
	static void *handle;

	if (!handle)
		handle = dlopen(path, RTLD_NOW | mode);
	CHECK(handle, "%s", dlerror());
	return handle;
}

static void *by_handle(const char *symbol)
{
	return dlsym(open_driver(0), symbol);
}

static void *by_version(const char *symbol)
{
	return dlvsym(open_driver(0), symbol, "DRIVER_1");
}

static void *by_deep_handle(const char *symbol)
{
	return dlsym(open_driver(RTLD_DEEPBIND), symbol);
}

static void *by_default(const char *symbol)
{
	open_driver(RTLD_GLOBAL);
	return dlsym(RTLD_DEFAULT, symbol);
}

static void *by_next(const char *symbol)
{
	open_driver(RTLD_GLOBAL);
	return dlsym(RTLD_NEXT, symbol);
}

static void *by_program(const char *symbol)
{
	open_driver(RTLD_GLOBAL);
	return dlsym(dlopen(NULL, RTLD_NOW), symbol);
}

/* dlsym itself fetched from the C library. */
static void *by_fetched(const char *symbol)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	void *(*fetched)(void *, const char *) =
		(void *(*)(void *, const char *))dlsym(libc, "dlsym");

	if (!fetched) /* before glibc 2.34 */
		fetched = (void *(*)(void *, const char *))dlsym(dlopen("libdl.so.2", RTLD_NOW),
								 "dlsym");
	CHECK(fetched, "no dlsym");
	return fetched(open_driver(0), symbol);
}

static const struct abi *abi_of(const char *symbol)
{
	for (size_t i = 0; i < sizeof(abis) / sizeof(abis[0]); i++)
		if (strcmp(abis[i].symbol, symbol) == 0)
			return &abis[i];
	return NULL;
}

/* NULL when this flag gives another function. */
static void *ask(const char *symbol, int second, int of_itself)
{
	void *get = by_handle(second ? "cuGetProcAddress_v2" : "cuGetProcAddress"), *found = NULL;
	const struct abi *abi = abi_of(symbol);
	CUresult rc;

	if (!abi)
		return by_handle(symbol);
	if (ABI_HAS_TWIN(symbol) && abi->ptds != (flag == 2))
		return NULL;
	CHECK(get, "no cuGetProcAddress");
	if (of_itself && second)
		((__typeof__(cuGetProcAddress_v2) *)get)("cuGetProcAddress", &get, 12000, 0, NULL);
	else if (of_itself)
		((__typeof__(cuGetProcAddress) *)get)("cuGetProcAddress", &get, 11030, 0);
	if (second)
		rc = ((__typeof__(cuGetProcAddress_v2) *)get)(abi->base, &found, abi->version,
							      (cuuint64_t)flag, NULL);
	else
		rc = ((__typeof__(cuGetProcAddress) *)get)(abi->base, &found, abi->version,
							   (cuuint64_t)flag);
	return rc == CUDA_SUCCESS ? found : NULL;
}

static void *by_ask_one(const char *symbol)
{
	return ask(symbol, 0, 0);
}

static void *by_ask_two(const char *symbol)
{
	return ask(symbol, 1, 0);
}

static void *by_ask_itself_one(const char *symbol)
{
	return ask(symbol, 0, 1);
}

static void *by_ask_itself_two(const char *symbol)
{
	return ask(symbol, 1, 1);
}

/* A library that is linked to the driver, or loads it. */
static void *in_library(int mode, const char *function, const char *symbol)
{
	static void *library;
	void *(*find)(const char *);

	if (!library)
		library = dlopen(path, mode);
	CHECK(library, "%s", dlerror());
	find = (void *(*)(const char *))dlsym(library, function);
	CHECK(find, "%s", dlerror());
	return find(symbol);
}

static void *by_library_lazy(const char *symbol)
{
	return in_library(RTLD_LAZY, "linked_address", symbol);
}

static void *by_library_default(const char *symbol)
{
	return in_library(RTLD_NOW, "linked_default", symbol);
}

static void *by_library_deep(const char *symbol)
{
	return in_library(RTLD_NOW | RTLD_DEEPBIND, "linked_address", symbol);
}

static void *by_library_deep_lazy(const char *symbol)
{
	return in_library(RTLD_LAZY | RTLD_DEEPBIND, "linked_address", symbol);
}

static void *by_library_deep_default(const char *symbol)
{
	return in_library(RTLD_NOW | RTLD_DEEPBIND, "linked_default", symbol);
}

static void *by_loading_library(const char *symbol)
{
	return in_library(RTLD_NOW, "loads_symbol", symbol);
}

static void *by_loading_library_deep(const char *symbol)
{
	return in_library(RTLD_LAZY | RTLD_DEEPBIND, "loads_symbol", symbol);
}

static const struct {
	const char *name;
	void *(*find)(const char *symbol);
	int flag;
} ways[] = {
	{"handle", by_handle, 0},
	{"version", by_version, 0},
	{"deep-handle", by_deep_handle, 0},
	{"default", by_default, 0},
	{"next", by_next, 0},
	{"program", by_program, 0},
	{"fetched-dlsym", by_fetched, 0},
	{"ask1", by_ask_one, 0},
	{"ask1-legacy", by_ask_one, 1},
	{"ask1-ptds", by_ask_one, 2},
	{"ask2", by_ask_two, 0},
	{"ask2-legacy", by_ask_two, 1},
	{"ask2-ptds", by_ask_two, 2},
	{"ask1-itself", by_ask_itself_one, 0},
	{"ask2-itself", by_ask_itself_two, 0},
	{"ask2-itself-ptds", by_ask_itself_two, 2},
	{"library-lazy", by_library_lazy, 0},
	{"library-default", by_library_default, 0},
	{"library-deep", by_library_deep, 0},
	{"library-deep-lazy", by_library_deep_lazy, 0},
	{"library-deep-default", by_library_deep_default, 0},
	{"loading-library", by_loading_library, 0},
	{"loading-library-deep", by_loading_library_deep, 0},
};

/* ---- the table ------------------------------------------------------------------------------------ */

static void *must_find(void *(*find)(const char *), const char *symbol)
{
	void *found = find(symbol);

	CHECK(found, "no %s", symbol);
	return found;
}

static void make_current(void *(*find)(const char *))
{
	CUcontext context;

	CHECK(((__typeof__(cuInit) *)must_find(find, "cuInit"))(0) == CUDA_SUCCESS, "cuInit");
	CHECK(((__typeof__(cuDevicePrimaryCtxRetain) *)must_find(find, "cuDevicePrimaryCtxRetain"))(
		      &context, 0) == CUDA_SUCCESS,
	      "context");
	CHECK(((__typeof__(cuCtxSetCurrent) *)must_find(find, "cuCtxSetCurrent"))(context) ==
		      CUDA_SUCCESS,
	      "context");
}

/* 1 when the cap was not applied. */
static int try_abi(const struct abi *abi, void *function)
{
	CUresult over, small;

	if (!function) {
		printf("  %-22s not this way\n", abi->symbol);
		return 0;
	}
	over = abi->take(function, OVER_CAP);
	small = abi->take(function, SMALL);
	if (small == CUDA_ERROR_NOT_SUPPORTED) {
		printf("  %-22s not supported\n", abi->symbol);
		return 0;
	}
	printf("  %-22s %s: over %d, small %d (%s)\n", abi->symbol,
	       over == CUDA_ERROR_OUT_OF_MEMORY && small == CUDA_SUCCESS ? "held" : "NOT HELD",
	       over, small, owner_of(function));
	return over != CUDA_ERROR_OUT_OF_MEMORY || small != CUDA_SUCCESS;
}

int main(int argc, char **argv)
{
	int missed = 0, tried = 0;

	CHECK(argc > 1, "usage: door WAY [PATH]");
	path = argc > 2 ? argv[2] : "libcuda.so.1";
	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		if (strcmp(ways[w].name, argv[1]) != 0)
			continue;
		flag = ways[w].flag;
		make_current(ways[w].find);
		for (size_t i = 0; i < sizeof(abis) / sizeof(abis[0]); i++) {
			void *function = ways[w].find(abis[i].symbol);

			tried += function != NULL;
			missed += try_abi(&abis[i], function);
		}
	}
	CHECK(tried > 0, "nothing tried by %s", argv[1]);
	return missed != 0;
}
