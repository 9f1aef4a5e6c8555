/*
 * Sizes, percentages and whole numbers as users write them (src/base/size.c), against tables and,
 * for sizes, against a reference made of a regular expression and 128-bit arithmetic.
 */
#include <check.h>
#include <errno.h>
#include <locale.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define UNTOUCHED    0xDEADBEEFu

#define K (1ull << 10)
#define M (1ull << 20)
#define G (1ull << 30)
#define T (1ull << 40)

static const struct {
	const char *text;
	uint64_t bytes;
} good_sizes[] = {
	{"8G", 8 * G},
	{"8g", 8 * G},
	{"8Gi", 8 * G},
	{"8GI", 8 * G},
	{"8gi", 8 * G},
	{"8GB", 8 * G},
	{"8gb", 8 * G},
	{"8Gb", 8 * G},
	{"8GiB", 8 * G},
	{"8gib", 8 * G},
	{"8GIB", 8 * G},
	{"8giB", 8 * G},
	{"8192M", 8 * G},
	{"8192MiB", 8 * G},
	{"8192m", 8 * G},
	{"8388608K", 8 * G},
	{"8388608KiB", 8 * G},
	{"1K", K},
	{"1k", K},
	{"1KB", K},
	{"1M", M},
	{"1MB", M},
	{"1G", G},
	{"1T", T},
	{"1t", T},
	{"1TiB", T},
	{"08G", 8 * G},
	{"0000000000000000000000000000000000008G", 8 * G},
	{"1.5G", G + G / 2},
	{"1.50G", G + G / 2},
	{"1.500000G", G + G / 2},
	{"0.5G", G / 2},
	{"0.25G", G / 4},
	{"0.5K", 512},
	{"0.001K", 1},
	{"8.0GiB", 8 * G},
	{"139.7GiB", 150001732812},
	{"1048576T", 1ull << 60},
	{"1073741824G", 1ull << 60},
	{"1048575.999999T", (1048576 * T) - (T / 1000000) - 1},
	{"143771M", 143771 * M},
};

START_TEST(a_size_with_a_unit_is_read_1024_based_in_any_case)
{
	uint64_t bytes = UNTOUCHED;
	struct error err = {""};

	ck_assert_msg(size_parse(good_sizes[_i].text, &bytes, &err) == 0, "%s: %s",
		      good_sizes[_i].text, err.text);
	ck_assert_msg(bytes == good_sizes[_i].bytes, "%s: %llu instead of %llu",
		      good_sizes[_i].text, (unsigned long long)bytes,
		      (unsigned long long)good_sizes[_i].bytes);
}
END_TEST

