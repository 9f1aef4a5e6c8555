/* Reserve, then commit or roll back; what is given up first; what is said. */
#include <errno.h>
#include <string.h>

#include "memory_help.h"

START_TEST(a_hold_is_charged_at_once_and_dropped_whole)
{
	struct hold hold;
	struct refusal why;

	help_begin(8 * GIB);
	ck_assert_int_eq(hold_take(&hold, &help_member, CHARGE_LINEAR, 2 * GIB, NULL, &why), 0);
	ck_assert_uint_eq(help_used(), 2 * GIB);
	hold_drop(&hold);
	ck_assert_uint_eq(help_used(), 0);
	hold_drop(&hold);
	help_end();
}
END_TEST

START_TEST(settling_moves_the_charge_to_what_was_taken)
{
	struct hold hold;
	struct refusal why;

	help_begin(8 * GIB);
	hold_take(&hold, &help_member, CHARGE_LINEAR, 2 * GIB, NULL, &why);
	ck_assert_int_eq(hold_settle(&hold, 3 * GIB, &why), 0);
	ck_assert_uint_eq(help_used(), 3 * GIB);
	ck_assert_int_eq(hold_settle(&hold, 1 * GIB, &why), 0);
	ck_assert_uint_eq(help_used(), 1 * GIB);
	hold_drop(&hold);
	help_end();
}
END_TEST

START_TEST(settling_past_the_cap_is_refused_and_changes_nothing)
{
	struct hold hold;
	struct refusal why;

	help_begin(2 * GIB);
	hold_take(&hold, &help_member, CHARGE_LINEAR, 1 * GIB, NULL, &why);
	ck_assert_int_eq(hold_settle(&hold, 3 * GIB, &why), -ENOMEM);
	ck_assert_uint_eq(help_used(), 1 * GIB);
	hold_settle_forced(&hold, 3 * GIB);
	ck_assert_uint_eq(help_used(), 3 * GIB);
	hold_drop(&hold);
	help_end();
}
END_TEST

struct pantry {
	uint64_t bytes;
	unsigned calls;
};

static int give_up(void *arg, unsigned attempt)
{
	struct pantry *pantry = arg;

	ck_assert_uint_eq(attempt, pantry->calls);
	pantry->calls++;
	if (!pantry->bytes)
		return 0;
	ledger_refund(&help_member, CHARGE_POOL, pantry->bytes);
	pantry->bytes = 0;
	return 1;
}

START_TEST(what_is_not_needed_is_given_up_before_a_refusal)
{
	struct pantry pantry = {1 * GIB, 0};
	struct relief relief = {.give_up = give_up, .arg = &pantry};
	struct hold hold;
	struct refusal why;

	help_begin(2 * GIB);
	ledger_charge(&help_member, CHARGE_POOL, 1 * GIB, NULL);
	ck_assert_int_eq(hold_take(&hold, &help_member, CHARGE_LINEAR, 2 * GIB, &relief, &why), 0);
	ck_assert_uint_eq(pantry.calls, 1);
	ck_assert_uint_eq(help_used(), 2 * GIB);
	hold_drop(&hold);
	help_end();
}
END_TEST

START_TEST(nothing_is_given_up_while_there_is_room)
{
	struct pantry pantry = {1 * GIB, 0};
	struct relief relief = {.give_up = give_up, .arg = &pantry};
	struct hold hold;

	help_begin(2 * GIB);
	hold_take(&hold, &help_member, CHARGE_LINEAR, 2 * GIB, &relief, NULL);
	ck_assert_uint_eq(pantry.calls, 0);
	hold_drop(&hold);
	help_end();
}
END_TEST

START_TEST(a_refusal_is_counted_once_and_one_that_was_averted_is_not)
{
	struct pantry pantry = {1 * GIB, 0}, empty = {0, 0};
	struct relief relief = {.give_up = give_up, .arg = &pantry},
		      none = {.give_up = give_up, .arg = &empty};
	struct slot *slot;
	struct hold hold;
	struct refusal why;

	help_begin(2 * GIB);
	slot = &help_ledger.file->slot[help_member.slot];
	ledger_charge(&help_member, CHARGE_POOL, 1 * GIB, NULL);
	hold_take(&hold, &help_member, CHARGE_LINEAR, 2 * GIB, &relief, &why);
	ck_assert_uint_eq(slot->denials, 0);
	hold_drop(&hold);
	ck_assert_int_eq(hold_take(&hold, &help_member, CHARGE_LINEAR, 3 * GIB, &none, &why),
			 -ENOMEM);
	ck_assert_uint_eq(slot->denials, 1);
	help_end();
}
END_TEST

/* Another of the group took something and has not charged it; a look finds that, and what we took ourselves. */
struct found {
	uint64_t own_bytes, others_bytes, left;
	unsigned looks;
};

static uint64_t look(void *arg, uint64_t left)
{
	struct found *found = arg;

	found->left = left;
	found->looks++;
	ledger_charge_forced(&help_member, CHARGE_OVERHEAD, found->own_bytes);
	found->own_bytes = 0;
	return found->others_bytes;
}

static int nothing_to_give(void *arg, unsigned attempt)
{
	(void)arg;
	(void)attempt;
	return 0;
}

