/* What the service thread calls now and then to keep the ledger equal to the driver (books.c). */
#ifndef CUOTA_HOOKS_BOOKS_H
#define CUOTA_HOOKS_BOOKS_H

struct device_tenant;

/* Compares the ledger with the driver's own figure for this process and charges the difference. No CUDA call. */
void books_keep(struct device_tenant *device);

#endif
