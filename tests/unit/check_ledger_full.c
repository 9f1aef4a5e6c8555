/*
 * The ledger at its bounds: every slot taken, every group taken, slots that come and go in any order.
 */
#include <check.h>
#include <errno.h>

#include "ledger_help.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static struct ledger ledger;
static struct member members[LEDGER_SLOTS + 1];

static void setup(void)
{
	help_setup();
	help_open(&ledger);
}

static int join(const char *group, struct member *ret)
{
	return ledger_join(&ledger, group, NULL, NULL, ret, NULL);
}

START_TEST(all_1024_slots_are_taken_and_the_next_is_eusers)
{
	static struct ledger_view view;
	const char *group = _i ? "train" : "";
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < LEDGER_SLOTS; i++) {
		ck_assert_int_eq(join(group, &members[i]), 0);
		ck_assert_int_eq(ledger_charge(&members[i], CHARGE_LINEAR, MIB, NULL), 0);
	}
	ck_assert_int_eq(join(group, &members[i]), -EUSERS);
	ledger_view(&ledger, &view);
	ck_assert_uint_eq(view.slot_count, LEDGER_SLOTS);
	ck_assert_uint_eq(view.group_count, _i ? 1 : LEDGER_SLOTS);
	for (i = 0; i < view.group_count; i++)
		sum += view.groups[i].used_bytes;
	ck_assert_uint_eq(sum, LEDGER_SLOTS * MIB);
	ledger_leave(&members[500]);
	ck_assert_int_eq(join(group, &members[500]), 0);
	for (i = 0; i < LEDGER_SLOTS; i++)
		ledger_leave(&members[i]);
	ck_assert_uint_eq(help_total(&members[0]), 0);
}
END_TEST

START_TEST(all_256_named_groups_are_taken_and_one_that_empties_is_reused)
{
	struct quota small = {.mem_bytes = MIB};
	char name[GROUP_NAME_BYTES];
	unsigned i;

	for (i = 0; i < LEDGER_NAMED; i++) {
		snprintf(name, sizeof(name), "job-%u", i);
		ck_assert_int_eq(ledger_join(&ledger, name, NULL, &small, &members[i], NULL), 0);
		ck_assert_int_eq(ledger_charge(&members[i], CHARGE_LINEAR, MIB, NULL), 0);
	}
	ck_assert_int_eq(join("one-more", &members[i]), -EUSERS);
	ck_assert_int_eq(join("job-7", &members[i]), 0); /* an existing one takes more */
	ledger_leave(&members[i]);
	ck_assert_int_eq(join("", &members[i]), 0); /* and nobody needs a name to be alone */
	ledger_leave(&members[i]);
	ledger_leave(&members[99]);
	ck_assert_int_eq(join("one-more", &members[i]), 0);
	ck_assert_uint_eq(members[i].group, members[99].group);
	ck_assert_uint_eq(help_total(&members[i]), 0);
	ck_assert_uint_eq(ledger_group_cap(&members[i]), UINT64_MAX); /* nothing of job-99's */
	for (i = 0; i < LEDGER_NAMED; i++)
		if (i != 99)
			ck_assert_uint_eq(help_total(&members[i]), MIB);
}
END_TEST

START_TEST(a_group_whose_members_all_died_begins_anew)
{
	struct quota small = {.mem_bytes = MIB};
	struct help_child child;
	struct member member;

	if (help_child(&child) == 0) {
		ck_assert_int_eq(ledger_open(help_dir, HELP_UUID, &ledger, NULL), 0);
		help_child_says(&child,
				ledger_join(&ledger, "train", NULL, &small, &member, NULL) ||
					ledger_charge(&member, CHARGE_LINEAR, MIB, NULL));
		pause();
	}
	ck_assert_int_eq(help_child_said(&child), 0);
	kill(child.pid, SIGKILL);
	help_child_end(&child);
	ck_assert_int_eq(join("train", &member), 0);
	ck_assert_uint_eq(ledger_group_cap(&member), UINT64_MAX);
	ck_assert_uint_eq(help_total(&member), 0);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, GIB, NULL), 0);
}
END_TEST

