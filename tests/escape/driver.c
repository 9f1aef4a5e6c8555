#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>

struct driver cu;

int driver_load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "no driver: %s\n", dlerror());
		return 1;
	}
#define F(symbol) *(void **)&cu.symbol = dlsym(library, #symbol);
	DRIVER_FUNCTIONS(F)
#undef F
	return 0;
}
