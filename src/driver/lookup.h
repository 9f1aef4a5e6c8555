/*
 * Address of a real entry point -> the wrapper of exactly that ABI ("swap by address": docs/design.md).
 *
 * Written while loading the driver (under the loader's once), read without a lock afterwards.
 */
#ifndef CUOTA_DRIVER_LOOKUP_H
#define CUOTA_DRIVER_LOOKUP_H

void lookup_add(const void *address, void *wrapper);

/* The wrapper for this address, or the address itself when it is none of ours. NULL stays NULL. */
void *lookup_swap(void *address);

#endif
