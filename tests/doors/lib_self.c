/*
 * A driver that looks itself up, by its own handle and in the global scope, as the real one does: it must find
 * itself and not our wrapper, or it would call itself for ever. Its file is named libcuda.so.1 by the tests.
 */
#include <dlfcn.h>
#include <stddef.h>

int cuInit(unsigned int flags) __attribute__((alias("own_init")));
int cuDriverGetVersion(int *version);
int cuGetExportTable(const void **table, const void *id);
int cuMemAlloc_v2(unsigned long long *at, size_t bytes);
int self_found(void);

static int depth;

static __attribute__((used)) int own_init(unsigned int flags)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *self = handle ? dlsym(handle, "cuInit") : NULL,
	     *again = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");

	if (++depth > 1)
		return 999;
	(void)flags;
	(void)again;
	return self == (void *)own_init ? 0 : 998;
}

int self_found(void)
{
	return depth;
}

int cuDriverGetVersion(int *version)
{
	*version = 12000;
	return 0;
}

int cuGetExportTable(const void **table, const void *id)
{
	(void)table;
	(void)id;
	return 500;
}

int cuMemAlloc_v2(unsigned long long *at, size_t bytes)
{
	(void)bytes;
	*at = 0;
	return 2;
}
