/*
 * Merging quotas (src/base/quota.c): no source that says less, or "none", lifts what another one
 * set.
 */
#include <check.h>
#include <stdlib.h>

#include "base/quota.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const struct {
	uint64_t a, b, min;
} caps[] = {
	{QUOTA_UNSET, QUOTA_UNSET, QUOTA_UNSET},
	{QUOTA_UNSET, 8, 8},
	{8, QUOTA_UNSET, 8},
	{QUOTA_UNSET, QUOTA_NONE, QUOTA_NONE},
	{QUOTA_NONE, QUOTA_UNSET, QUOTA_NONE},
	{QUOTA_NONE, QUOTA_NONE, QUOTA_NONE},
	{QUOTA_NONE, 8, 8},
	{8, QUOTA_NONE, 8},
	{8, 4, 4},
	{4, 8, 4},
	{8, 8, 8},
	{1, QUOTA_NONE - 1, 1},
};

START_TEST(the_smaller_cap_wins_and_unset_or_none_lift_nothing)
{
	struct quota a = {.mem_bytes = caps[_i].a, .mem_process_bytes = caps[_i].b};
	struct quota b = {.mem_bytes = caps[_i].b, .mem_process_bytes = caps[_i].a};
	struct quota min = quota_min(a, b);

	ck_assert(min.mem_bytes == caps[_i].min && min.mem_process_bytes == caps[_i].min);
	min = quota_strictest(a, b);
	ck_assert(min.mem_bytes == caps[_i].min && min.mem_process_bytes == caps[_i].min);
}
END_TEST

static const struct {
	uint32_t a, b, min;
} shares[] = {
	{0, 0, 0},	    {0, 3000, 3000},
	{3000, 0, 3000},    {0, QUOTA_SM_NONE, QUOTA_SM_NONE},
	{1, 10000, 1},	    {QUOTA_SM_NONE, 3000, 3000},
	{3000, 2999, 2999}, {QUOTA_SM_NONE, QUOTA_SM_NONE, QUOTA_SM_NONE},
};

START_TEST(the_smaller_sm_cap_wins)
{
	struct quota a = {.sm_bp = shares[_i].a}, b = {.sm_bp = shares[_i].b};

	ck_assert_uint_eq(quota_min(a, b).sm_bp, shares[_i].min);
	ck_assert_uint_eq(quota_min(b, a).sm_bp, shares[_i].min);
}
END_TEST

START_TEST(weight_and_priority_come_from_the_stronger_source_that_sets_them)
{
	struct quota strong = {.weight = 300, .priority = PRIORITY_HIGH};
	struct quota weak = {.weight = 50, .priority = PRIORITY_LOW};
	struct quota unset = {0};

	ck_assert_uint_eq(quota_min(strong, weak).weight, 300);
	ck_assert_uint_eq(quota_min(strong, weak).priority, PRIORITY_HIGH);
	ck_assert_uint_eq(quota_min(weak, strong).weight, 50);
	ck_assert_uint_eq(quota_min(unset, weak).weight, 50);
	ck_assert_uint_eq(quota_min(unset, weak).priority, PRIORITY_LOW);
	ck_assert_uint_eq(quota_min(strong, unset).weight, 300);
	ck_assert_uint_eq(quota_strictest(strong, weak).weight, 50);
	ck_assert_uint_eq(quota_strictest(strong, weak).priority, PRIORITY_LOW);
	ck_assert_uint_eq(quota_strictest(strong, unset).priority, PRIORITY_HIGH);
}
END_TEST

START_TEST(a_fallback_fills_only_what_is_unset)
{
	struct quota quota = {.mem_bytes = QUOTA_NONE, .weight = 7};
	struct quota fallback = {
		.mem_bytes = 1, .mem_process_bytes = 2, .sm_bp = 3, .weight = 4, .priority = 3};
	struct quota filled = quota_fill(quota, fallback);

	ck_assert(filled.mem_bytes == QUOTA_NONE);
	ck_assert_uint_eq(filled.mem_process_bytes, 2);
	ck_assert_uint_eq(filled.sm_bp, 3);
	ck_assert_uint_eq(filled.weight, 7);
	ck_assert_uint_eq(filled.priority, 3);
}
END_TEST

START_TEST(one_set_field_makes_a_quota)
{
	const struct quota fields[] = {{.mem_bytes = 1},
				       {.mem_process_bytes = QUOTA_NONE},
				       {.sm_bp = 1},
				       {.weight = 1},
				       {.priority = PRIORITY_LOW}};
	struct quota unset = {0};

	ck_assert_int_eq(quota_any(&unset), 0);
	for (int i = 0; i < COUNT(fields); i++)
		ck_assert_int_eq(quota_any(&fields[i]), 1);
}
END_TEST

START_TEST(merging_is_associative_and_never_gives_more_than_either_side)
{
	srandom(4);
	for (int round = 0; round < 100000; round++) {
		uint64_t values[3];
		struct quota q[3] = {{0}};

		for (int i = 0; i < 3; i++) {
			values[i] = random() % 4 == 0	? QUOTA_UNSET
				    : random() % 4 == 0 ? QUOTA_NONE
							: (uint64_t)random();
			q[i].mem_bytes = values[i];
		}
		ck_assert(quota_min(quota_min(q[0], q[1]), q[2]).mem_bytes ==
			  quota_min(q[0], quota_min(q[1], q[2])).mem_bytes);
		for (int i = 0; i < 3; i++)
			if (values[i] != QUOTA_UNSET)
				ck_assert(quota_min(q[i], q[(i + 1) % 3]).mem_bytes <= values[i]);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("quota");
	TCase *tests = tcase_create("quota");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tests, the_smaller_cap_wins_and_unset_or_none_lift_nothing, 0,
			    COUNT(caps));
	tcase_add_loop_test(tests, the_smaller_sm_cap_wins, 0, COUNT(shares));
	tcase_add_test(tests, weight_and_priority_come_from_the_stronger_source_that_sets_them);
	tcase_add_test(tests, a_fallback_fills_only_what_is_unset);
	tcase_add_test(tests, one_set_field_makes_a_quota);
	tcase_add_test(tests, merging_is_associative_and_never_gives_more_than_either_side);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
