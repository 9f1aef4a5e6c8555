/*
 * A library linked to the driver, as an extension module is: tests open it in all manners. Its references are of
 * both kinds, calls (PLT slots) and addresses in data.
 */
#include <dlfcn.h>
#include <string.h>

#include "doors/abi.h"

void *linked_address(const char *symbol);
void *linked_default(const char *symbol);
CUresult linked_call(size_t bytes);

static const struct {
	const char *name;
	void *address;
} table[] = {{"cuInit", (void *)cuInit},
	     {"cuDevicePrimaryCtxRetain", (void *)cuDevicePrimaryCtxRetain},
	     {"cuCtxSetCurrent", (void *)cuCtxSetCurrent},
	     {"cuGetProcAddress_v2", (void *)cuGetProcAddress_v2},
#define ROW(symbol, base, version, ptds, take) {#symbol, (void *)symbol},
	     ABI_ROWS(ROW)};

/* As the loader bound it. */
void *linked_address(const char *symbol)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].name, symbol) == 0)
			return table[i].address;
	return NULL;
}

/* The driver is in this library's scope, wherever it stands for the program. */
void *linked_default(const char *symbol)
{
	void *volatile found = dlsym(RTLD_DEFAULT, symbol); /* no tail call: we are the caller */

	return found;
}

CUresult linked_call(size_t bytes)
{
	CUdeviceptr at;

	return cuMemAlloc_v2(&at, bytes);
}
