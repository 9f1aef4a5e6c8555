/*
 * Which names and addresses are ours: src/driver/lookup.c, names.c.
 */
#include <check.h>
#include <pthread.h>
#include <stdint.h>

#include "driver/lookup.h"
#include "driver/names.h"

static char real_code[4096], wrapper_code[4096];

START_TEST(an_address_that_was_added_is_swapped_and_no_other)
{
	for (int i = 0; i < 1000; i++)
		lookup_add(&real_code[i * 4], &wrapper_code[i * 4]);
	for (int i = 0; i < 4000; i++)
		ck_assert_ptr_eq(lookup_swap(&real_code[i]),
				 i % 4 ? &real_code[i] : &wrapper_code[i]);
	ck_assert_ptr_eq(lookup_swap(&wrapper_code[0]), &wrapper_code[0]);
}
END_TEST

START_TEST(null_stays_null)
{
	lookup_add(NULL, wrapper_code);
	ck_assert_ptr_null(lookup_swap(NULL));
}
END_TEST

START_TEST(of_two_wrappers_of_one_address_the_first_stays)
{
	lookup_add(&real_code[1], &wrapper_code[1]);
	lookup_add(&real_code[1], &wrapper_code[2]);
	ck_assert_ptr_eq(lookup_swap(&real_code[1]), &wrapper_code[1]);
}
END_TEST

START_TEST(a_full_table_answers_what_it_has)
{
	for (int i = 0; i < 4000; i++)
		lookup_add(&real_code[i], &wrapper_code[i]);
	ck_assert_ptr_eq(lookup_swap(&real_code[0]), &wrapper_code[0]);
	ck_assert_ptr_eq(lookup_swap(wrapper_code), wrapper_code);
}
END_TEST

static void *add_all(void *unused)
{
	for (int i = 0; i < 1000; i++)
		lookup_add(&real_code[i], &wrapper_code[i]);
	return unused;
}

START_TEST(threads_that_add_the_same_pairs_agree)
{
	pthread_t thread[8];

	for (int i = 0; i < 8; i++)
		pthread_create(&thread[i], NULL, add_all, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 1000; i++)
		ck_assert_ptr_eq(lookup_swap(&real_code[i]), &wrapper_code[i]);
}
END_TEST

START_TEST(names_are_matched_whole)
{
	ck_assert_int_eq(name_kind("cuInit"), NAME_CUDA);
	ck_assert_int_eq(name_kind("cuMemAlloc_v2"), NAME_CUDA);
	ck_assert_int_eq(name_kind("cuGetProcAddress_v2"), NAME_CUDA);
	ck_assert_int_eq(name_kind("nvmlDeviceGetMemoryInfo_v2"), NAME_NVML);
	ck_assert_int_eq(name_kind("dlsym"), NAME_LOADER);
	ck_assert_int_eq(name_kind("dlvsym"), NAME_LOADER);
	ck_assert_int_eq(name_kind("dlopen"), NAME_LOADER);
}
END_TEST

static const char *const others[] = {
	"",
	"c",
	"cu",
	"cuI",
	"cuInit2",
	"cuInit ",
	"cuinit",
	"cudaMalloc",
	"cudnnCreate",
	"cublasCreate_v2",
	"curl_easy_init",
	"cuMemAlloc_v9",
	"nvmlInit_v2",
	"nvmlDevice",
	"nvrtcVersion",
	"dlclose",
	"dl",
	"malloc",
};

START_TEST(names_of_other_libraries_are_not_ours)
{
	ck_assert_int_eq(name_kind(others[_i]), NAME_OTHER);
}
END_TEST

START_TEST(no_name_is_no_name)
{
	ck_assert_int_eq(name_kind(NULL), NAME_OTHER);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("lookup");
	TCase *tests = tcase_create("lookup");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, an_address_that_was_added_is_swapped_and_no_other);
	tcase_add_test(tests, null_stays_null);
	tcase_add_test(tests, of_two_wrappers_of_one_address_the_first_stays);
	tcase_add_test(tests, a_full_table_answers_what_it_has);
	tcase_add_test(tests, threads_that_add_the_same_pairs_agree);
	tcase_add_test(tests, names_are_matched_whole);
	tcase_add_loop_test(tests, names_of_other_libraries_are_not_ours, 0,
			    (int)(sizeof(others) / sizeof(others[0])));
	tcase_add_test(tests, no_name_is_no_name);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