static const struct {
	const char *text;
	int code;
	const char *reason; /* must be in the message */
} bad_sizes[] = {
	{"", EINVAL, "empty"},
	{"8", EINVAL, "no unit: write 8G or 8M"},
	{"8192", EINVAL, "no unit: write 8192G or 8192M"},
	{"1.5", EINVAL, "no unit: write 1.5G"},
	{"0", EINVAL, "zero"},
	{"00", EINVAL, "zero"},
	{"0.0", EINVAL, "zero"},
	{"0G", EINVAL, "zero"},
	{"0k", EINVAL, "zero"},
	{"0GiB", EINVAL, "zero"},
	{"0.0G", EINVAL, "zero"},
	{"0.000000T", EINVAL, "zero"},
	{"0.000001K", EINVAL, "zero"},
	{"-1", EINVAL, "negative"},
	{"-1G", EINVAL, "negative"},
	{"-0", EINVAL, "negative"},
	{"-", EINVAL, "negative"},
	{"+8G", EINVAL, "not a number"},
	{"abc", EINVAL, "not a number"},
	{"G", EINVAL, "not a number"},
	{"GiB", EINVAL, "not a number"},
	{"none", EINVAL, "not a number"},
	{"unlimited", EINVAL, "not a number"},
	{"inf", EINVAL, "not a number"},
	{"nan", EINVAL, "not a number"},
	{".5G", EINVAL, "not a number"},
	{"1.G", EINVAL, "no digit after the point"},
	{"1.", EINVAL, "no digit after the point"},
	{"1..5G", EINVAL, "no digit after the point"},
	{"1.5.5G", EINVAL, "unknown unit"},
	{"1,5G", EINVAL, "unknown unit"},
	{"1.0000001G", EINVAL, "decimals"},
	{"8X", EINVAL, "unknown unit 'X'"},
	{"8P", EINVAL, "unknown unit 'P'"},
	{"8E", EINVAL, "unknown unit 'E'"},
	{"8B", EINVAL, "unknown unit 'B'"},
	{"8iB", EINVAL, "unknown unit 'iB'"},
	{"8Gx", EINVAL, "unknown unit"},
	{"8Gbi", EINVAL, "unknown unit"},
	{"8GiBs", EINVAL, "unknown unit"},
	{"8GiBB", EINVAL, "unknown unit"},
	{"8GG", EINVAL, "unknown unit"},
	{"8G8G", EINVAL, "unknown unit"},
	{"8GBytes", EINVAL, "unknown unit"},
	{"8e9", EINVAL, "unknown unit 'e9'"},
	{"8e9G", EINVAL, "unknown unit"},
	{"0x8G", EINVAL, "unknown unit"},
	{"0b1G", EINVAL, "unknown unit"},
	{"1_000M", EINVAL, "unknown unit"},
	{"1'000M", EINVAL, "unknown unit"},
	{"50%", EINVAL, "unknown unit '%'"},
	{"8G%", EINVAL, "unknown unit"},
	{"8G-", EINVAL, "unknown unit"},
	{"8G,4G", EINVAL, "unknown unit"},
	{"0=8G", EINVAL, "unknown unit"},
	{"8 G", EINVAL, "blank"},
	{" 8G", EINVAL, "blank"},
	{"8G ", EINVAL, "blank"},
	{"8G\n", EINVAL, "blank"},
	{"\t8G", EINVAL, "blank"},
	{"8G\r", EINVAL, "blank"},
	{" ", EINVAL, "blank"},
	{"8\vG", EINVAL, "unknown unit"},
	{"$MEM", EINVAL, "not a number"},
	{"${MEM}", EINVAL, "not a number"},
	{"%s%s%s%n", EINVAL, "not a number"},
	{"8%n", EINVAL, "unknown unit"},
	{"\xef\xbc\x98G", EINVAL, "not a number"},  /* fullwidth 8 */
	{"8\xe2\x80\x8bG", EINVAL, "unknown unit"}, /* zero width space */
	{"8\xc4\xb0G", EINVAL, "unknown unit"},
	{"1048577T", ERANGE, "too large"},
	{"1048576.000001T", ERANGE, "too large"},
	{"16777216T", ERANGE, "too large"},
	{"16777217T", ERANGE, "too large"},
	{"17179869184G", ERANGE, "too large"},
	{"18446744073709551615K", ERANGE, "too large"},
	{"18446744073709551616K", ERANGE, "too large"},
	{"18446744073709551617K", ERANGE, "too large"},
	{"36893488147419103233K", ERANGE, "too large"},
	{"99999999999999999999999999999999999999999999999T", ERANGE, "too large"},
	{"18014398509481985K", ERANGE, "too large"}, /* 2^64 + 1024 */
};

START_TEST(what_is_no_size_is_refused_with_the_reason_and_leaves_the_output_alone)
{
	uint64_t bytes = UNTOUCHED;
	struct error err = {""};
	int r = size_parse(bad_sizes[_i].text, &bytes, &err);

	ck_assert_msg(r == -bad_sizes[_i].code, "'%s' gives %d", bad_sizes[_i].text, r);
	ck_assert_msg(strstr(err.text, bad_sizes[_i].reason) != NULL, "'%s': %s",
		      bad_sizes[_i].text, err.text);
	ck_assert_uint_eq(bytes, UNTOUCHED);
	ck_assert_ptr_null(strpbrk(err.text, "\n\r"));
	ck_assert_int_eq(size_parse(bad_sizes[_i].text, &bytes, NULL), r);
}
END_TEST

