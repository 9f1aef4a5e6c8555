/* A program with a weak reference to the driver: it runs without one, and asks whether there is. */
#include <stdio.h>

extern int cuInit(unsigned int flags) __attribute__((weak));

int main(void)
{
	int (*volatile init)(unsigned int) = cuInit;

	if (init)
		printf("cuInit %d\n", init(0));
	else
		printf("no cuInit\n");
	return 0;
}
