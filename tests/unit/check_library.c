/*
 * Mapped objects and the tables of real functions: src/base/object.c, library.c, real.c.
 */
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <string.h>

#include "driver/library.h"
#include "driver/loader.h"
#include "base/object.h"
#include "driver/real.h"

/* The functions looked for are ones that no sanitizer replaces. */
START_TEST(an_object_is_found_by_what_lies_in_it)
{
	struct object object;
	int on_stack;

	ck_assert_int_eq(object_of_address((void *)gnu_get_libc_version, &object), 0);
	ck_assert_str_eq(object.soname, "libc.so.6");
	ck_assert(object_holds(&object, (void *)gnu_get_libc_version));
	ck_assert(!object_holds(&object, &on_stack));
	ck_assert_int_eq(object_of_address(&on_stack, &object), -ENOENT);
	ck_assert_int_eq(object_of_address(NULL, &object), -ENOENT);
}
END_TEST

START_TEST(the_program_is_found)
{
	struct object object;

	ck_assert_int_eq(object_program(&object), 0);
	ck_assert(object_holds(&object, (void *)&real));
}
END_TEST

START_TEST(an_object_is_found_by_its_soname)
{
	struct object object;

	ck_assert_int_eq(object_by_soname("libc.so.6", &object), 0);
	ck_assert(object_holds(&object, (void *)gnu_get_libc_version));
	ck_assert_int_eq(object_by_soname("libnothing.so.1", &object), -ENOENT);
}
END_TEST

/* Against the C library's own answer, for names that are not chosen at run time (IFUNC). */
static const char *const libc_names[] = {"strtol", "getenv", "malloc",
					 "qsort",  "open",   "dl_iterate_phdr"};

START_TEST(a_symbol_is_where_dlsym_finds_it)
{
	struct object object;

	ck_assert_int_eq(object_by_soname("libc.so.6", &object), 0);
	ck_assert_ptr_eq(object_symbol(&object, libc_names[_i]),
			 dlsym(dlopen("libc.so.6", RTLD_NOW), libc_names[_i]));
	/* The same through the older hash table, where the object has one. */
	if (object.hash) {
		object.gnu_hash = NULL;
		ck_assert_ptr_eq(object_symbol(&object, libc_names[_i]),
				 dlsym(dlopen("libc.so.6", RTLD_NOW), libc_names[_i]));
	}
}
END_TEST

START_TEST(what_an_object_does_not_define_is_not_found)
{
	struct object object;

	ck_assert_int_eq(object_by_soname("libc.so.6", &object), 0);
	ck_assert_ptr_null(object_symbol(&object, "cuInit"));
	ck_assert_ptr_null(object_symbol(&object, ""));
	/* Used by libc, defined by the loader. */
	ck_assert_ptr_null(object_symbol(&object, "__tls_get_addr"));
}
END_TEST

START_TEST(the_loaders_functions_are_found_without_dlsym)
{
	ck_assert_ptr_nonnull((void *)loader_dlsym());
	ck_assert_ptr_eq(loader_dlsym()(RTLD_DEFAULT, "gnu_get_libc_version"),
			 (void *)gnu_get_libc_version);
	ck_assert_ptr_nonnull((void *)loader_dlvsym());
	ck_assert_ptr_nonnull((void *)loader_dlopen());
	ck_assert_ptr_null(loader_next("no_such_function"));
}
END_TEST

