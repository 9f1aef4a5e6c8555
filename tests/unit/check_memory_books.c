/* Overhead: what is found again and again, not what one look caught under way; and when to look. */
#include "memory/books.h"
#include "memory_help.h"

#define MS 1000000ull

static uint64_t overhead(struct books *books, uint64_t now, uint64_t least, uint64_t most, int sure)
{
	const struct beyond beyond = {least, most};

	return books_overhead(books, now, &beyond, sure);
}

START_TEST(what_three_looks_find_is_charged)
{
	struct books books = {0};

	ck_assert_uint_eq(overhead(&books, 0, 4 * MIB, 4 * MIB, 0), 0);
	ck_assert_uint_eq(overhead(&books, 0, 4 * MIB, 4 * MIB, 0), 0);
	ck_assert_uint_eq(overhead(&books, 0, 4 * MIB, 4 * MIB, 0), 4 * MIB);
	ck_assert_uint_eq(overhead(&books, 4 * MIB, 4 * MIB, 4 * MIB, 0), 4 * MIB);
}
END_TEST

START_TEST(what_a_sure_look_finds_is_charged_at_once)
{
	struct books books = {0};

	ck_assert_uint_eq(overhead(&books, 0, 4 * MIB, 4 * MIB, 1), 4 * MIB);
}
END_TEST

START_TEST(a_page_that_one_look_caught_is_not)
{
	struct books books = {0};

	for (int i = 0; i < 10; i++)
		ck_assert_uint_eq(overhead(&books, 0, i % 3 ? 0 : 2 * MIB, i % 3 ? 0 : 2 * MIB, 0),
				  0);
}
END_TEST

START_TEST(a_lot_is_charged_at_once)
{
	struct books books = {0};

	ck_assert_uint_eq(overhead(&books, 0, 100 * MIB, 100 * MIB, 0), 100 * MIB);
}
END_TEST

START_TEST(less_is_given_back_at_once)
{
	struct books books = {0};

	ck_assert_uint_eq(overhead(&books, 100 * MIB, 1 * MIB, 1 * MIB, 0), 1 * MIB);
	ck_assert_uint_eq(overhead(&books, 100 * MIB, 0, 0, 0), 0);
}
END_TEST

START_TEST(what_managed_memory_may_hide_stays_charged_but_never_a_lot)
{
	struct books books = {0};

	ck_assert_uint_eq(overhead(&books, 8 * MIB, 0, 500 * MIB, 1), 8 * MIB);
	ck_assert_uint_eq(overhead(&books, 8 * MIB, 0, 3 * MIB, 1), 3 * MIB);
	ck_assert_uint_eq(overhead(&books, 100 * MIB, 0, 500 * MIB, 1), BOOKS_CERTAIN);
}
END_TEST

START_TEST(a_new_context_is_looked_at_once_and_then_each_time_half_of_the_room_is_gone)
{
	struct books books = {0};

	ck_assert(!books_is_near(&books, 0)); /* no context: no figure */
	atomic_store(&books.near_bytes, BOOKS_YOUNG);
	ck_assert(books_is_near(&books, UINT64_MAX));
	ck_assert(books_is_due(&books, UINT64_MAX, 1));
	books_looked(&books, 1000 * MIB, 0, 1000 * MS);
	ck_assert(!books_is_near(&books, 500 * MIB));
	ck_assert(books_is_near(&books, 499 * MIB));
	ck_assert(books_is_due(&books, 499 * MIB, 1001 * MS));
}
END_TEST

START_TEST(close_to_the_cap_a_look_is_good_until_it_is_old_or_too_much_is_gone)
{
	struct books books = {0};

	books_looked(&books, 40 * MIB, 0, 1000 * MS);
	ck_assert(books_is_near(&books, BOOKS_NEAR - 1));
	ck_assert(!books_is_due(&books, 40 * MIB, 1001 * MS));
	ck_assert(!books_is_due(&books, 20 * MIB, 1001 * MS));
	ck_assert(books_is_due(&books, 15 * MIB, 1001 * MS));
	ck_assert(books_is_due(&books, 40 * MIB, 1020 * MS));
	/* Where there is hardly anything left, all that takes some of it looks. */
	books_looked(&books, 10 * MIB, 0, 1000 * MS);
	ck_assert(!books_is_due(&books, 10 * MIB, 1001 * MS));
	ck_assert(books_is_due(&books, 9 * MIB, 1001 * MS));
	/* At the cap itself only time counts: a program may allocate and free there for ever. */
	books_looked(&books, 0, 0, 1000 * MS);
	ck_assert(!books_is_due(&books, 0, 1001 * MS));
	ck_assert(books_is_due(&books, 0, 1020 * MS));
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("books");

	tcase_add_test(tcase, what_three_looks_find_is_charged);
	tcase_add_test(tcase, what_a_sure_look_finds_is_charged_at_once);
	tcase_add_test(tcase, a_page_that_one_look_caught_is_not);
	tcase_add_test(tcase, a_lot_is_charged_at_once);
	tcase_add_test(tcase, less_is_given_back_at_once);
	tcase_add_test(tcase, what_managed_memory_may_hide_stays_charged_but_never_a_lot);
	tcase_add_test(tcase,
		       a_new_context_is_looked_at_once_and_then_each_time_half_of_the_room_is_gone);
	tcase_add_test(tcase, close_to_the_cap_a_look_is_good_until_it_is_old_or_too_much_is_gone);
	return help_run("memory books", tcase);
}