/* The contract written another way. */
static int reference(const regex_t *shape, const char *text, uint64_t *ret)
{
	static const char units[] = "kmgt";
	unsigned __int128 whole = 0, part = 0, scale = 1, bytes;
	const char *c = text;
	int shift;

	if (regexec(shape, text, 0, NULL, 0) != 0)
		return -1;
	for (; *c >= '0' && *c <= '9'; c++)
		if (whole < ((unsigned __int128)1 << 100))
			whole = whole * 10 + (unsigned)(*c - '0');
	if (*c == '.')
		for (c++; *c >= '0' && *c <= '9'; c++, scale *= 10)
			part = part * 10 + (unsigned)(*c - '0');
	shift = 10 * (int)(strchr(units, *c | 0x20) - units + 1);
	if (whole >= ((unsigned __int128)1 << 64))
		return -1;
	bytes = ((whole * scale + part) << shift) / scale;
	if (!bytes || bytes > ((unsigned __int128)1 << 60))
		return -1;
	*ret = (uint64_t)bytes;
	return 0;
}

static unsigned random_below(unsigned limit)
{
	return (unsigned)(((uint64_t)random() * limit) >> 31);
}

/* Mostly of a size's shape, now and then broken by one changed, lost or doubled byte. */
static void random_size(char *text, size_t bytes)
{
	static const char *const tails[] = {"K",  "m",	"G", "t", "Ki", "MiB",
					    "gb", "TB", "",  "B", "x"};
	static const char noise[] = "0123456789kKmMgGtTiIbB.-+ %,=eExX\t\n\x7f\xff";
	char digits[32];
	size_t length, at;

	snprintf(digits, sizeof(digits), "%llu",
		 ((unsigned long long)random() << 33 | (unsigned long long)random() << 2) >>
			 random_below(64));
	if (random_below(3) == 0)
		snprintf(text, bytes, "%s.%0*u%s", digits, (int)(1 + random_below(7)),
			 random_below(1000000), tails[random_below(COUNT(tails))]);
	else
		snprintf(text, bytes, "%s%s", digits, tails[random_below(COUNT(tails))]);
	length = strlen(text);
	at = random_below((unsigned)length);
	switch (random_below(8)) {
	case 0: text[at] = noise[random_below(sizeof(noise) - 1)]; break;
	case 1: memmove(text + at, text + at + 1, length - at); break;
	case 2:
		if (length + 1 < bytes)
			memmove(text + at + 1, text + at, length - at + 1);
		break;
	default: break;
	}
}

START_TEST(a_hundred_thousand_random_texts_are_read_as_the_reference_reads_them)
{
	regex_t shape;
	int accepted = 0;

	ck_assert_int_eq(regcomp(&shape, "^[0-9]+(\\.[0-9]{1,6})?[kmgtKMGT][iI]?[bB]?$",
				 REG_EXTENDED | REG_NOSUB),
			 0);
	srandom(1);
	for (int i = 0; i < 100000; i++) {
		char text[80];
		uint64_t want = 0, got = UNTOUCHED;
		struct error err = {""};
		int r, expected;

		random_size(text, sizeof(text));
		r = size_parse(text, &got, &err);
		expected = reference(&shape, text, &want);
		ck_assert_msg((r == 0) == (expected == 0), "'%s' gives %d (%s)", text, r, err.text);
		if (r == 0)
			ck_assert_msg(got == want, "'%s' gives %llu, not %llu", text,
				      (unsigned long long)got, (unsigned long long)want);
		else
			ck_assert_msg(err.text[0] && got == UNTOUCHED, "'%s'", text);
		accepted += r == 0;
	}
	ck_assert_int_gt(accepted, 10000); /* or the comparison proves little */
	regfree(&shape);
}
END_TEST

START_TEST(every_byte_string_of_length_three_is_a_size_or_an_error_with_a_reason)
{
	static const char bytes[] = "\x01\n 09.-+kKmiIbBgGtT%,=xe\x7f\x80\xff";
	size_t count = sizeof(bytes) - 1;

	for (size_t i = 0; i < count * count * count; i++) {
		char text[4] = {bytes[i % count], bytes[i / count % count],
				bytes[i / count / count], '\0'};
		uint64_t value = 0;
		struct error err = {""};
		int r = size_parse(text, &value, &err);

		ck_assert(r == 0 ? value > 0 : err.text[0] != '\0');
		for (const char *c = err.text; *c; c++)
			ck_assert_msg(*c >= ' ' && *c < 0x7f, "unprintable byte in the message");
	}
}
END_TEST

