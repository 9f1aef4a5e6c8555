/*
 * Values and device lists (src/base/spec.c): what is accepted means exactly this for each device,
 * and whatever is not accepted can never end as "no cap".
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quota.h"
#include "base/spec.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define M	     (1ull << 20)
#define G	     (1ull << 30)
#define DEVICE_BYTES (80 * G)
#define UUID_A	     "GPU-8f3a1c52-0000-1111-2222-333344445555"
#define UUID_B	     "GPU-8f9b1c52-0000-1111-2222-333344445555"
#define UUID_MIG     "MIG-00000000-aaaa-bbbb-cccc-ddddeeeeffff"

static const struct {
	const char *list;
	unsigned index;
	const char *uuid;
	uint64_t bytes;
} good_lists[] = {
	{"8G", 0, UUID_A, 8 * G},
	{"8G", 63, NULL, 8 * G},
	{"none", 0, UUID_A, QUOTA_NONE},
	{"NONE", 0, UUID_A, QUOTA_NONE},
	{"None", 0, UUID_A, QUOTA_NONE},
	{"50%", 0, UUID_A, 40 * G},
	{"100%", 0, UUID_A, DEVICE_BYTES},
	{"0.01%", 0, UUID_A, DEVICE_BYTES / 10000},
	{"0=8G", 0, UUID_A, 8 * G},
	{"0=8G", 1, UUID_A, QUOTA_UNSET},
	{"0=8G,1=4G", 0, UUID_A, 8 * G},
	{"0=8G,1=4G", 1, UUID_A, 4 * G},
	{"0=8G,1=4G", 2, UUID_A, QUOTA_UNSET},
	{"8G,1=4G", 0, UUID_A, 8 * G},
	{"8G,1=4G", 1, UUID_A, 4 * G},
	{"1=4G,8G", 1, UUID_A, 4 * G},
	{"1=4G,8G", 0, UUID_A, 8 * G},
	{"none,1=4G", 0, UUID_A, QUOTA_NONE},
	{"none,1=4G", 1, UUID_A, 4 * G},
	{"4G,1=none", 1, UUID_A, QUOTA_NONE},
	{"0=50%,1=25%", 1, UUID_A, 20 * G},
	{"00=8G", 0, UUID_A, 8 * G},
	{"1023=8G", 1023, UUID_A, 8 * G},
	{UUID_A "=8G", 5, UUID_A, 8 * G},
	{UUID_A "=8G", 5, UUID_B, QUOTA_UNSET},
	{UUID_A "=8G", 5, NULL, QUOTA_UNSET},
	{"GPU-8f3a=8G", 5, UUID_A, 8 * G},
	{"gpu-8F3A=8G", 5, UUID_A, 8 * G},
	{"GPU-8f3a=8G", 5, UUID_B, QUOTA_UNSET},
	{"GPU-8f=8G,GPU-8f9b=4G", 5, UUID_A, 8 * G},
	{"GPU-8f=8G,GPU-8f9b=4G", 5, UUID_B, 4 * G},
	{"GPU-8f9b=4G,GPU-8f=8G", 5, UUID_B, 8 * G},
	{"MIG-00000000=2G,8G", 0, UUID_MIG, 2 * G},
	{"MIG-00000000=2G,8G", 0, UUID_A, 8 * G},
	{"2G,GPU-8f3a=1G,0=3G", 0, UUID_A, 3 * G},
	{"2G,0=3G,GPU-8f3a=1G", 0, UUID_A, 1 * G},
	{"0=1.5G", 0, UUID_A, G + G / 2},
};

START_TEST(a_list_means_the_last_specific_entry_and_else_the_one_for_every_device)
{
	struct spec_list list;
	struct error err = {""};
	uint64_t bytes;

	ck_assert_msg(spec_parse_list(SPEC_MEM, good_lists[_i].list, &list, &err) == 0, "'%s': %s",
		      good_lists[_i].list, err.text);
	bytes = spec_bytes(spec_find(&list, good_lists[_i].index, good_lists[_i].uuid),
			   DEVICE_BYTES);
	ck_assert_msg(bytes == good_lists[_i].bytes, "'%s' on %u %s: %llu", good_lists[_i].list,
		      good_lists[_i].index, good_lists[_i].uuid ? good_lists[_i].uuid : "-",
		      (unsigned long long)bytes);
}
END_TEST

static const struct {
	const char *list;
	const char *reason;
} bad_lists[] = {
	{"", "empty"},
	{",", "empty entry"},
	{"8G,", "empty entry"},
	{",8G", "empty entry"},
	{"8G,,1=4G", "empty entry"},
	{"=", "no device"},
	{"=8G", "no device"},
	{"0=", "no value"},
	{"0=8G,1=", "no value"},
	{"GPU-8f3a=", "no value"},
	{"0=8G,0=4G", "device 0 twice"},
	{"0=8G,00=4G", "device 0 twice"},
	{"0=8G,0=8G", "device 0 twice"},
	{"8G,4G", "two values"},
	{"8G,8G", "two values"},
	{"8G,1=4G,none", "two values"},
	{"GPU-8f3a=8G,GPU-8f3a=4G", "twice"},
	{"GPU-8f3a=8G,gpu-8F3A=4G", "twice"},
	{"0=8", "no unit"},
	{"8G,1=4", "no unit"},
	{"0=8G,1=0", "zero"},
	{"0=8G,1=-1", "negative"},
	{"0=abc", "not a number"},
	{"0=8G=4G", "unknown unit"},
	{"0==8G", "not a number"},
	{"x=8G", "unknown device 'x'"},
	{"-1=8G", "unknown device '-1'"},
	{"+1=8G", "unknown device"},
	{"1.0=8G", "unknown device"},
	{"0x0=8G", "unknown device"},
	{"*=8G", "unknown device"},
	{"all=8G", "unknown device"},
	{"0-3=8G", "unknown device"},
	{"cuda:0=8G", "unknown device"},
	{"1024=8G", "index above"},
	{"4294967296=8G", "index above"},
	{"18446744073709551616=8G", "index above"},
	{"GPU-=8G", "no UUID"},
	{"MIG-=8G", "no UUID"},
	{"GPU-8f3a*=8G", "no UUID"},
	{"GPU-xyz=8G", "no UUID"},
	{"GPU-../../etc=8G", "no UUID"},
	{"GPU=8G", "unknown device"},
	{"8f3a1c52-0000-1111-2222-333344445555=8G", "unknown device"},
	{"MIG-GPU-8f3a1c52-0000-1111-2222-333344445555/1/0=8G", "longer than a UUID"},
	{"GPU-8f3a1c52-0000-1111-2222-333344445555-0000000000=8G", "longer than a UUID"},
	{"0=8G, 1=4G", "blank"},
	{"0 =8G", "blank"},
	{" 0=8G", "blank"},
	{"0=8G\n", "blank"},
	{"0=8G;1=4G", "unknown unit"},
	{"0:8G", "unknown unit"},
	{"8G:4G", "unknown unit"},
	{"none%", "not a number"},
	{"nonee", "not a number"},
	{"unlimited", "not a number"},
	{"max", "not a number"},
	{"0%", "zero"},
	{"101%", "more than 100"},
	{"-50%", "negative"},
	{"50%%", "unknown '%%'"},
	{"%", "not a number"},
	{"0=none,1=0%", "zero"},
	{"50.123%", "decimals"},
};

START_TEST(a_malformed_list_is_refused_with_the_reason)
{
	struct spec_list list;
	struct error err = {""};
	int r = spec_parse_list(SPEC_MEM, bad_lists[_i].list, &list, &err);

	ck_assert_msg(r < 0, "'%s' was accepted", bad_lists[_i].list);
	ck_assert_msg(strstr(err.text, bad_lists[_i].reason) != NULL, "'%s': %s",
		      bad_lists[_i].list, err.text);
	ck_assert_int_eq(spec_parse_list(SPEC_MEM, bad_lists[_i].list, &list, NULL), r);
}
END_TEST

static const struct {
	enum spec_kind kind;
	const char *text;
	uint64_t value; /* as spec_sm_bp() or spec_number() gives it; 0 = refused */
} other_kinds[] = {
	{SPEC_SM, "30", 3000},
	{SPEC_SM, "30%", 3000},
	{SPEC_SM, "12.5", 1250},
	{SPEC_SM, "100", QUOTA_SM_NONE},
	{SPEC_SM, "100%", QUOTA_SM_NONE},
	{SPEC_SM, "none", QUOTA_SM_NONE},
	{SPEC_SM, "0.01", 1},
	{SPEC_SM, "0", 0},
	{SPEC_SM, "101", 0},
	{SPEC_SM, "-1", 0},
	{SPEC_SM, "abc", 0},
	{SPEC_SM, "30x", 0},
	{SPEC_SM, "", 0},
	{SPEC_SM, "30G", 0},
	{SPEC_SM, "off", 0},
	{SPEC_SM, "0.5.5", 0},
	{SPEC_WEIGHT, "1", 1},
	{SPEC_WEIGHT, "100", 100},
	{SPEC_WEIGHT, "10000", 10000},
	{SPEC_WEIGHT, "0", 0},
	{SPEC_WEIGHT, "10001", 0},
	{SPEC_WEIGHT, "-1", 0},
	{SPEC_WEIGHT, "1.5", 0},
	{SPEC_WEIGHT, "none", 0},
	{SPEC_WEIGHT, "", 0},
	{SPEC_WEIGHT, "100%", 0},
	{SPEC_WEIGHT, "4294967396", 0}, /* 100 modulo 2^32 */
	{SPEC_PRIORITY, "high", PRIORITY_HIGH},
	{SPEC_PRIORITY, "normal", PRIORITY_NORMAL},
	{SPEC_PRIORITY, "low", PRIORITY_LOW},
	{SPEC_PRIORITY, "High", PRIORITY_HIGH},
	{SPEC_PRIORITY, "hi", 0},
	{SPEC_PRIORITY, "highest", 0},
	{SPEC_PRIORITY, "1", 0},
	{SPEC_PRIORITY, "", 0},
	{SPEC_PRIORITY, "none", 0},
};

