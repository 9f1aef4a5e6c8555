/*
 * Numbers as users write them. Own digit loop instead of strtoull(): that one takes "-1" for
 * 2^64-1, skips blanks, follows the locale, and newer C libraries give it a symbol version of its
 * own.
 */
#include "base/size.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"

#define FRACTION_DIGITS 6 /* "1.5G"; more would only hide a typing error */

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at *text into *ret, saturating; *text is left at the first byte that is no digit. */
static uint64_t take_digits(const char **text)
{
	uint64_t value = 0;

	for (; is_digit(**text); (*text)++) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(**text - '0'), &value))
			value = UINT64_MAX;
	}
	return value;
}

struct decimal {
	uint64_t whole;
	uint64_t fraction;     /* in units of 1 / scale */
	uint64_t scale;	       /* 1, 10, 100, ... */
	const char *rest;      /* what follows the number */
	unsigned digits_after; /* as written */
};

/* "12", "12.5"; says what is wrong with anything else. */
static int decimal_parse(const char *text, struct decimal *ret, struct error *err)
{
	struct decimal number = {.scale = 1};
	char quoted[ERROR_QUOTE_BYTES];

	if (!*text)
		return error_set(err, EINVAL, "empty");
	for (const char *c = text; *c; c++)
		if (*c == ' ' || *c == '\t' || *c == '\n' || *c == '\r')
			return error_set(err, EINVAL, "blank inside: write it without");
	if (*text == '-')
		return error_set(err, EINVAL, "negative: write none for no cap");
	if (!is_digit(*text))
		return error_set(err, EINVAL, "not a number: '%s'", error_quote(text, quoted));
	number.whole = take_digits(&text);
	if (*text == '.') {
		if (!is_digit(*++text))
			return error_set(err, EINVAL, "no digit after the point");
		for (; is_digit(*text); text++) {
			if (++number.digits_after > FRACTION_DIGITS)
				return error_set(err, EINVAL, "more than %d decimals",
						 FRACTION_DIGITS);
			number.fraction = number.fraction * 10 + (uint64_t)(*text - '0');
			number.scale *= 10;
		}
	}
	number.rest = text;
	*ret = number;
	return 0;
}

/* The power of two of "G", "Gi", "GB", "GiB", in any case; -1 for anything else. */
static int unit_shift(const char *unit)
{
	static const char letters[] = "kmgt";
	const char *letter = *unit ? strchr(letters, ascii_lower(*unit)) : NULL;

	if (!letter)
		return -1;
	unit++;
	if (ascii_lower(*unit) == 'i')
		unit++;
	if (ascii_lower(*unit) == 'b')
		unit++;
	return *unit ? -1 : 10 * (int)(letter - letters + 1);
}

int size_parse(const char *text, uint64_t *ret_bytes, struct error *err)
{
	struct decimal number;
	char quoted[ERROR_QUOTE_BYTES];
	uint64_t bytes, part;
	int shift, r;

	r = decimal_parse(text, &number, err);
	if (r < 0)
		return r;
	if (!*number.rest && !number.whole && !number.fraction)
		return error_set(err, EINVAL, "zero: write none for no cap");
	if (!*number.rest)
		return error_set(err, EINVAL, "no unit: write %sG or %sM",
				 error_quote(text, quoted), quoted);
	shift = unit_shift(number.rest);
	if (shift < 0)
		return error_set(err, EINVAL, "unknown unit '%s': use K, M, G or T",
				 error_quote(number.rest, quoted));
	if (number.whole > SIZE_MAX_BYTES >> shift)
		return error_set(err, ERANGE, "too large: more than 1048576T");
	part = (number.fraction << shift) / number.scale; /* < 10^6 << 40: fits */
	bytes = (number.whole << shift) + part;
	if (bytes > SIZE_MAX_BYTES)
		return error_set(err, ERANGE, "too large: more than 1048576T");
	if (!bytes)
		return error_set(err, EINVAL, "zero: write none for no cap");
	*ret_bytes = bytes;
	return 0;
}

int percent_parse(const char *text, uint32_t *ret_bp, struct error *err)
{
	struct decimal number;
	char quoted[ERROR_QUOTE_BYTES];
	uint64_t bp;
	int r;

	r = decimal_parse(text, &number, err);
	if (r < 0)
		return r;
	if (*number.rest && strcmp(number.rest, "%") != 0)
		return error_set(err, EINVAL, "not a percentage: unknown '%s' after the number",
				 error_quote(number.rest, quoted));
	if (number.digits_after > 2)
		return error_set(err, EINVAL, "more than 2 decimals");
	if (number.whole > 100 || (number.whole == 100 && number.fraction))
		return error_set(err, ERANGE, "more than 100 percent");
	bp = number.whole * 100 + number.fraction * 100 / number.scale;
	if (!bp)
		return error_set(err, ERANGE, "zero: write none for no cap");
	*ret_bp = (uint32_t)bp;
	return 0;
}

int number_parse(const char *text, uint64_t low, uint64_t high, uint64_t *ret, struct error *err)
{
	char quoted[ERROR_QUOTE_BYTES];
	const char *rest = text;
	uint64_t value;

	if (!*text)
		return error_set(err, EINVAL, "empty");
	value = take_digits(&rest);
	if (*rest)
		return error_set(err, EINVAL, "not a whole number: '%s'",
				 error_quote(text, quoted));
	if (value < low || value > high)
		return error_set(err, ERANGE, "out of range: write %llu to %llu",
				 (unsigned long long)low, (unsigned long long)high);
	*ret = value;
	return 0;
}

const char *size_format(uint64_t bytes, char *buf, size_t buf_bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	unsigned unit = 0;

	while (unit + 1 < sizeof(units) / sizeof(units[0]) && bytes >> (10 * (unit + 1)))
		unit++;
	if (unit == 0 || bytes >> (10 * unit) >= 100) {
		snprintf(buf, buf_bytes, "%llu%s", (unsigned long long)(bytes >> (10 * unit)),
			 units[unit]);
	} else {
		uint64_t tenths =
			((bytes >> (10 * (unit - 1))) * 10) >> 10; /* cut, never rounded up */

		snprintf(buf, buf_bytes, "%llu.%llu%s", (unsigned long long)(tenths / 10),
			 (unsigned long long)(tenths % 10), units[unit]);
	}
	return buf;
}