START_TEST(a_very_long_text_is_refused_without_a_long_message)
{
	static char text[100001];
	uint64_t bytes = 0;
	uint32_t bp = 0;
	struct error err;

	memset(text, '9', sizeof(text) - 1);
	ck_assert_int_eq(size_parse(text, &bytes, &err), -EINVAL);
	ck_assert_uint_lt(strlen(err.text), sizeof(err.text));
	text[sizeof(text) - 2] = 'G';
	ck_assert_int_eq(size_parse(text, &bytes, &err), -ERANGE);
	ck_assert_int_eq(percent_parse(text, &bp, &err), -EINVAL);
	ck_assert_int_eq(number_parse(text, 0, UINT64_MAX, &bytes, &err), -EINVAL);
	memset(text, '0', sizeof(text) - 3);
	ck_assert_int_eq(size_parse(text, &bytes, &err), 0);
	ck_assert_uint_eq(bytes, 9 * G);
}
END_TEST

static const struct {
	const char *text;
	uint32_t bp;
} good_percents[] = {
	{"30", 3000},	  {"30%", 3000},      {"1", 100},      {"100", 10000},
	{"100%", 10000},  {"12.5", 1250},     {"12.5%", 1250}, {"12.50%", 1250},
	{"0.01", 1},	  {"0.01%", 1},	      {"0.1", 10},     {"99.99", 9999},
	{"100.0", 10000}, {"100.00%", 10000}, {"007", 700},    {"33.33%", 3333},
};

START_TEST(a_percentage_is_read_with_or_without_its_sign_and_two_decimals)
{
	uint32_t bp = UNTOUCHED;
	struct error err = {""};

	ck_assert_msg(percent_parse(good_percents[_i].text, &bp, &err) == 0, "%s: %s",
		      good_percents[_i].text, err.text);
	ck_assert_uint_eq(bp, good_percents[_i].bp);
}
END_TEST

static const struct {
	const char *text;
	int code;
	const char *reason;
} bad_percents[] = {
	{"", EINVAL, "empty"},
	{"0", ERANGE, "zero"},
	{"0%", ERANGE, "zero"},
	{"0.0", ERANGE, "zero"},
	{"0.00%", ERANGE, "zero"},
	{"0.001", EINVAL, "decimals"},
	{"12.345", EINVAL, "decimals"},
	{"12.3456789", EINVAL, "decimals"},
	{"101", ERANGE, "more than 100"},
	{"101%", ERANGE, "more than 100"},
	{"100.01", ERANGE, "more than 100"},
	{"1000", ERANGE, "more than 100"},
	{"18446744073709551616", ERANGE, "more than 100"},
	{"18446744073709551646", ERANGE, "more than 100"}, /* 30 modulo 2^64 */
	{"4294967326", ERANGE, "more than 100"},	   /* 30 modulo 2^32 */
	{"-1", EINVAL, "negative"},
	{"-30%", EINVAL, "negative"},
	{"+30", EINVAL, "not a number"},
	{"abc", EINVAL, "not a number"},
	{"%", EINVAL, "not a number"},
	{"30x", EINVAL, "unknown 'x'"},
	{"30%%", EINVAL, "unknown"},
	{"30 %", EINVAL, "blank"},
	{" 30", EINVAL, "blank"},
	{"30\n", EINVAL, "blank"},
	{"30G", EINVAL, "unknown"},
	{"3e1", EINVAL, "unknown"},
	{"0x1e", EINVAL, "unknown"},
	{"30,5", EINVAL, "unknown"},
	{"30.", EINVAL, "no digit"},
	{".3", EINVAL, "not a number"},
	{"none", EINVAL, "not a number"},
	{"full", EINVAL, "not a number"},
};

