/*
 * Reading small files (src/base/file.c): whom an open file is believed, and numbers found in texts
 * of /etc/passwd's shape whatever is in them.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define COUNT(array)  ((int)(sizeof(array) / sizeof((array)[0])))
#define STRANGER      54321
#define OVERFLOW_UID  65534
#define UNKNOWN_VALUE 77u

static char path[] = "/tmp/check_file.XXXXXX";

static void make_file(void)
{
	int fd;

	strcpy(path, "/tmp/check_file.XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void remove_file(void)
{
	unlink(path);
}

static void write_text(const char *text, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	ck_assert_int_eq(write(fd, text, bytes), (ssize_t)bytes);
	close(fd);
}

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
			     "alice:x:1000:1000:Alice,,,:/home/alice:/bin/bash\n"
			     "alic:x:1001:1001::/home/alic:/bin/sh\n"
			     "bob::1002:1002::/home/bob:/bin/sh\n"
			     "minus:x:-1:1::/:/bin/sh\n"
			     "word:x:abc:1::/:/bin/sh\n"
			     "huge:x:99999999999:1::/:/bin/sh\n"
			     "short:x\n"
			     "shorter\n"
			     "\n"
			     "# comment:x:5:5\n"
			     "+::::::\n"
			     "students:x:2000:alice,bob\n"
			     "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin";

static const struct {
	const char *name;
	unsigned id; /* UNKNOWN_VALUE: not there */
} ids[] = {
	{"root", 0},
	{"alice", 1000},
	{"alic", 1001},
	{"bob", 1002},
	{"students", 2000},
	{"nobody", 65534},
	{"ali", UNKNOWN_VALUE},
	{"alicee", UNKNOWN_VALUE},
	{"Alice", UNKNOWN_VALUE},
	{"x", UNKNOWN_VALUE},
	{"", UNKNOWN_VALUE},
	{"minus", UNKNOWN_VALUE},
	{"word", UNKNOWN_VALUE},
	{"huge", UNKNOWN_VALUE},
	{"short", UNKNOWN_VALUE},
	{"shorter", UNKNOWN_VALUE},
	{"alice:x:1000", UNKNOWN_VALUE},
};

START_TEST(a_name_has_the_number_of_its_own_line_or_none)
{
	unsigned id = UNKNOWN_VALUE;
	int r;

	write_text(passwd, sizeof(passwd) - 1);
	r = file_find_id(path, ids[_i].name, &id);
	ck_assert_msg(r == (ids[_i].id == UNKNOWN_VALUE ? -ENOENT : 0), "%s: %d", ids[_i].name, r);
	ck_assert_uint_eq(id, ids[_i].id);
}
END_TEST

START_TEST(names_are_found_behind_lines_of_any_length)
{
	static char text[200000];

	/* Around the reader's buffer of 4,095 bytes, where a cut line could be taken for two. */
	for (size_t length = 1; length < 12300; length += length < 4000 || length > 4200 ? 37 : 1) {
		unsigned id = UNKNOWN_VALUE;
		int used;

		memset(text, 'm', length);
		memcpy(text, "long:x:9:", length < 9 ? length : 9);
		memcpy(text + length - (length > 20 ? 15 : 0), "trap:x:666:trap",
		       length > 20 ? 15 : 0);
		used = snprintf(text + length, 64, "\ntarget:x:1234:rest\nlast:x:5:");
		write_text(text, length + (size_t)used);
		ck_assert_msg(file_find_id(path, "target", &id) == 0 && id == 1234, "length %zu",
			      length);
		ck_assert_msg(file_find_id(path, "last", &id) == 0 && id == 5, "length %zu",
			      length);
		ck_assert_int_eq(file_find_id(path, "trap", &id), -ENOENT);
		if (length > 9)
			ck_assert_msg(file_find_id(path, "long", &id) == 0 && id == 9, "%zu",
				      length);
	}
}
END_TEST

START_TEST(a_missing_database_knows_nobody)
{
	unsigned id;

	ck_assert_int_eq(file_find_id("/nowhere/passwd", "root", &id), -ENOENT);
	ck_assert_int_lt(file_find_id("/tmp", "root", &id), 0);
}
END_TEST

START_TEST(a_text_is_read_whole_or_not_at_all)
{
	char buf[11];
	size_t length = 0;
	int fd;

	write_text("0123456789", 10);
	fd = file_open_text(AT_FDCWD, path, FILE_ANY, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_eq(file_read_text(fd, buf, sizeof(buf), &length), 0);
	ck_assert_str_eq(buf, "0123456789");
	ck_assert_uint_eq(length, 10);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(file_read_text(fd, buf, 10, &length), -EFBIG);
	close(fd);
	file_slurp(path, buf, 5);
	ck_assert_str_eq(buf, "0123");
	file_slurp("/nowhere", buf, sizeof(buf));
	ck_assert_str_eq(buf, "");
	file_slurp("/proc/self/mem", buf, sizeof(buf)); /* opens, and cannot be read */
	ck_assert_str_eq(buf, "");
}
END_TEST

static int opens(enum file_trust trust)
{
	int fd = file_open_text(AT_FDCWD, path, trust, NULL);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

START_TEST(trust_depends_on_owner_and_mode)
{
	ck_assert_int_eq(chmod(path, 0644), 0);
	ck_assert_int_eq(opens(FILE_ANY), 0);
	ck_assert_int_eq(opens(FILE_ROOT_OR_CALLER), 0);
	ck_assert_int_eq(opens(FILE_ROOT), geteuid() == 0 ? 0 : -EPERM);
	ck_assert_int_eq(chmod(path, 0664), 0);
	ck_assert_int_eq(opens(FILE_ANY), 0);
	ck_assert_int_eq(opens(FILE_ROOT_OR_CALLER), -EPERM);
	ck_assert_int_eq(chmod(path, 0644), 0);
	if (geteuid() != 0)
		return;
	ck_assert_int_eq(chown(path, STRANGER, STRANGER), 0);
	ck_assert_int_eq(opens(FILE_ROOT), -EPERM);
	ck_assert_int_eq(opens(FILE_ROOT_OR_CALLER), -EPERM);
	ck_assert_int_eq(chown(path, OVERFLOW_UID, OVERFLOW_UID), 0);
	ck_assert_int_eq(opens(FILE_ROOT), -EPERM); /* here it is nobody, not an unmapped root */
}
END_TEST

START_TEST(in_a_rootless_container_the_hosts_root_is_still_root)
{
	int status;
	pid_t child;

	if (geteuid() != 0)
		return; /* needs a file of root's and a process that is not root */
	ck_assert_int_eq(chmod(path, 0644), 0);
	child = fork();
	if (child == 0) {
		if (setuid(STRANGER) < 0 || unshare(CLONE_NEWUSER) < 0)
			_exit(77); /* user namespaces are switched off here */
		_exit(opens(FILE_ROOT) == 0 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77),
		      "status %x", status);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("file");
	TCase *tests = tcase_create("file");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, make_file, remove_file);
	tcase_add_loop_test(tests, a_name_has_the_number_of_its_own_line_or_none, 0, COUNT(ids));
	tcase_add_test(tests, names_are_found_behind_lines_of_any_length);
	tcase_add_test(tests, a_missing_database_knows_nobody);
	tcase_add_test(tests, a_text_is_read_whole_or_not_at_all);
	tcase_add_test(tests, trust_depends_on_owner_and_mode);
	tcase_add_test(tests, in_a_rootless_container_the_hosts_root_is_still_root);
	tcase_set_timeout(tests, 60);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