START_TEST(sm_caps_weights_and_priorities_are_read_and_everything_else_refused)
{
	const char *text = other_kinds[_i].text;
	struct spec spec = {.which = SPEC_ALL};
	struct error err = {""};
	int r = spec_parse_value(other_kinds[_i].kind, text, &spec, &err);

	if (!other_kinds[_i].value) {
		ck_assert_msg(r < 0 && err.text[0], "'%s' was accepted", text);
		ck_assert_int_eq(spec.unit, SPEC_UNSET);
		return;
	}
	ck_assert_msg(r == 0, "'%s': %s", text, err.text);
	ck_assert_uint_eq(other_kinds[_i].kind == SPEC_SM ? spec_sm_bp(&spec) : spec_number(&spec),
			  other_kinds[_i].value);
}
END_TEST

START_TEST(as_many_entries_as_fit_are_read_and_one_more_is_refused)
{
	char text[CONFIG_DEVICES * 16 + 32] = "";
	struct spec_list list;
	struct error err;

	for (unsigned i = 0; i < CONFIG_DEVICES; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u=%uG", i ? "," : "",
			 i, i + 1);
	ck_assert_int_eq(spec_parse_list(SPEC_MEM, text, &list, &err), 0);
	ck_assert_uint_eq(list.count, CONFIG_DEVICES);
	for (unsigned i = 0; i < CONFIG_DEVICES; i++)
		ck_assert(spec_bytes(spec_find(&list, i, NULL), G) == (i + 1) * G);
	strcat(text, ",8G");
	ck_assert_int_eq(spec_parse_list(SPEC_MEM, text, &list, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "more than 64 entries"));
}
END_TEST

