/* Overhead: what is found again and again, not what one look caught under way. */
#include "memory/books.h"
#include "memory_help.h"

START_TEST(what_three_looks_find_is_charged)
{
	struct books books = {0};

	ck_assert_uint_eq(books_overhead(&books, 0, 526 * MIB, 530 * MIB), 0);
	ck_assert_uint_eq(books_overhead(&books, 0, 526 * MIB, 530 * MIB), 0);
	ck_assert_uint_eq(books_overhead(&books, 0, 526 * MIB, 530 * MIB), 4 * MIB);
	ck_assert_uint_eq(books_overhead(&books, 4 * MIB, 526 * MIB, 530 * MIB), 4 * MIB);
}
END_TEST

START_TEST(a_page_that_one_look_caught_is_not)
{
	struct books books = {0};

	for (int i = 0; i < 10; i++)
		ck_assert_uint_eq(books_overhead(&books, 0, 526 * MIB, (i % 3 ? 526 : 528) * MIB),
				  0);
}
END_TEST

START_TEST(a_lot_is_charged_at_once)
{
	struct books books = {0};

	ck_assert_uint_eq(books_overhead(&books, 0, 526 * MIB, 626 * MIB), 100 * MIB);
}
END_TEST

START_TEST(less_is_given_back_at_once)
{
	struct books books = {0};

	ck_assert_uint_eq(books_overhead(&books, 100 * MIB, 526 * MIB, 527 * MIB), 1 * MIB);
	ck_assert_uint_eq(books_overhead(&books, 100 * MIB, 526 * MIB, 500 * MIB), 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("books");

	tcase_add_test(tcase, what_three_looks_find_is_charged);
	tcase_add_test(tcase, a_page_that_one_look_caught_is_not);
	tcase_add_test(tcase, a_lot_is_charged_at_once);
	tcase_add_test(tcase, less_is_given_back_at_once);
	return help_run("memory books", tcase);
}
