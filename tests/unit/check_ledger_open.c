/*
 * Opening: every state the directory and the file may be in, as root and as an ordinary user. What
 * cannot be opened is refused with one line and a code; nothing crashes, hangs or is repaired in silence.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "ledger_help.h"

#define USER 12345
#define MIB  (1ull << 20)

/* Runs a check as another user in a child; skipped, with a line, when not root. */
static void as_user(void (*body)(void))
{
	int status;
	pid_t pid;

	if (geteuid() != 0) {
		printf("skipped: needs root to be somebody else\n");
		return;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (syscall(SYS_setgroups, 0, NULL) != 0 || setgid(USER) != 0 || setuid(USER) != 0)
			_exit(99);
		body();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static void expect(int code)
{
	struct ledger ledger;
	struct error err = {""};
	int got = ledger_open(help_dir, HELP_UUID, &ledger, &err);

	if (got != code) {
		fprintf(stderr, "expected %d, got %d: %s\n", code, got, err.text);
		_exit(1);
	}
}

START_TEST(a_fresh_file_is_whole_and_writable_by_all_whatever_the_umask)
{
	struct stat st;

	umask(077);
	ck_assert_int_eq(help_open_code(), 0);
	ck_assert_int_eq(stat(help_path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0666);
	ck_assert_int_eq(st.st_size, sizeof(struct ledger_file));
	ck_assert_int_ge(st.st_blocks * 512, (long)sizeof(struct ledger_file));
	ck_assert_int_eq(help_open_code(), 0);
}
END_TEST

static void user_joins(void)
{
	struct ledger ledger;
	struct member member;

	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	if (ledger_charge(&member, CHARGE_LINEAR, MIB, NULL) != 0)
		_exit(1);
}

START_TEST(another_user_joins_what_root_made_with_umask_077)
{
	struct ledger ledger;
	struct member member;

	umask(077);
	ck_assert_int_eq(chmod(help_dir, 01777), 0);
	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	as_user(user_joins);
	ck_assert_uint_eq(help_total(&member), geteuid() == 0 ? MIB : 0);
	ledger_reap(&ledger);
	ck_assert_uint_eq(help_total(&member), 0);
}
END_TEST

static void user_makes(void)
{
	expect(0);
}

START_TEST(root_opens_what_a_user_made_in_a_sticky_directory)
{
	ck_assert_int_eq(chmod(help_dir, 01777), 0);
	as_user(user_makes);
	ck_assert_int_eq(help_open_code(), 0);
}
END_TEST

START_TEST(a_missing_directory_is_enoent)
{
	rmdir(help_dir);
	ck_assert_int_eq(help_open_code(), -ENOENT);
}
END_TEST

static void user_is_refused(void)
{
	expect(-EACCES);
}

START_TEST(a_directory_that_may_not_be_written_is_eacces)
{
	ck_assert_int_eq(chmod(help_dir, 0555), 0);
	as_user(user_is_refused);
}
END_TEST

START_TEST(a_file_made_beforehand_needs_no_writable_directory)
{
	ck_assert_int_eq(help_open_code(), 0);
	ck_assert_int_eq(chmod(help_dir, 0555), 0);
	as_user(user_makes);
}
END_TEST

START_TEST(a_file_of_mode_0600_of_another_user_is_eacces)
{
	ck_assert_int_eq(help_open_code(), 0);
	ck_assert_int_eq(chmod(help_dir, 01777), 0);
	ck_assert_int_eq(chmod(help_path, 0600), 0);
	as_user(user_is_refused);
}
END_TEST

START_TEST(a_full_file_system_is_enospc_and_leaves_nothing)
{
	char command[256];

	if (mount("none", help_dir, "tmpfs", 0, "size=64k") != 0) {
		printf("skipped: cannot mount a tmpfs: %s\n", strerror(errno));
		return;
	}
	ck_assert_int_eq(help_open_code(), -ENOSPC);
	snprintf(command, sizeof(command), "test -z \"$(ls -A '%s')\"", help_dir);
	ck_assert_int_eq(system(command), 0);
	umount(help_dir);
}
END_TEST

START_TEST(a_read_only_file_system_is_erofs)
{
	if (mount("none", help_dir, "tmpfs", MS_RDONLY, "size=4m") != 0) {
		printf("skipped: cannot mount a tmpfs: %s\n", strerror(errno));
		return;
	}
	ck_assert_int_eq(help_open_code(), -EROFS);
	ck_assert_int_eq(mount("none", help_dir, NULL, MS_REMOUNT, "size=4m"), 0);
	ck_assert_int_eq(help_open_code(), 0);
	ck_assert_int_eq(mount("none", help_dir, NULL, MS_REMOUNT | MS_RDONLY, "size=4m"), 0);
	ck_assert_int_eq(help_open_code(), -EROFS);
	umount(help_dir);
}
END_TEST

START_TEST(many_who_make_it_at_once_agree_on_one_file)
{
	struct help_gate *gate = help_gate();
	pid_t pids[32];
	struct ledger ledger;
	struct member member;
	unsigned i;

	for (i = 0; i < 32; i++) {
		pids[i] = fork();
		if (pids[i] != 0)
			continue;
		help_gate_pass(gate, 1);
		help_open(&ledger);
		help_join(&ledger, "train", NULL, &member);
		if (ledger_charge(&member, CHARGE_LINEAR, MIB, NULL) == 0)
			help_gate_pass(gate, 3);
		_exit(1);
	}
	help_gate_open(gate, 32, 1);
	help_gate_open(gate, 32, 2);
	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	ck_assert_uint_eq(help_total(&member), 32 * MIB);
	for (i = 0; i < 32; i++)
		kill(pids[i], SIGKILL);
	for (i = 0; i < 32; i++)
		waitpid(pids[i], NULL, 0);
	ck_assert_uint_eq(ledger_reap(&ledger), 32);
	ck_assert_uint_eq(help_total(&member), 0);
}
END_TEST

START_TEST(a_private_ledger_holds_the_cap_within_the_process)
{
	struct quota quota = {.mem_bytes = MIB};
	struct ledger ledger;
	struct member member;

	ck_assert_int_eq(ledger_open_private(HELP_UUID, &ledger, NULL), 0);
	help_join(&ledger, "train", &quota, &member);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, MIB, NULL), 0);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 1, NULL), -ENOMEM);
	ledger_leave(&member);
	ledger_close(&ledger);
}
END_TEST

