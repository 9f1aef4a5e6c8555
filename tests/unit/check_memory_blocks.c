/* Linear memory by the pages it stands on. */
#include <string.h>

#include <errno.h>

#include "memory_help.h"

static _Atomic int64_t slack;

static uint64_t enter(struct charges *table, uint64_t address, uint64_t bytes)
{
	return blocks_enter(table, 0, CHARGE_LINEAR, address, bytes, &slack);
}

static uint64_t leave(struct charges *table, uint64_t address, uint64_t bytes)
{
	struct blocks_refund refund;

	blocks_leave(table, 0, address, bytes, &slack, &refund);
	return refund.own_bytes + refund.head_bytes + refund.tail_bytes;
}

START_TEST(a_hundred_small_ones_in_one_page_are_charged_one_page)
{
	struct charges *table = charges_new();
	uint64_t sum = 0, back = 0;

	slack = 0;
	for (uint64_t i = 0; i < 100; i++)
		sum += enter(table, 64 * MIB + i * 512, 512);
	ck_assert_uint_eq(sum, 2 * MIB);
	ck_assert_int_eq(slack, 2 * MIB - 100 * 512);
	for (uint64_t i = 0; i < 100; i++)
		back += leave(table, 64 * MIB + i * 512, 512);
	ck_assert_uint_eq(back, 2 * MIB);
	ck_assert_int_eq(slack, 0);
	ck_assert_uint_eq(charges_count(table), 0);
	charges_destroy(table);
}
END_TEST

START_TEST(a_large_one_is_charged_its_whole_pages_without_an_entry)
{
	struct charges *table = charges_new();

	ck_assert_uint_eq(enter(table, 1 * GIB, 1 * GIB), 1 * GIB);
	ck_assert_uint_eq(charges_count(table), 0);
	ck_assert_uint_eq(leave(table, 1 * GIB, 1 * GIB), 1 * GIB);
	charges_destroy(table);
}
END_TEST

START_TEST(an_odd_size_pays_for_the_page_its_tail_is_in)
{
	struct charges *table = charges_new();

	ck_assert_uint_eq(enter(table, 1 * GIB, 3 * MIB), 4 * MIB);
	/* Somebody small in the rest of that page pays nothing; who leaves last gives it back. */
	ck_assert_uint_eq(enter(table, 1 * GIB + 3 * MIB, 512), 0);
	ck_assert_uint_eq(leave(table, 1 * GIB, 3 * MIB), 2 * MIB);
	ck_assert_uint_eq(leave(table, 1 * GIB + 3 * MIB, 512), 2 * MIB);
	charges_destroy(table);
}
END_TEST

START_TEST(a_shared_page_goes_back_to_the_kind_that_paid_for_it)
{
	struct charges *table = charges_new();
	struct blocks_refund refund;

	ck_assert_uint_eq(blocks_enter(table, 0, CHARGE_MANAGED, 2 * MIB, 512, &slack), 2 * MIB);
	ck_assert_uint_eq(blocks_enter(table, 0, CHARGE_LINEAR, 3 * MIB, 512, &slack), 0);
	ck_assert_uint_eq(leave(table, 2 * MIB, 512), 0);
	blocks_leave(table, 0, 3 * MIB, 512, &slack, &refund);
	ck_assert_uint_eq(refund.head_bytes, 2 * MIB);
	ck_assert_uint_eq(refund.head_kind, CHARGE_MANAGED);
	charges_destroy(table);
}
END_TEST

START_TEST(two_devices_at_one_address_do_not_pay_for_one_another)
{
	struct charges *table = charges_new();
	struct blocks_refund refund;

	ck_assert_uint_eq(blocks_enter(table, 0, CHARGE_LINEAR, 2 * MIB, 512, &slack), 2 * MIB);
	ck_assert_uint_eq(blocks_enter(table, 1, CHARGE_LINEAR, 2 * MIB, 512, &slack), 2 * MIB);
	ck_assert_uint_eq(leave(table, 2 * MIB, 512), 2 * MIB);
	blocks_leave(table, 1, 2 * MIB, 512, &slack, &refund);
	ck_assert_uint_eq(refund.head_bytes, 2 * MIB);
	charges_destroy(table);
}
END_TEST

