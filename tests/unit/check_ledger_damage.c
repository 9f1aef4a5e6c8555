/*
 * Files that are not what they should be, before opening and under living members. Each is refused with one line and
 * left as it is; members of a file that is cut short or replaced go on.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>

#include "ledger_help.h"

#define MIB (1ull << 20)

static void write_file(const void *bytes, size_t count)
{
	int fd = open(help_path, O_CREAT | O_TRUNC | O_WRONLY, 0666);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, count), (ssize_t)count);
	close(fd);
}

static void change_bytes(off_t at, const void *bytes, size_t count)
{
	int fd = open(help_path, O_WRONLY);

	ck_assert_int_eq(pwrite(fd, bytes, count, at), (ssize_t)count);
	close(fd);
}

START_TEST(a_symbolic_link_is_not_followed)
{
	char target[256];
	struct stat st;

	snprintf(target, sizeof(target), "%s/target", help_dir);
	ck_assert_int_eq(symlink(target, help_path), 0);
	ck_assert_int_eq(help_open_code(), -ELOOP);
	ck_assert_int_ne(stat(target, &st), 0);
}
END_TEST

START_TEST(what_is_not_a_regular_file_is_refused_without_waiting)
{
	switch (_i) {
	case 0: ck_assert_int_eq(mkfifo(help_path, 0666), 0); break;
	case 1: ck_assert_int_eq(mkdir(help_path, 0777), 0); break;
	}
	ck_assert_int_ne(help_open_code(), 0);
}
END_TEST

START_TEST(a_file_of_a_wrong_size_is_refused)
{
	static const size_t sizes[] = {0, 1, 4096, sizeof(struct ledger_file) - 1,
				       sizeof(struct ledger_file) + 1};
	struct stat st;

	ck_assert_int_eq(help_open_code(), 0);
	ck_assert_int_eq(truncate(help_path, (off_t)sizes[_i]), 0);
	ck_assert_int_eq(help_open_code(), -EPROTO);
	ck_assert_int_eq(stat(help_path, &st), 0);
	ck_assert_uint_eq((size_t)st.st_size, sizes[_i]);
}
END_TEST

START_TEST(a_damaged_header_is_refused)
{
	static unsigned char bytes[sizeof(struct ledger_file)];
	uint32_t newer = LEDGER_VERSION + 1;
	unsigned char byte = 0xff;
	unsigned i;

	ck_assert_int_eq(help_open_code(), 0);
	switch (_i) {
	case 0: write_file(bytes, sizeof(bytes)); break; /* zeroes */
	case 1:
		for (i = 0; i < sizeof(bytes); i++)
			bytes[i] = (unsigned char)(i * 2654435761u >> 13);
		write_file(bytes, sizeof(bytes));
		break;
	case 2: change_bytes(0, &byte, 1); break; /* magic */
	case 3: change_bytes(offsetof(struct ledger_header, version), &newer, sizeof(newer)); break;
	case 4: change_bytes(offsetof(struct ledger_header, checksum), &byte, 1); break;
	case 5: change_bytes(offsetof(struct ledger_header, uuid), &byte, 1); break;
	case 6: change_bytes(offsetof(struct ledger_header, slots), &byte, 1); break;
	}
	ck_assert_int_eq(help_open_code(), -EPROTO);
}
END_TEST

START_TEST(a_ledger_of_another_device_is_refused)
{
	char other[256];

	ck_assert_int_eq(help_open_code(), 0);
	snprintf(other, sizeof(other), "%s/GPU-other.ledger", help_dir);
	ck_assert_int_eq(link(help_path, other), 0);
	struct ledger ledger;
	ck_assert_int_eq(ledger_open(help_dir, "GPU-other", &ledger, NULL), -EPROTO);
}
END_TEST

START_TEST(a_uuid_that_is_no_file_name_is_einval)
{
	static const char *const uuids[] = {"", "../x", "GPU/1",
					    "GPU-1234567890123456789012345678901234567890123456789",
					    "a b"};
	struct ledger ledger;
	unsigned i;

	for (i = 0; i < sizeof(uuids) / sizeof(uuids[0]); i++)
		ck_assert_int_eq(ledger_open(help_dir, uuids[i], &ledger, NULL), -EINVAL);
}
END_TEST