START_TEST(a_reader_maps_without_writing)
{
	static struct ledger_view view;
	struct ledger ledger, reader;
	struct member member;
	struct error err;

	help_open(&ledger);
	help_join(&ledger, "train", NULL, &member);
	ledger_charge(&member, CHARGE_LINEAR, MIB, NULL);
	ck_assert_int_eq(ledger_open_read(help_path, &reader, &err), 0);
	ledger_view(&reader, &view);
	ck_assert_str_eq(view.uuid, HELP_UUID);
	ck_assert_uint_eq(help_view_group(&view, "train")->used_bytes, MIB);
	ck_assert_uint_eq(ledger_reap(&reader), 0);
	ledger_close(&reader);
	ck_assert_int_eq(ledger_open_read("/nonexistent.ledger", &reader, &err), -ENOENT);
}
END_TEST

START_TEST(the_directory_is_the_configured_one_or_none)
{
	char dir[PATH_MAX], missing[256];
	struct error err;

	ck_assert_int_eq(ledger_dir(help_dir, dir, &err), 0);
	ck_assert_str_eq(dir, help_dir);
	snprintf(missing, sizeof(missing), "%s/missing", help_dir);
	ck_assert_int_eq(ledger_dir(missing, dir, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.text, "missing"));
	ck_assert_int_eq(ledger_dir("/etc/passwd", dir, &err), -ENOTDIR);
	ck_assert_int_eq(ledger_dir("", dir, &err), 0);
	ck_assert(strcmp(dir, "/run/cuota") == 0 || strcmp(dir, "/dev/shm/cuota") == 0);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("opening");

	tcase_add_checked_fixture(tcase, help_setup, help_teardown);
	tcase_add_test(tcase, a_fresh_file_is_whole_and_writable_by_all_whatever_the_umask);
	tcase_add_test(tcase, another_user_joins_what_root_made_with_umask_077);
	tcase_add_test(tcase, root_opens_what_a_user_made_in_a_sticky_directory);
	tcase_add_test(tcase, a_missing_directory_is_enoent);
	tcase_add_test(tcase, a_directory_that_may_not_be_written_is_eacces);
	tcase_add_test(tcase, a_file_made_beforehand_needs_no_writable_directory);
	tcase_add_test(tcase, a_file_of_mode_0600_of_another_user_is_eacces);
	tcase_add_test(tcase, a_full_file_system_is_enospc_and_leaves_nothing);
	tcase_add_test(tcase, a_read_only_file_system_is_erofs);
	tcase_add_test(tcase, many_who_make_it_at_once_agree_on_one_file);
	tcase_add_test(tcase, a_private_ledger_holds_the_cap_within_the_process);
	tcase_add_test(tcase, a_reader_maps_without_writing);
	tcase_add_test(tcase, the_directory_is_the_configured_one_or_none);
	return help_run("ledger: opening", tcase);
}
