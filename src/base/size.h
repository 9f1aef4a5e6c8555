/*
 * Sizes and percentages as users write them: "8G", "8192MiB", "50%", "30", "none".
 *
 * A size needs a unit (k m g t, any case, with or without i/iB/B, 1024-based); a bare number, zero,
 * a negative, an empty or an overflowing text is an error that says why, never "no limit"
 * (docs/design.md, contract; fault class CFG-1).
 */
#ifndef CUOTA_BASE_SIZE_H
#define CUOTA_BASE_SIZE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SIZE_MAX_BYTES \
	(1ull << 60) /* the largest size anybody may ask for: sums stay below 2^64 \
		      */

/* Bytes from "8G" or "1.5G" (at most six decimals, cut to whole bytes); 1..SIZE_MAX_BYTES. -EINVAL
 * or -ERANGE with the reason ("no unit: write 8G or 8M"). */
int size_parse(const char *text, uint64_t *ret_bytes, struct error *err);

/* Hundredths of a percent (1..10000) from "30", "30%", "12.5%" (two decimals at most);
 * -EINVAL/-ERANGE outside (0, 100]. */
int percent_parse(const char *text, uint32_t *ret_bp, struct error *err);

/* A whole number in [low, high]; -EINVAL/-ERANGE. */
int number_parse(const char *text, uint64_t low, uint64_t high, uint64_t *ret, struct error *err);

/* "8.0GiB", "526MiB", "0B": for people, cut to what is shown, never rounded up; returns buf. 16
 * bytes are enough. */
const char *size_format(uint64_t bytes, char *buf, size_t buf_bytes);

#endif
