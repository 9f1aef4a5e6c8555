/* Memory of several processes: one carrier at any time, and no trust in the file. */
#include <fcntl.h>
#include <sys/mman.h>

#include "ledger_help.h"
#include "memory/shares.h"

#define MIB (1ull << 20)

static struct ledger ledger;
static struct member member;
static struct shares shares;

static void begin(void)
{
	shares = (struct shares){0};
	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	atomic_store(&ledger.file->header.device_bytes, 8ull << 30);
	ck_assert_int_eq(shares_open(&shares, &member), 0);
}

static void end(void)
{
	shares_close(&shares);
	ledger_leave(&member);
	ledger_close(&ledger);
}

static int export(uint64_t key)
{
	uint32_t serial;
	int number = share_export(&shares, &member, key, 64 * MIB, &serial);

	ck_assert_int_ge(number, 0);
	ck_assert_uint_ge(serial, 1);
	ck_assert_uint_le(serial, SHARE_SERIALS);
	return number;
}

START_TEST(what_nobody_else_holds_ends_with_its_owner)
{
	int number;

	begin();
	number = export(77);
	ck_assert_int_eq(share_find(&shares, 77), number);
	ck_assert_int_eq(share_let_go(&shares, &member, number, 1), 1);
	ck_assert_int_eq(share_let_go(&shares, &member, number, 1), 0);
	end();
}
END_TEST

START_TEST(the_owner_carries_what_it_imported_itself_until_that_ends_too)
{
	struct shares_change change;
	int number;

	begin();
	number = export(77);
	ck_assert_int_eq(share_hold(&shares, &member, number), 0);
	ck_assert_int_eq(share_let_go(&shares, &member, number, 1), 0);
	shares_tick(&shares, &member, &change);
	ck_assert_uint_eq(change.release_bytes, 0);
	ck_assert_int_eq(share_let_go(&shares, &member, number, 0), 1);
	end();
}
END_TEST

START_TEST(a_descriptor_keeps_the_owner_the_carrier_until_it_is_closed)
{
	struct shares_change change;
	uint32_t serial;
	uint64_t open;
	int number;

	begin();
	number = share_export(&shares, &member, 0, 64 * MIB, &serial);
	open = 1ull << (serial - 1);
	ck_assert_int_eq(share_has_descriptor(&shares, number, ~open), 0);
	ck_assert_int_eq(share_has_descriptor(&shares, number, open), 1);
	share_leave_to_descriptor(&shares, number);
	ck_assert_int_eq(shares_end_descriptors(&shares, &member, open), 1);
	shares_tick(&shares, &member, &change);
	ck_assert_uint_eq(change.release_bytes, 0);
	/* Imported from it meanwhile, by the process itself. */
	ck_assert_int_eq(share_hold(&shares, &member, number), 0);
	ck_assert_int_eq(share_let_go(&shares, &member, number, 0), 0);
	ck_assert_int_eq(shares_end_descriptors(&shares, &member, ~open), 0);
	shares_tick(&shares, &member, &change);
	ck_assert_uint_eq(change.release_bytes, 64 * MIB);
	/* Handles that are bytes have none. */
	ck_assert_int_eq(share_has_descriptor(&shares, export(77), UINT64_MAX), 0);
	end();
}
END_TEST

/* The child joins, holds the parent's share, and says when. */
static void child_holds(struct help_child *child, uint64_t key)
{
	int number;

	shares = (struct shares){0};
	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	shares_open(&shares, &member);
	number = share_find(&shares, key);
	help_child_says(child, number < 0 ? -1 : share_hold(&shares, &member, number));
	help_child_waits(child);
	_exit(0);
}

START_TEST(the_owner_carries_for_others_and_is_told_when_they_are_gone)
{
	struct shares_change change;
	struct help_child child;
	int number;

	begin();
	number = export(77);
	if (help_child(&child) == 0)
		child_holds(&child, 77);
	ck_assert_int_eq(help_child_said(&child), 0);
	ck_assert_int_eq(share_let_go(&shares, &member, number, 1), 0);
	shares_tick(&shares, &member, &change);
	ck_assert_uint_eq(change.release_bytes, 0);
	kill(child.pid, SIGKILL);
	help_child_end(&child);
	shares_tick(&shares, &member, &change);
	ck_assert_uint_eq(change.release_bytes, 64 * MIB);
	shares_tick(&shares, &member, &change);
	ck_assert_uint_eq(change.release_bytes, 0);
	end();
}
END_TEST

static void child_exports(struct help_child *child, uint64_t key)
{
	uint32_t serial;

	shares = (struct shares){0};
	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	shares_open(&shares, &member);
	share_export(&shares, &member, key, 64 * MIB, &serial);
	help_child_says(child, (int)serial);
	help_child_waits(child);
	_exit(0);
}

