/* cuInit of whatever libcuda.so.1 there is, found by dlopen and dlsym. */
#include <dlfcn.h>

#include "doors/library.h"

int main(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned) = handle ? (int (*)(unsigned))dlsym(handle, "cuInit") : NULL;

	CHECK(init, "%s", dlerror());
	printf("cuInit %d\n", init(0));
	return 0;
}