START_TEST(one_across_a_page_border_pays_for_both)
{
	struct charges *table = charges_new();

	ck_assert_uint_eq(enter(table, 2 * MIB - 256, 512), 4 * MIB);
	ck_assert_uint_eq(leave(table, 2 * MIB - 256, 512), 4 * MIB);
	charges_destroy(table);
}
END_TEST

START_TEST(what_is_foreseen_is_never_less_than_an_aligned_block_takes)
{
	ck_assert_uint_eq(blocks_foresee(1, 0), 2 * MIB);
	ck_assert_uint_eq(blocks_foresee(512, 4096), 0);
	ck_assert_uint_eq(blocks_foresee(512, 511), 2 * MIB);
	ck_assert_uint_eq(blocks_foresee(1 * GIB + 1, INT64_MAX), 1 * GIB + 2 * MIB);
	ck_assert_uint_ge(blocks_foresee(UINT64_MAX, 0), UINT64_MAX - 2 * MIB);
}
END_TEST

enum { GRAINS_IN_PAGE = 8, PAGES = 1024, GRAINS = PAGES * GRAINS_IN_PAGE, PLACES = 600 };

#define GRAIN (2 * MIB / GRAINS_IN_PAGE)

static unsigned char taken[GRAINS];

/* A free run of grains, as a driver would find one: allocations do not overlap. -1: none from there on. */
static int find_run(unsigned from, unsigned want)
{
	unsigned run = 0;

	for (unsigned i = from; i < GRAINS; i++) {
		run = taken[i] ? 0 : run + 1;
		if (run == want)
			return (int)(i + 1 - want);
	}
	return -1;
}

static uint64_t pages_stood_on(void)
{
	uint64_t pages = 0;

	for (unsigned page = 0; page < PAGES; page++)
		for (unsigned i = 0; i < GRAINS_IN_PAGE; i++)
			if (taken[page * GRAINS_IN_PAGE + i]) {
				pages++;
				break;
			}
	return pages;
}

/* Those that lie inside of a page go the short way, with their entries. */
static uint64_t enter_any(struct charges *table, uint64_t address, uint64_t bytes)
{
	struct charge old, entry = {.key = address, .bytes = bytes, .refs = 1, .space = AT_ADDRESS};
	uint64_t taken_bytes;

	if (!blocks_is_inside(address, bytes))
		return enter(table, address, bytes);
	ck_assert_int_eq(blocks_enter_inside(table, &entry, &slack, &taken_bytes, &old), 0);
	return taken_bytes;
}

static uint64_t leave_any(struct charges *table, uint64_t address, uint64_t bytes)
{
	struct charge gone;
	uint8_t kind;

	if (!blocks_is_inside(address, bytes))
		return leave(table, address, bytes);
	ck_assert_int_eq(charges_let_go(table, address, &gone), 0);
	ck_assert_uint_eq(gone.bytes, bytes);
	return blocks_leave_inside(table, 0, address, bytes, &slack, &kind);
}

START_TEST(the_charge_is_the_pages_stood_on_whatever_the_mix)
{
	static struct {
		unsigned first, grains;
		uint64_t bytes;
	} held[PLACES];
	struct charges *table = charges_new();
	uint64_t seed = 7, charged = 0;

	slack = 0;
	for (int step = 0; step < 100000; step++) {
		unsigned place = (unsigned)(help_random(&seed) % PLACES);
		unsigned grains = (unsigned)(help_random(&seed) % 24 + 1);
		int first = find_run((unsigned)(help_random(&seed) % GRAINS), grains);

		if (held[place].grains) {
			charged -= leave_any(table, held[place].first * GRAIN, held[place].bytes);
			memset(&taken[held[place].first], 0, held[place].grains);
			held[place].grains = 0;
		} else if (first >= 0) {
			held[place].first = (unsigned)first;
			held[place].grains = grains;
			held[place].bytes = grains * GRAIN - help_random(&seed) % GRAIN;
			memset(&taken[first], 1, grains);
			charged += enter_any(table, held[place].first * GRAIN, held[place].bytes);
		}
		if (step % 50 == 0)
			ck_assert_uint_eq(charged, pages_stood_on() * 2 * MIB);
	}
	for (unsigned place = 0; place < PLACES; place++)
		if (held[place].grains)
			charged -= leave_any(table, held[place].first * GRAIN, held[place].bytes);
	ck_assert_uint_eq(charged, 0);
	ck_assert_int_eq(slack, 0);
	ck_assert_uint_eq(charges_count(table), 0);
	charges_destroy(table);
}
END_TEST