START_TEST(a_percentage_outside_0_to_100_or_with_anything_behind_it_is_refused)
{
	uint32_t bp = UNTOUCHED;
	struct error err = {""};
	int r = percent_parse(bad_percents[_i].text, &bp, &err);

	ck_assert_msg(r == -bad_percents[_i].code, "'%s' gives %d", bad_percents[_i].text, r);
	ck_assert_msg(strstr(err.text, bad_percents[_i].reason) != NULL, "'%s': %s",
		      bad_percents[_i].text, err.text);
	ck_assert_uint_eq(bp, UNTOUCHED);
}
END_TEST

START_TEST(every_hundredth_of_a_percent_reads_as_itself)
{
	for (uint32_t want = 1; want <= 10000; want++) {
		uint32_t got = 0;
		char text[16];

		snprintf(text, sizeof(text), "%u.%02u%s", want / 100, want % 100,
			 want % 2 ? "%" : "");
		ck_assert_int_eq(percent_parse(text, &got, NULL), 0);
		ck_assert_uint_eq(got, want);
	}
}
END_TEST

START_TEST(a_whole_number_is_taken_within_its_bounds_only)
{
	static const char *const bad[] = {
		"",    "0",   "10001", "-1",  "+1",  " 1",  "1 ",
		"1.0", "1e3", "0x1",   "abc", "1,2", "1\n", "99999999999999999999"};
	uint64_t value = UNTOUCHED;
	struct error err = {""};

	for (int i = 0; i < COUNT(bad); i++) {
		ck_assert_msg(number_parse(bad[i], 1, 10000, &value, &err) < 0, "'%s'", bad[i]);
		ck_assert_msg(err.text[0] && value == UNTOUCHED, "'%s'", bad[i]);
	}
	ck_assert_int_eq(number_parse("1", 1, 10000, &value, &err), 0);
	ck_assert_uint_eq(value, 1);
	ck_assert_int_eq(number_parse("10000", 1, 10000, &value, &err), 0);
	ck_assert_uint_eq(value, 10000);
	ck_assert_int_eq(number_parse("18446744073709551615", 0, UINT64_MAX, &value, &err), 0);
	ck_assert(value == UINT64_MAX);
	ck_assert_int_eq(number_parse("10001", 1, 10000, &value, &err), -ERANGE);
	ck_assert_ptr_nonnull(strstr(err.text, "1 to 10000"));
}
END_TEST

static const struct {
	uint64_t bytes;
	const char *text;
} formats[] = {
	{0, "0B"},
	{1, "1B"},
	{1023, "1023B"},
	{K, "1.0KiB"},
	{K + K / 2, "1.5KiB"},
	{100 * K, "100KiB"},
	{M - 1, "1023KiB"},
	{526 * M, "526MiB"},
	{8 * G, "8.0GiB"},
	{8 * G - 1, "7.9GiB"},
	{99 * G + 999 * M, "99.9GiB"},
	{143771 * M, "140GiB"},
	{T, "1.0TiB"},
	{1ull << 60, "1.0EiB"},
	{UINT64_MAX, "15.9EiB"},
};

START_TEST(a_size_is_shown_short_and_never_as_more_than_it_is)
{
	char text[16];

	ck_assert_str_eq(size_format(formats[_i].bytes, text, sizeof(text)), formats[_i].text);
}
END_TEST

START_TEST(every_size_shown_fits_in_16_bytes_and_reads_back_within_its_last_digit)
{
	srandom(2);
	for (int i = 0; i < 100000; i++) {
		uint64_t bytes =
			((uint64_t)random() << 33 | (uint64_t)random() << 2) >> random_below(64);
		uint64_t back;
		char text[16];

		ck_assert_uint_lt(strlen(size_format(bytes, text, sizeof(text))), 16);
		if (bytes < K || bytes > 1000 * T)
			continue;
		ck_assert_msg(size_parse(text, &back, NULL) == 0, "%s", text);
		ck_assert_msg(back <= bytes && back >= bytes - bytes / 10, "%llu as %s",
			      (unsigned long long)bytes, text);
	}
}
END_TEST

