/*
 * How much device memory a code image asks for, from its own headers: ELF (cubin), PTX text, fat binary.
 *
 * An estimate ahead of the load, so that an array of gigabytes in a module is refused before it is taken. Images
 * come from the program, not from strangers, but every offset is checked: the length is the image's own claim.
 */
#ifndef CUOTA_MEMORY_IMAGE_H
#define CUOTA_MEMORY_IMAGE_H

#include <stdint.h>

struct image_size {
	uint64_t code_bytes;
	uint64_t data_bytes; /* globals and constants */
};

/* All zero when the image is of no kind that we know, or compressed. */
struct image_size image_measure(const void *image);

/* The same of an image in a file, which the driver reads by itself. All zero when it cannot be read. errno is kept. */
struct image_size image_measure_file(const char *path);

#endif
