/*
 * The journal: lines that are JSON whatever a process calls itself, files bounded in size and out of others'
 * reach, and silence when nothing can be written.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/journal.h"
#include "ledger/protocol.h"

#define UUID "GPU-00000000-0000-0000-0000-000000000001"

static char dir[] = "/tmp/check-journal.XXXXXX";
static struct ledger ledger;

static void setup(void)
{
	strcpy(dir, "/tmp/check-journal.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(ledger_open(dir, UUID, &ledger, NULL), 0);
	journal_setup(dir);
}

static void teardown(void)
{
	char command[64];

	ledger_close(&ledger);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static struct slot_view some_slot(void)
{
	struct slot_view slot = {
		.pid = 4242,
		.uid = 1000,
		.start_ns = clock_now_ns() - 5 * NS_PER_S,
		.peak_bytes = 1 << 20,
		.busy_ns = 3 * NS_PER_S,
		.denials = 7,
	};

	strcpy(slot.comm, "python3");
	return slot;
}

static void path_of(const char *name, char ret[128])
{
	snprintf(ret, 128, "%s/journal/u%u-%s", dir, (unsigned)geteuid(), name);
}

static size_t read_all(const char *name, char *buf, size_t bytes)
{
	char path[128];
	size_t got;
	FILE *file;

	path_of(name, path);
	file = fopen(path, "r");
	if (!file)
		return 0;
	got = fread(buf, 1, bytes - 1, file);
	fclose(file);
	buf[got] = '\0';
	return got;
}

START_TEST(a_process_that_ends_leaves_one_line)
{
	struct slot_view slot = some_slot();
	char text[4096];

	journal_end(&ledger, &slot, "train");
	ck_assert_uint_gt(read_all("ends.jsonl", text, sizeof(text)), 0);
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
	ck_assert_ptr_nonnull(strstr(text, "\"type\":\"end\""));
	ck_assert_ptr_nonnull(strstr(text, "\"group\":\"train\""));
	ck_assert_ptr_nonnull(strstr(text, "\"pid\":4242"));
	ck_assert_ptr_nonnull(strstr(text, "\"busy_ns\":3000000000"));
	ck_assert_ptr_nonnull(strstr(text, "\"denials\":7"));
	ck_assert_ptr_nonnull(strstr(text, "\"reaped\":1")); /* it is not this process */
}
END_TEST

START_TEST(no_name_breaks_a_line)
{
	struct slot_view slot = some_slot();
	char text[4096];

	strcpy(slot.comm, "a\"b\\c\n\t\x80\xff");
	journal_end(&ledger, &slot, "x\"},{\"\n");
	read_all("ends.jsonl", text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "\"comm\":\"a?b?c????\""));
	ck_assert_ptr_nonnull(strstr(text, "\"group\":\"x?},{??\""));
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}
END_TEST

START_TEST(everybody_may_write_and_nobody_may_touch_another_s)
{
	struct slot_view slot = some_slot();
	char path[128];
	struct stat st;
	mode_t old = umask(077);

	journal_end(&ledger, &slot, "train");
	umask(old);
	snprintf(path, sizeof(path), "%s/journal", dir);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 01777);
}
END_TEST

START_TEST(a_full_file_is_moved_aside_and_the_two_are_bounded)
{
	struct slot_view slot = some_slot();
	char path[128], old[128];
	struct stat st;

	for (int i = 0; i < 14000; i++)
		journal_end(&ledger, &slot, "train");
	path_of("ends.jsonl", path);
	path_of("ends.jsonl.1", old);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_le((size_t)st.st_size, JOURNAL_END_BYTES);
	ck_assert_int_eq(stat(old, &st), 0);
	ck_assert_uint_le((size_t)st.st_size, JOURNAL_END_BYTES);
	ck_assert_uint_gt((size_t)st.st_size, JOURNAL_END_BYTES - 1024);
}
END_TEST