START_TEST(the_locale_of_the_host_program_changes_nothing)
{
	static const char *const locales[] = {"tr_TR.UTF-8", "de_DE.UTF-8", "fa_IR.UTF-8",
					      "C.UTF-8"};

	for (int i = 0; i < COUNT(locales); i++) {
		uint64_t bytes = 0;
		char text[16];

		setlocale(LC_ALL, locales[i]); /* not every host has every one */
		ck_assert_int_eq(size_parse("1.5GIB", &bytes, NULL), 0);
		ck_assert_uint_eq(bytes, G + G / 2);
		ck_assert_int_lt(size_parse("1,5G", &bytes, NULL), 0);
		ck_assert_str_eq(size_format(bytes, text, sizeof(text)), "1.5GiB");
	}
}
END_TEST

START_TEST(a_prefix_stands_before_the_reason_and_both_are_cut_to_one_line)
{
	struct error err;
	char longest[600], quoted[ERROR_QUOTE_BYTES];

	ck_assert_int_eq(error_set(&err, EINVAL, "a\nb\x1b%d", 7), -EINVAL);
	ck_assert_str_eq(err.text, "a?b?7");
	ck_assert_int_eq(error_set(&err, -EPERM, "why"), -EPERM);
	error_prefix(&err, "%s='%s'", "NAME", "value");
	ck_assert_str_eq(err.text, "NAME='value': why");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	error_prefix(&err, "%s", longest);
	ck_assert_uint_lt(strlen(err.text), sizeof(err.text));
	error_set(&err, EINVAL, "%s", longest);
	error_prefix(&err, "short");
	ck_assert_uint_eq(strlen(err.text), sizeof(err.text) - 1);
	ck_assert_uint_eq(strlen(error_quote(longest, quoted)), ERROR_QUOTE_BYTES - 1);
	ck_assert_str_eq(quoted + ERROR_QUOTE_BYTES - 4, "...");
	ck_assert_str_eq(error_quote("a\n\x80\xff", quoted), "a???");
	error_prefix(NULL, "nobody asked");
	ck_assert_int_eq(error_set(NULL, EIO, "nobody asked"), -EIO);
	for (int code = 0; code < 200; code++)
		ck_assert_str_eq(error_text(-code), error_text(code));
	ck_assert_str_eq(error_text(EACCES), "permission denied");
}
END_TEST

START_TEST(errno_is_left_alone)
{
	struct error err;
	uint64_t bytes;

	errno = 1234;
	size_parse("nonsense", &bytes, &err);
	error_prefix(&err, "more");
	ck_assert_int_eq(errno, 1234);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("size");
	TCase *tests = tcase_create("size");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tests, a_size_with_a_unit_is_read_1024_based_in_any_case, 0,
			    COUNT(good_sizes));
	tcase_add_loop_test(tests,
			    what_is_no_size_is_refused_with_the_reason_and_leaves_the_output_alone,
			    0, COUNT(bad_sizes));
	tcase_add_test(tests, a_hundred_thousand_random_texts_are_read_as_the_reference_reads_them);
	tcase_add_test(tests,
		       every_byte_string_of_length_three_is_a_size_or_an_error_with_a_reason);
	tcase_add_test(tests, a_very_long_text_is_refused_without_a_long_message);
	tcase_add_loop_test(tests, a_percentage_is_read_with_or_without_its_sign_and_two_decimals,
			    0, COUNT(good_percents));
	tcase_add_loop_test(tests,
			    a_percentage_outside_0_to_100_or_with_anything_behind_it_is_refused, 0,
			    COUNT(bad_percents));
	tcase_add_test(tests, every_hundredth_of_a_percent_reads_as_itself);
	tcase_add_test(tests, a_whole_number_is_taken_within_its_bounds_only);
	tcase_add_loop_test(tests, a_size_is_shown_short_and_never_as_more_than_it_is, 0,
			    COUNT(formats));
	tcase_add_test(tests,
		       every_size_shown_fits_in_16_bytes_and_reads_back_within_its_last_digit);
	tcase_add_test(tests, the_locale_of_the_host_program_changes_nothing);
	tcase_add_test(tests, a_prefix_stands_before_the_reason_and_both_are_cut_to_one_line);
	tcase_add_test(tests, errno_is_left_alone);
	tcase_set_timeout(tests, 60);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