START_TEST(without_a_driver_every_entry_can_be_called)
{
	CUdeviceptr at = 7;

	ck_assert_int_eq(real_find(), -ENOENT);
	ck_assert_int_eq(real.cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
	ck_assert_int_eq(real.cuMemAlloc_v2(&at, 1), CUDA_ERROR_NOT_INITIALIZED);
	ck_assert_uint_eq(at, 7);
	ck_assert(!REAL_HAS(cuInit));
	ck_assert_ptr_null((void *)real.cuDriverGetVersion);
}
END_TEST

/* A driver of one function that shows its arguments. */
static unsigned long long seen[6];

static CUresult pretend_alloc(CUdeviceptr *at, size_t bytes)
{
	seen[0] = bytes;
	*at = 4096;
	return CUDA_SUCCESS;
}

static void *resolve_one(void *handle, const char *name)
{
	(void)handle;
	return strcmp(name, "cuMemAlloc_v2") == 0 ? (void *)pretend_alloc : NULL;
}

START_TEST(a_driver_of_ones_own_can_be_handed_in)
{
	CUdeviceptr at = 0;

	ck_assert_uint_eq(real_load(NULL, resolve_one), 1);
	ck_assert(REAL_HAS(cuMemAlloc_v2));
	ck_assert(!REAL_HAS(cuMemFree_v2));
	ck_assert_int_eq(real.cuMemAlloc_v2(&at, 512), CUDA_SUCCESS);
	ck_assert_uint_eq(at, 4096);
	ck_assert_uint_eq(seen[0], 512);
}
END_TEST

/* This program as a library: found by an address, since its marks are exported by no soname. */
static const char *const no_marks[] = {"this_is_exported_by_nobody", NULL};
static const char *const names[] = {"gnu_get_libc_version", "no_such_function"};
static _Atomic(void *) entries[2];

START_TEST(another_library_is_not_taken_for_the_one_that_is_sought)
{
	struct library library = {.soname = "libnothing.so.1",
				  .marks = no_marks,
				  .names = names,
				  .count = 2,
				  .entries = entries};

	ck_assert_int_eq(library_find(&library), -ENOENT);
	ck_assert_int_eq(library_find_at(&library, (void *)gnu_get_libc_version), -ENOENT);
	ck_assert(!library_holds(&library, (void *)gnu_get_libc_version));
}
END_TEST

START_TEST(a_library_is_known_by_soname_or_by_what_it_exports)
{
	static const char *const marks[] = {"gnu_get_libc_version", "gnu_get_libc_release", NULL};
	struct library library = {.soname = "libnothing.so.1",
				  .marks = marks,
				  .names = names,
				  .count = 2,
				  .entries = entries};

	ck_assert_int_eq(library_find_at(&library, (void *)gnu_get_libc_version), 0);
	ck_assert(library_holds(&library, (void *)gnu_get_libc_version));
	ck_assert_ptr_eq(entries[0], (void *)gnu_get_libc_version);
	ck_assert_ptr_null(entries[1]);
	ck_assert(library_has(&library, entries[0]));
	ck_assert(!library_has(&library, entries[1]));
	ck_assert_int_eq(library_find(&library), 0);
}
END_TEST

START_TEST(a_second_copy_is_told_from_the_first)
{
	static const char *const marks[] = {NULL};
	struct library library = {.soname = "libc.so.6",
				  .marks = marks,
				  .names = names,
				  .count = 2,
				  .entries = entries};

	ck_assert_int_eq(library_find(&library), 0);
	ck_assert_int_eq(library_find_at(&library, (void *)&real), -EBUSY);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("library");
	TCase *tests = tcase_create("library");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, an_object_is_found_by_what_lies_in_it);
	tcase_add_test(tests, the_program_is_found);
	tcase_add_test(tests, an_object_is_found_by_its_soname);
	tcase_add_loop_test(tests, a_symbol_is_where_dlsym_finds_it, 0,
			    (int)(sizeof(libc_names) / sizeof(libc_names[0])));
	tcase_add_test(tests, what_an_object_does_not_define_is_not_found);
	tcase_add_test(tests, the_loaders_functions_are_found_without_dlsym);
	tcase_add_test(tests, without_a_driver_every_entry_can_be_called);
	tcase_add_test(tests, a_driver_of_ones_own_can_be_handed_in);
	tcase_add_test(tests, another_library_is_not_taken_for_the_one_that_is_sought);
	tcase_add_test(tests, a_library_is_known_by_soname_or_by_what_it_exports);
	tcase_add_test(tests, a_second_copy_is_told_from_the_first);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