START_TEST(an_entry_too_long_to_be_right_is_refused)
{
	static char text[70000];
	struct spec_list list;

	memset(text, '8', sizeof(text) - 2);
	text[sizeof(text) - 2] = 'G';
	ck_assert_int_lt(spec_parse_list(SPEC_MEM, text, &list, NULL), 0);
	memset(text, ',', sizeof(text) - 1);
	ck_assert_int_lt(spec_parse_list(SPEC_MEM, text, &list, NULL), 0);
	memset(text, '=', sizeof(text) - 1);
	ck_assert_int_lt(spec_parse_list(SPEC_MEM, text, &list, NULL), 0);
}
END_TEST

START_TEST(a_percent_of_any_device_is_exact_and_never_zero)
{
	static const uint64_t devices[] = {
		0, 1, 99, 9999, 10000, 10001, G, 143771 * M, 80 * G + 4096, 1ull << 60, UINT64_MAX};

	for (int i = 0; i < COUNT(devices); i++) {
		for (uint64_t bp = 1; bp <= 10000; bp += bp < 10 ? 1 : 333) {
			struct spec spec = {.unit = SPEC_PERCENT_BP, .value = bp};
			unsigned __int128 exact = (unsigned __int128)devices[i] * bp / 10000;
			uint64_t bytes = spec_bytes(&spec, devices[i]);

			ck_assert(bytes != QUOTA_UNSET);
			if (exact)
				ck_assert_msg(bytes == (uint64_t)exact, "%llu bp of %llu",
					      (unsigned long long)bp,
					      (unsigned long long)devices[i]);
		}
	}
}
END_TEST