START_TEST(a_process_has_seats_on_16_gpus_and_loses_them_all_at_once)
{
	static struct ledger gpus[16];
	struct help_child child;
	char uuid[UUID_TEXT_BYTES];
	unsigned i;

	if (help_child(&child) == 0) {
		for (i = 0; i < 16; i++) {
			snprintf(uuid, sizeof(uuid), "GPU-%u", i);
			if (ledger_open(help_dir, uuid, &gpus[i], NULL) != 0 ||
			    ledger_join(&gpus[i], "train", NULL, NULL, &members[i], NULL) != 0 ||
			    ledger_charge(&members[i], CHARGE_LINEAR, (i + 1) * MIB, NULL) != 0)
				_exit(1);
		}
		help_child_says(&child, 0);
		pause();
	}
	ck_assert_int_eq(help_child_said(&child), 0);
	for (i = 0; i < 16; i++) {
		snprintf(uuid, sizeof(uuid), "GPU-%u", i);
		ck_assert_int_eq(ledger_open(help_dir, uuid, &gpus[i], NULL), 0);
		ck_assert_int_eq(ledger_join(&gpus[i], "train", NULL, NULL, &members[i], NULL), 0);
		ck_assert_uint_eq(help_total(&members[i]), (i + 1) * MIB);
	}
	kill(child.pid, SIGKILL);
	help_child_end(&child);
	for (i = 0; i < 16; i++) {
		ck_assert_uint_eq(ledger_reap(&gpus[i]), 1);
		ck_assert_uint_eq(help_total(&members[i]), 0);
	}
}
END_TEST

START_TEST(a_slot_stays_where_it_is_while_others_come_and_go)
{
	struct member one, two, three;
	unsigned slot;

	ck_assert_int_eq(join("train", &one), 0);
	ck_assert_int_eq(ledger_charge(&one, CHARGE_LINEAR, MIB, NULL), 0);
	ck_assert_int_eq(join("train", &two), 0);
	slot = two.slot;
	ledger_leave(&one);
	ck_assert_int_eq(ledger_charge(&two, CHARGE_LINEAR, GIB, NULL), 0);
	ck_assert_uint_eq(ledger_process_used(&two), GIB);
	ck_assert_int_eq(join("train", &three), 0);
	ledger_leave(&three);
	ck_assert_uint_eq(two.slot, slot);
	ck_assert_uint_eq(ledger_process_used(&two), GIB);
	ck_assert_uint_eq(slot_granules(ledger.file, slot) * GRANULE_BYTES, GIB);
	ck_assert_uint_eq(help_total(&two), GIB);
}
END_TEST

START_TEST(a_random_coming_and_going_agrees_with_a_model)
{
	static const char *const groups[] = {"a", "b", ""};
	uint64_t held[64] = {0}, sum[2];
	unsigned which[64], step, i, kind;

	memset(which, 0xff, sizeof(which));
	srand(1);
	for (step = 0; step < 200000; step++) {
		i = (unsigned)rand() % 64;
		if (which[i] > 2) {
			which[i] = (unsigned)rand() % 3;
			ck_assert_int_eq(join(groups[which[i]], &members[i]), 0);
		} else if (rand() % 16 == 0) {
			ledger_leave(&members[i]);
			which[i] = UINT32_MAX;
			held[i] = 0;
		} else if (held[i] && rand() % 2) {
			uint64_t back = held[i] / 2 + 1;

			for (kind = 0; back && kind < CHARGE_KINDS; kind++) {
				uint64_t some = members[i].kind_bytes[kind] < back
							? members[i].kind_bytes[kind]
							: back;

				ledger_refund(&members[i], kind, some);
				held[i] -= some;
				back -= some;
			}
		} else {
			uint64_t bytes = (uint64_t)(rand() % (4 << 20));

			ck_assert_int_eq(
				ledger_charge(&members[i], step % CHARGE_KINDS, bytes, NULL), 0);
			held[i] += bytes;
		}
		if (step % 1000)
			continue;
		memset(sum, 0, sizeof(sum));
		for (i = 0; i < 64; i++) {
			if (which[i] < 2)
				sum[which[i]] += granules_of(held[i]) * GRANULE_BYTES;
			if (which[i] <= 2)
				ck_assert_uint_eq(ledger_process_used(&members[i]), held[i]);
			if (which[i] == 2)
				ck_assert_uint_eq(help_total(&members[i]),
						  granules_of(held[i]) * GRANULE_BYTES);
		}
		for (i = 0; i < 64; i++)
			if (which[i] < 2)
				ck_assert_uint_eq(help_total(&members[i]), sum[which[i]]);
	}
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("bounds");

	tcase_add_checked_fixture(tcase, setup, help_teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, all_1024_slots_are_taken_and_the_next_is_eusers, 0, 2);
	tcase_add_test(tcase, all_256_named_groups_are_taken_and_one_that_empties_is_reused);
	tcase_add_test(tcase, a_group_whose_members_all_died_begins_anew);
	tcase_add_test(tcase, a_process_has_seats_on_16_gpus_and_loses_them_all_at_once);
	tcase_add_test(tcase, a_slot_stays_where_it_is_while_others_come_and_go);
	tcase_add_test(tcase, a_random_coming_and_going_agrees_with_a_model);
	return help_run("ledger: bounds", tcase);
}