START_TEST(near_the_cap_a_charge_looks_first_and_what_it_finds_counts)
{
	struct books books = {0};
	struct found found = {8 * MIB, 4 * MIB, 0, 0};
	struct relief relief = {nothing_to_give, look, &found, &books};
	struct hold hold, last;
	struct refusal why;

	help_begin(1 * GIB);
	books_looked(&books, BOOKS_NEAR, 0, 1);
	ck_assert_int_eq(
		hold_take(&hold, &help_member, CHARGE_LINEAR, 1 * GIB - BOOKS_NEAR, &relief, &why),
		0);
	ck_assert_uint_eq(found.looks, 0);
	ck_assert_int_eq(
		hold_take(&last, &help_member, CHARGE_LINEAR, BOOKS_NEAR - 10 * MIB, &relief, &why),
		-ENOMEM);
	ck_assert_uint_eq(found.looks, 1);
	ck_assert_uint_eq(found.left, 10 * MIB);
	ck_assert_int_eq(
		hold_take(&last, &help_member, CHARGE_LINEAR, BOOKS_NEAR - 12 * MIB, &relief, &why),
		0);
	/* Only what is ours was charged. */
	ck_assert_uint_eq(help_used(), 1 * GIB - 4 * MIB);
	hold_drop(&hold);
	hold_drop(&last);
	ledger_refund(&help_member, CHARGE_OVERHEAD, 8 * MIB);
	help_end();
}
END_TEST

START_TEST(far_from_the_cap_a_charge_does_not_look_and_at_its_edge_it_does)
{
	struct books books = {0};
	struct found found = {0};
	struct relief relief = {nothing_to_give, look, &found, &books};
	struct hold hold, last;
	struct refusal why;

	help_begin(1 * GIB);
	books_looked(&books, 256 * MIB, 0, 1); /* near is from 128 MiB on */
	ck_assert(hold_take(&hold, &help_member, CHARGE_LINEAR, 896 * MIB, &relief, &why) == 0);
	ck_assert_uint_eq(found.looks, 0);
	ck_assert(hold_take(&last, &help_member, CHARGE_LINEAR, 512, &relief, &why) == 0);
	ck_assert_uint_eq(found.looks, 1);
	ck_assert_uint_eq(found.left, 128 * MIB - 512);
	hold_drop(&last);
	hold_drop(&hold);
	/* A context that nobody has looked at: whatever is left. */
	atomic_store(&books.near_bytes, BOOKS_YOUNG);
	ck_assert(hold_take(&hold, &help_member, CHARGE_LINEAR, 512, &relief, &why) == 0);
	ck_assert_uint_eq(found.looks, 2);
	hold_drop(&hold);
	help_end();
}
END_TEST

START_TEST(what_others_hold_is_no_matter_of_this_process_own_cap)
{
	struct refusal why;

	help_begin(1 * GIB);
	atomic_store(&help_member.process_cap_bytes, 512 * MIB);
	ck_assert_int_eq(
		ledger_charge_beside(&help_member, CHARGE_LINEAR, 512 * MIB, 512 * MIB, &why), 0);
	ledger_refund(&help_member, CHARGE_LINEAR, 512 * MIB);
	ck_assert_int_eq(
		ledger_charge_beside(&help_member, CHARGE_LINEAR, 512 * MIB, 513 * MIB, &why),
		-ENOMEM);
	ck_assert_int_eq(why.why, REFUSED_GROUP);
	help_end();
}
END_TEST

START_TEST(the_refusal_line_has_the_numbers)
{
	struct refusal why = {.why = REFUSED_GROUP,
			      .asked_bytes = 2 * GIB,
			      .used_bytes = 7 * GIB + 154 * MIB,
			      .cap_bytes = 8 * GIB,
			      .group = "train",
			      .members = 3,
			      .largest_pid = 4121,
			      .largest_bytes = 5 * GIB};
	char text[REFUSAL_TEXT_BYTES];

	ck_assert_str_eq(
		refusal_text(&why, "GPU-8f3a0000-1111", text),
		"out of memory on GPU-8f3a…: asked 2.0GiB, used 7.1GiB of 8.0GiB (group train, "
		"3 processes; largest pid 4121 5.0GiB)");
	memset(why.group, 'g', sizeof(why.group) - 1);
	ck_assert_uint_lt(strlen(refusal_text(&why, "GPU-8f3a0000-1111", text)),
			  REFUSAL_TEXT_BYTES);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("hold");

	tcase_add_test(tcase, a_hold_is_charged_at_once_and_dropped_whole);
	tcase_add_test(tcase, settling_moves_the_charge_to_what_was_taken);
	tcase_add_test(tcase, settling_past_the_cap_is_refused_and_changes_nothing);
	tcase_add_test(tcase, what_is_not_needed_is_given_up_before_a_refusal);
	tcase_add_test(tcase, nothing_is_given_up_while_there_is_room);
	tcase_add_test(tcase, a_refusal_is_counted_once_and_one_that_was_averted_is_not);
	tcase_add_test(tcase, near_the_cap_a_charge_looks_first_and_what_it_finds_counts);
	tcase_add_test(tcase, far_from_the_cap_a_charge_does_not_look_and_at_its_edge_it_does);
	tcase_add_test(tcase, what_others_hold_is_no_matter_of_this_process_own_cap);
	tcase_add_test(tcase, the_refusal_line_has_the_numbers);
	return help_run("memory hold", tcase);
}
