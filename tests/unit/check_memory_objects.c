/* Virtual memory: two counts, and the charge lives until both are zero. */
#include <errno.h>

#include "memory_help.h"

static struct charges *table;

static void begin(void)
{
	table = charges_new();
	ck_assert_int_eq(object_create(table, 1, 100, 0, 2 * GIB, 0), 0);
}

static void end(void)
{
	ck_assert_uint_eq(charges_count(table), 0);
	charges_destroy(table);
}

static int map(uint64_t handle, uint64_t at, uint64_t bytes)
{
	struct object_end replaced;
	int result = object_map(table, handle, at, bytes, 0, &replaced);

	ck_assert_int_eq(replaced.gone.space, AT_NOTHING);
	return result;
}

START_TEST(released_without_a_mapping_it_is_over)
{
	struct object_end e;

	begin();
	object_release(table, 100, &e);
	ck_assert(e.last);
	ck_assert_uint_eq(e.object.bytes, 2 * GIB);
	end();
}
END_TEST

START_TEST(a_mapping_outlives_the_handle)
{
	struct object_end e;

	begin();
	ck_assert_int_eq(map(100, 1 * GIB, 2 * GIB), 0);
	object_release(table, 100, &e);
	ck_assert(!e.last);
	ck_assert_uint_eq(object_unmap(table, 1 * GIB, &e), 2 * GIB);
	ck_assert(e.last);
	end();
}
END_TEST

START_TEST(mapped_twice_and_unmapped_once_it_lives)
{
	struct object_end e;

	begin();
	map(100, 1 * GIB, 2 * GIB);
	map(100, 8 * GIB, 2 * GIB);
	object_release(table, 100, &e);
	object_unmap(table, 1 * GIB, &e);
	ck_assert(!e.last);
	object_unmap(table, 8 * GIB, &e);
	ck_assert(e.last);
	end();
}
END_TEST

START_TEST(a_handle_got_back_from_an_address_inside_counts)
{
	struct object_end e;

	begin();
	map(100, 1 * GIB, 2 * GIB);
	object_release(table, 100, &e);
	ck_assert_int_eq(object_retain_address(table, 2 * GIB, 100), 0);
	object_unmap(table, 1 * GIB, &e);
	ck_assert(!e.last);
	object_release(table, 100, &e);
	ck_assert(e.last);
	ck_assert_int_eq(object_retain_address(table, 2 * GIB, 100), -ENOENT);
	end();
}
END_TEST

START_TEST(what_the_driver_refuses_to_end_is_as_before)
{
	struct object_end e;

	begin();
	object_release(table, 100, &e);
	ck_assert(e.last);
	object_put_back(table, &e);
	map(100, 1 * GIB, 2 * GIB);
	object_unmap(table, 1 * GIB, &e);
	object_put_back(table, &e);
	object_release(table, 100, &e);
	ck_assert(!e.last);
	object_unmap(table, 1 * GIB, &e);
	ck_assert(e.last);
	ck_assert_uint_eq(e.object.bytes, 2 * GIB);
	end();
}
END_TEST

START_TEST(unknown_handles_and_addresses_change_nothing)
{
	struct object_end e;

	begin();
	object_release(table, 101, &e);
	ck_assert_int_eq(e.gone.space, AT_NOTHING);
	ck_assert_uint_eq(object_unmap(table, 5, &e), 0);
	ck_assert_int_eq(object_retain(table, 101), -ENOENT);
	ck_assert_int_eq(map(101, 1 * GIB, 1), -ENOENT);
	object_release(table, 100, &e);
	end();
}
END_TEST

START_TEST(a_place_mapped_anew_lets_go_of_what_was_there)
{
	struct object_end e;

	begin();
	object_create(table, 2, 200, 0, 1 * GIB, 0);
	object_map(table, 100, 1ull << 63 | 5, 1, 77, &e);
	object_release(table, 100, &e);
	object_map(table, 200, 1ull << 63 | 5, 1, 77, &e);
	ck_assert(e.last);
	ck_assert_uint_eq(e.object.bytes, 2 * GIB);
	object_release(table, 200, &e);
	object_unmap(table, 1ull << 63 | 5, &e);
	ck_assert(e.last);
	end();
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("objects");

	tcase_add_test(tcase, released_without_a_mapping_it_is_over);
	tcase_add_test(tcase, a_mapping_outlives_the_handle);
	tcase_add_test(tcase, mapped_twice_and_unmapped_once_it_lives);
	tcase_add_test(tcase, a_handle_got_back_from_an_address_inside_counts);
	tcase_add_test(tcase, what_the_driver_refuses_to_end_is_as_before);
	tcase_add_test(tcase, unknown_handles_and_addresses_change_nothing);
	tcase_add_test(tcase, a_place_mapped_anew_lets_go_of_what_was_there);
	return help_run("memory objects", tcase);
}