START_TEST(a_dead_owners_memory_becomes_the_holders_once)
{
	struct shares_change change;
	struct help_child child;
	int number, serial;

	begin();
	if (help_child(&child) == 0)
		child_exports(&child, 0);
	serial = help_child_said(&child);
	number = share_find_serial(&shares, &member, (uint32_t)child.pid, (uint32_t)serial);
	ck_assert_int_ge(number, 0);
	ck_assert_int_lt(share_find_serial(&shares, &member, (uint32_t)getpid(), (uint32_t)serial),
			 0);
	ck_assert_int_eq(share_hold(&shares, &member, number), 0);
	shares_tick(&shares, &member, &change);
	ck_assert_uint_eq(change.adopt_bytes, 0);
	kill(child.pid, SIGKILL);
	help_child_end(&child);
	shares_tick(&shares, &member, &change);
	ck_assert_uint_eq(change.adopt_bytes, 64 * MIB);
	shares_tick(&shares, &member, &change);
	ck_assert_uint_eq(change.adopt_bytes, 0);
	ck_assert_int_eq(share_let_go(&shares, &member, number, 0), 1);
	end();
}
END_TEST

START_TEST(who_imports_what_its_owner_let_go_of_is_to_charge_it)
{
	int number;

	begin();
	number = export(77);
	ck_assert_int_eq(share_let_go(&shares, &member, number, 1), 1);
	ck_assert_int_eq(share_hold(&shares, &member, number), 1);
	share_carry(&shares, &member, number);
	ck_assert_int_eq(share_is_carried(&shares, &member, number), 1);
	ck_assert_int_eq(share_let_go(&shares, &member, number, 0), 1);
	end();
}
END_TEST

START_TEST(places_are_used_again_and_a_full_table_is_told)
{
	uint32_t serial;

	begin();
	for (int i = 0; i < 5 * SHARES; i++)
		ck_assert_int_eq(share_let_go(&shares, &member, export(77), 1), 1);
	for (int i = 0; i < SHARES; i++)
		export((uint64_t)i + 1);
	ck_assert_int_lt(share_export(&shares, &member, 5, 1, &serial), 0);
	end();
}
END_TEST

START_TEST(a_file_of_noise_does_no_harm)
{
	struct shares_change change;
	uint64_t state = 1;
	uint32_t serial;

	begin();
	for (int round = 0; round < 20; round++) {
		uint64_t *words = (uint64_t *)shares.file->share;

		for (size_t i = 0; i < SHARES * sizeof(struct share) / 8; i++) {
			state = state * 6364136223846793005ull + 1442695040888963407ull;
			words[i] = state >> (state % 60);
		}
		for (int i = 0; i < SHARES; i += 7) {
			share_find(&shares, words[i]);
			share_find_serial(&shares, &member, (uint32_t)words[i], 1);
			ck_assert_uint_le(share_bytes(&shares, &member, i), 8ull << 30);
			share_hold(&shares, &member, i);
			share_let_go(&shares, &member, i, 0);
		}
		share_export(&shares, &member, 3, 1, &serial);
		shares_tick(&shares, &member, &change);
	}
	end();
}
END_TEST

START_TEST(what_is_no_table_is_not_used)
{
	char path[PATH_MAX + 64];
	int fd;

	begin();
	end();
	snprintf(path, sizeof(path), "%s/%s.shares", help_dir, HELP_UUID);
	fd = open(path, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "not ours", 8, 0), 8);
	close(fd);
	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	shares = (struct shares){0};
	ck_assert_int_ne(shares_open(&shares, &member), 0);
	ck_assert_int_lt(share_find(&shares, 77), 0);
	end();
	unlink(path);
	ck_assert_int_eq(symlink("/etc/passwd", path), 0);
	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	ck_assert_int_ne(shares_open(&shares, &member), 0);
	end();
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("shares");

	tcase_add_checked_fixture(tcase, help_setup, help_teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, what_nobody_else_holds_ends_with_its_owner);
	tcase_add_test(tcase, the_owner_carries_what_it_imported_itself_until_that_ends_too);
	tcase_add_test(tcase, a_descriptor_keeps_the_owner_the_carrier_until_it_is_closed);
	tcase_add_test(tcase, the_owner_carries_for_others_and_is_told_when_they_are_gone);
	tcase_add_test(tcase, a_dead_owners_memory_becomes_the_holders_once);
	tcase_add_test(tcase, who_imports_what_its_owner_let_go_of_is_to_charge_it);
	tcase_add_test(tcase, places_are_used_again_and_a_full_table_is_told);
	tcase_add_test(tcase, a_file_of_noise_does_no_harm);
	tcase_add_test(tcase, what_is_no_table_is_not_used);
	return help_run("memory shares", tcase);
}
