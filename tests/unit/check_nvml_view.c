/*
 * What NVML is made to show: src/hooks/view.h, nvml_visible.c.
 */
#include <check.h>
#include <stdint.h>

#include "hooks/nvml_view.h"
#include "hooks/view.h"

#define GIB    1073741824ull
#define NO_CAP UINT64_MAX

static const struct {
	uint64_t real_total, real_free, cap, room;
	uint64_t total, free, used;
} memory[] = {
	/* no cap: room unknown, as the card is */
	{80 * GIB, 70 * GIB, NO_CAP, NO_CAP, 80 * GIB, 70 * GIB, 0},
	{80 * GIB, 70 * GIB, 8 * GIB, 8 * GIB, 8 * GIB, 8 * GIB, 0},
	{80 * GIB, 70 * GIB, 8 * GIB, 3 * GIB, 8 * GIB, 3 * GIB, 5 * GIB},
	/* at the cap, and over it: never below zero */
	{80 * GIB, 70 * GIB, 8 * GIB, 0, 8 * GIB, 0, 8 * GIB},
	/* others have taken what is left of the card */
	{80 * GIB, 1 * GIB, 8 * GIB, 3 * GIB, 8 * GIB, 1 * GIB, 5 * GIB},
	/* a cap of more than the card, of all of it, of one byte */
	{80 * GIB, 70 * GIB, 160 * GIB, 100 * GIB, 80 * GIB, 70 * GIB, 0},
	{80 * GIB, 80 * GIB, 80 * GIB, 80 * GIB, 80 * GIB, 80 * GIB, 0},
	{80 * GIB, 70 * GIB, 1, 0, 1, 0, 1},
};

START_TEST(memory_is_shown_as_the_cap_allows)
{
	struct view_memory view = view_memory(memory[_i].real_total, memory[_i].real_free,
					      memory[_i].cap, memory[_i].room);

	ck_assert_uint_eq(view.total_bytes, memory[_i].total);
	ck_assert_uint_eq(view.free_bytes, memory[_i].free);
	ck_assert_uint_eq(view.used_bytes, memory[_i].used);
	ck_assert_uint_le(view.used_bytes + view.free_bytes, view.total_bytes);
}
END_TEST

#define UUID "GPU-8f3ab5c2-0000-1111-2222-333344445555"

static const struct {
	const char *visible;
	unsigned index;
	int cuda_index;
} devices[] = {
	{NULL, 0, 0},
	{NULL, 3, 3},
	{"0", 0, 0},
	{"0", 1, -1},
	{"1", 1, 0},
	{"2,3", 3, 1},
	{"3,1", 1, 1},
	{"3,1", 3, 0},
	{"", 0, -1},
	{"-1", 0, -1},
	{"NoDevFiles", 0, -1},
	{"0,-1,1", 1, -1},
	{"0,,1", 1, -1},
	{"0,x,1", 1, -1},
	{"1,0", 0, 1},
	{UUID, 5, 0},
	{"GPU-8f3a", 5, 0},
	{"GPU-9", 5, -1},
	{"GPU-", 5, -1},
	{"2,GPU-8f3ab5c2", 5, -1}, /* of two kinds */
	{"GPU-1,GPU-8f3ab5c2", 5, 1},
	{"GPU-8F3AB5C2", 5, 0},
	{"MIG-8f3a", 5, -1},
};

START_TEST(a_device_has_the_index_that_cuda_gives_it)
{
	ck_assert_int_eq(nvml_visible_index(devices[_i].visible, devices[_i].index, UUID),
			 devices[_i].cuda_index);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nvml_view");
	TCase *tests = tcase_create("nvml_view");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tests, memory_is_shown_as_the_cap_allows, 0,
			    (int)(sizeof(memory) / sizeof(memory[0])));
	tcase_add_loop_test(tests, a_device_has_the_index_that_cuda_gives_it, 0,
			    (int)(sizeof(devices) / sizeof(devices[0])));
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