static void random_list(char *text, size_t bytes)
{
	static const char *const parts[] = {
		"8G", "4096m",	      "50%",	   "none",    "0",	"-1", "8",   "abc", "0=",
		"1=", "01=",	      "GPU-8f3a=", "gpu-8F=", "MIG-0=", "=",  ",",   ",",   ",",
		" ",  "99999999999T", "1.5",	   "1.5T",    "\n",	"%",  "0x1", "\xff"};
	size_t used = 0;

	text[0] = '\0';
	for (long n = random() % 7; n >= 0; n--) {
		const char *part = parts[random() % COUNT(parts)];
		size_t length = strlen(part);

		if (used + length + 1 > bytes)
			return;
		memcpy(text + used, part, length + 1);
		used += length;
	}
}

START_TEST(a_random_list_is_either_an_error_or_a_cap_for_each_device_it_names)
{
	int accepted = 0;

	srandom(3);
	for (int round = 0; round < 200000; round++) {
		char text[128];
		struct spec_list list;
		struct error err = {""};

		random_list(text, sizeof(text));
		if (spec_parse_list(SPEC_MEM, text, &list, &err) < 0) {
			ck_assert_msg(err.text[0] != '\0', "'%s'", text);
			continue;
		}
		accepted++;
		ck_assert_msg(list.count >= 1 && !strpbrk(text, " \n\xff"), "'%s'", text);
		for (unsigned i = 0; i < list.count; i++) {
			const struct spec *spec = &list.specs[i];
			unsigned index = spec->which == SPEC_INDEX ? spec->index : 7;
			const struct spec *found = spec_find(
				&list, index, spec->which == SPEC_UUID ? spec->uuid : NULL);

			ck_assert_msg(found != NULL, "'%s'", text);
			ck_assert_msg(spec_bytes(found, 0) != QUOTA_UNSET, "'%s'", text);
		}
	}
	ck_assert_int_gt(accepted, 5000);
}
END_TEST

START_TEST(what_was_never_set_says_nothing)
{
	struct spec spec = {.which = SPEC_ALL};
	struct spec_list list = {.count = 0};

	ck_assert_ptr_null(spec_find(&list, 0, UUID_A));
	ck_assert_uint_eq(spec_bytes(NULL, G), QUOTA_UNSET);
	ck_assert_uint_eq(spec_bytes(&spec, G), QUOTA_UNSET);
	ck_assert_uint_eq(spec_sm_bp(NULL), QUOTA_UNSET);
	ck_assert_uint_eq(spec_number(NULL), QUOTA_UNSET);
	ck_assert_uint_eq(spec_number(&spec), QUOTA_UNSET);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("spec");
	TCase *tests = tcase_create("spec");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tests,
			    a_list_means_the_last_specific_entry_and_else_the_one_for_every_device,
			    0, COUNT(good_lists));
	tcase_add_loop_test(tests, a_malformed_list_is_refused_with_the_reason, 0,
			    COUNT(bad_lists));
	tcase_add_loop_test(tests,
			    sm_caps_weights_and_priorities_are_read_and_everything_else_refused, 0,
			    COUNT(other_kinds));
	tcase_add_test(tests, as_many_entries_as_fit_are_read_and_one_more_is_refused);
	tcase_add_test(tests, an_entry_too_long_to_be_right_is_refused);
	tcase_add_test(tests, a_percent_of_any_device_is_exact_and_never_zero);
	tcase_add_test(tests, a_random_list_is_either_an_error_or_a_cap_for_each_device_it_names);
	tcase_add_test(tests, what_was_never_set_says_nothing);
	tcase_set_timeout(tests, 60);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