/* Every line of both files is whole, and none that fits is lost while two are kept. */
START_TEST(many_writers_lose_no_line)
{
	struct slot_view slot = some_slot();
	char *text = malloc(2 * JOURNAL_END_BYTES);
	size_t lines = 0;

	for (int child = 0; child < 8; child++) {
		if (fork())
			continue;
		ledger_open(dir, UUID, &ledger, NULL); /* the parent's is not the child's */
		for (int i = 0; i < 1000; i++)
			journal_end(&ledger, &slot, "train");
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	for (int old = 0; old < 2; old++) {
		size_t got =
			read_all(old ? "ends.jsonl.1" : "ends.jsonl", text, 2 * JOURNAL_END_BYTES);

		for (char *at = text, *end; at < text + got; at = end + 1) {
			end = strchr(at, '\n');
			ck_assert_ptr_nonnull(end);
			ck_assert_int_eq(strncmp(at, "{\"v\":1,", 7), 0);
			ck_assert_int_eq(end[-1], '}');
			lines++;
		}
	}
	ck_assert_uint_eq(lines, 8000);
	free(text);
}
END_TEST

START_TEST(a_link_or_a_fifo_in_the_file_s_place_is_left_alone)
{
	struct slot_view slot = some_slot();
	char path[128], target[128];
	struct stat st;

	journal_end(&ledger, &slot, "train");
	path_of("ends.jsonl", path);
	snprintf(target, sizeof(target), "%s/target", dir);
	close(open(target, O_CREAT | O_WRONLY, 0600));
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(symlink(target, path), 0);
	journal_end(&ledger, &slot, "train");
	ck_assert_int_eq(stat(target, &st), 0);
	ck_assert_int_eq(st.st_size, 0);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	journal_end(&ledger, &slot, "train"); /* does not wait for a reader */
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert(S_ISFIFO(st.st_mode));
}
END_TEST

START_TEST(what_cannot_be_written_is_silent_and_errno_stays)
{
	struct slot_view slot = some_slot();
	char path[128];

	snprintf(path, sizeof(path), "%s/journal", dir);
	close(open(path, O_CREAT | O_WRONLY, 0600)); /* a file where the directory should be */
	errno = EDOM;
	journal_end(&ledger, &slot, "train");
	ck_assert_int_eq(errno, EDOM);
}
END_TEST

START_TEST(memory_is_integrated_and_a_group_is_sampled_once)
{
	struct quota asked = {.mem_bytes = 1 << 30};
	struct member first;
	char text[8192];
	uint64_t now;

	ck_assert_int_eq(ledger_join(&ledger, "train", NULL, &asked, &first, NULL), 0);
	ck_assert_int_eq(ledger_charge(&first, CHARGE_LINEAR, 100 << 20, NULL), 0);
	now = clock_now_ns();
	journal_tick(&ledger, &first, now);
	journal_tick(&ledger, &first, now + 10 * NS_PER_S);
	ck_assert_uint_eq(atomic_load(&ledger.file->group[first.group].byte_seconds) >> 20 >= 999,
			  1);
	ck_assert_uint_eq(atomic_load(&ledger.file->group[first.group].byte_seconds) >> 20 <= 1001,
			  1);
	/* A clock that jumps back or years ahead adds nothing. */
	journal_tick(&ledger, &first, now);
	journal_tick(&ledger, &first, now + (1ull << 62));
	ck_assert_uint_lt(atomic_load(&ledger.file->group[first.group].byte_seconds) >> 20, 2100);
	read_all("samples.jsonl", text, sizeof(text));
	ck_assert_ptr_nonnull(
		strstr(text, "\"used\":104857600,\"cap\":1073741824,\"sm_bp\":10000"));
	ledger_leave(&first);
}
END_TEST

START_TEST(a_private_ledger_keeps_no_books)
{
	struct slot_view slot = some_slot();
	struct ledger own;
	char text[64];

	ck_assert_int_eq(ledger_open_private(UUID, &own, NULL), 0);
	journal_end(&own, &slot, "train");
	ck_assert_uint_eq(read_all("ends.jsonl", text, sizeof(text)), 0);
	ledger_close(&own);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("journal");
	TCase *tests = tcase_create("all");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, a_process_that_ends_leaves_one_line);
	tcase_add_test(tests, no_name_breaks_a_line);
	tcase_add_test(tests, everybody_may_write_and_nobody_may_touch_another_s);
	tcase_add_test(tests, a_full_file_is_moved_aside_and_the_two_are_bounded);
	tcase_add_test(tests, many_writers_lose_no_line);
	tcase_add_test(tests, a_link_or_a_fifo_in_the_file_s_place_is_left_alone);
	tcase_add_test(tests, what_cannot_be_written_is_silent_and_errno_stays);
	tcase_add_test(tests, memory_is_integrated_and_a_group_is_sampled_once);
	tcase_add_test(tests, a_private_ledger_keeps_no_books);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