START_TEST(inside_of_a_page_is_what_begins_and_ends_there_and_is_not_all_of_it)
{
	ck_assert(blocks_is_inside(2 * MIB, 1));
	ck_assert(blocks_is_inside(4 * MIB - 1, 1));
	ck_assert(blocks_is_inside(3 * MIB, MIB));
	ck_assert(!blocks_is_inside(3 * MIB, MIB + 1));
	ck_assert(blocks_is_inside(2 * MIB, 2 * MIB - 1));
	ck_assert(!blocks_is_inside(2 * MIB, 2 * MIB));
	ck_assert(!blocks_is_inside(2 * MIB, 0));
	ck_assert(!blocks_is_inside(2 * MIB, UINT64_MAX));
}
END_TEST

/* The hold foresaw a page that is ours; the driver gave another one. */
START_TEST(an_allocation_that_does_not_fit_after_all_leaves_nothing_behind)
{
	struct memory *memory = memory_new();
	struct charge first = {.key = 2 * MIB,
			       .bytes = MIB,
			       .refs = 1,
			       .space = AT_ADDRESS,
			       .kind = CHARGE_LINEAR};
	struct charge other = first, wide = first, gone;
	struct refusal why;
	struct hold hold;

	help_begin(4 * MIB);
	ck_assert_int_eq(hold_take(&hold, &help_member, CHARGE_LINEAR, 2 * MIB, NULL, &why), 0);
	ck_assert_int_eq(memory_enter_linear(memory, &hold, &first, &why), 0);
	ledger_charge(&help_member, CHARGE_ARRAY, MIB, NULL);
	hold = (struct hold){.member = &help_member, .kind = CHARGE_LINEAR};
	other.key = 8 * MIB;
	ck_assert_int_eq(memory_enter_linear(memory, &hold, &other, &why), -ENOMEM);
	wide.key = 3 * MIB;
	wide.bytes = 2 * MIB;
	ck_assert_int_eq(memory_enter_linear(memory, &hold, &wide, &why), -ENOMEM);
	ck_assert_uint_eq(help_used(), 3 * MIB);
	ck_assert_uint_eq(charges_count(memory->charges), 2);
	ck_assert_int_eq(memory->devices[0].slack_bytes, MIB);
	/* Its page is still ours for a neighbour. */
	other.key = 3 * MIB;
	ck_assert_int_eq(memory_enter_linear(memory, &hold, &other, &why), 0);
	ck_assert_int_eq(charges_let_go(memory->charges, first.key, &gone), 0);
	memory_leave(memory, &help_member, &gone);
	ck_assert_uint_eq(help_used(), 3 * MIB);
	ck_assert_int_eq(charges_let_go(memory->charges, other.key, &gone), 0);
	memory_leave(memory, &help_member, &gone);
	ck_assert_uint_eq(help_used(), MIB);
	ledger_refund(&help_member, CHARGE_ARRAY, MIB);
	help_end();
	memory_destroy(memory);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("blocks");

	tcase_add_test(tcase, a_hundred_small_ones_in_one_page_are_charged_one_page);
	tcase_add_test(tcase, a_large_one_is_charged_its_whole_pages_without_an_entry);
	tcase_add_test(tcase, an_odd_size_pays_for_the_page_its_tail_is_in);
	tcase_add_test(tcase, a_shared_page_goes_back_to_the_kind_that_paid_for_it);
	tcase_add_test(tcase, two_devices_at_one_address_do_not_pay_for_one_another);
	tcase_add_test(tcase, one_across_a_page_border_pays_for_both);
	tcase_add_test(tcase, what_is_foreseen_is_never_less_than_an_aligned_block_takes);
	tcase_add_test(tcase, the_charge_is_the_pages_stood_on_whatever_the_mix);
	tcase_add_test(tcase, inside_of_a_page_is_what_begins_and_ends_there_and_is_not_all_of_it);
	tcase_add_test(tcase, an_allocation_that_does_not_fit_after_all_leaves_nothing_behind);
	return help_run("memory blocks", tcase);
}