START_TEST(a_file_cut_short_under_its_members_leaves_them_their_own_cap)
{
	struct quota quota = {.mem_bytes = 8 * MIB};
	struct ledger ledger;
	struct member member;

	help_open(&ledger);
	help_join(&ledger, "train", &quota, &member);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 6 * MIB, NULL), 0);
	ck_assert_int_eq(truncate(help_path, 100), 0);
	ck_assert_int_eq(member_tend(&member, NULL), 0);
	ck_assert_int_eq(ledger.private_copy, 1);
	ck_assert_uint_eq(help_total(&member), 6 * MIB);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 3 * MIB, NULL), -ENOMEM);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 2 * MIB, NULL), 0);
	ck_assert_int_eq(member_tend(&member, NULL), 0);
	ledger_leave(&member);
	ledger_close(&ledger);
}
END_TEST

START_TEST(a_file_replaced_under_its_members_is_followed)
{
	struct quota quota = {.mem_bytes = 8 * MIB};
	struct ledger ledger, fresh;
	struct member member, other;

	help_open(&ledger);
	help_join(&ledger, "train", &quota, &member);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 6 * MIB, NULL), 0);
	ck_assert_int_eq(unlink(help_path), 0);
	if (_i == 1) { /* else tend makes it anew */
		help_open(&fresh);
		ledger_close(&fresh);
	}
	ck_assert_int_eq(member_tend(&member, NULL), 0);
	ck_assert_uint_eq(member.lost, 0);
	help_open(&fresh);
	help_join(&fresh, "train", NULL, &other);
	ck_assert_uint_eq(help_total(&other), 6 * MIB);
	ck_assert_int_eq(ledger_charge(&other, CHARGE_LINEAR, 3 * MIB, NULL), -ENOMEM);
	ledger_refund(&member, CHARGE_LINEAR, 6 * MIB);
	ck_assert_uint_eq(help_total(&other), 0);
	ledger_leave(&member);
	ledger_leave(&other);
	ledger_close(&ledger);
	ledger_close(&fresh);
}
END_TEST

START_TEST(a_path_that_leads_nowhere_is_no_reason_to_leave)
{
	struct ledger ledger;
	struct member member;
	char away[160];

	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, MIB, NULL), 0);
	snprintf(away, sizeof(away), "%s.away", help_dir);
	ck_assert_int_eq(rename(help_dir, away), 0); /* as after chroot(2) */
	ck_assert_int_eq(member_tend(&member, NULL), 0);
	ck_assert_uint_eq(member.lost, 0);
	ck_assert_int_eq(rename(away, help_dir), 0);
	ck_assert_int_eq(member_tend(&member, NULL), 0);
	ck_assert_uint_eq(help_total(&member), MIB);
	ledger_leave(&member);
	ledger_close(&ledger);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("damage");

	tcase_add_checked_fixture(tcase, help_setup, help_teardown);
	tcase_add_test(tcase, a_symbolic_link_is_not_followed);
	tcase_add_loop_test(tcase, what_is_not_a_regular_file_is_refused_without_waiting, 0, 2);
	tcase_add_loop_test(tcase, a_file_of_a_wrong_size_is_refused, 0, 5);
	tcase_add_loop_test(tcase, a_damaged_header_is_refused, 0, 7);
	tcase_add_test(tcase, a_ledger_of_another_device_is_refused);
	tcase_add_test(tcase, a_uuid_that_is_no_file_name_is_einval);
	tcase_add_test(tcase, a_file_cut_short_under_its_members_leaves_them_their_own_cap);
	tcase_add_test(tcase, a_path_that_leads_nowhere_is_no_reason_to_leave);
	tcase_add_loop_test(tcase, a_file_replaced_under_its_members_is_followed, 0, 2);
	return help_run("ledger: damage", tcase);
}
