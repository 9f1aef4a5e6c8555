/*
 * The log (src/base/log.c) as a guest in somebody else's program: where lines go, and what stays
 * untouched: stdout, errno, signals, descriptors and links. Stderr is replaced by a pipe or a file.
 */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static char dir[] = "/tmp/check_log.XXXXXX";
static char path[64], error_path[64];
static int saved_stderr;

/* Each test runs in a process of its own; its stderr is a file there. */
static void redirect(void)
{
	int fd;

	strcpy(dir, "/tmp/check_log.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/log", dir);
	snprintf(error_path, sizeof(error_path), "%s/stderr", dir);
	saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
	fd = open(error_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	close(fd);
}

static void restore(void)
{
	char command[128];

	dup2(saved_stderr, STDERR_FILENO);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

/* The whole file, "" if it is missing. */
static const char *text_of(const char *name)
{
	static char text[1 << 20];
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static int lines_in(const char *name)
{
	int lines = 0;

	for (const char *c = text_of(name); *c; c++)
		lines += *c == '\n';
	return lines;
}

static int open_descriptors(void)
{
	DIR *fds = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(fds))
		count++;
	closedir(fds);
	return count;
}

START_TEST(nothing_is_written_unless_asked_for)
{
	log_line(LOG_ERROR, "before any setup");
	log_setup(LOG_OFF, "");
	for (int level = LOG_OFF; level <= LOG_DEBUG; level++)
		log_line((enum log_level)level, "level %d", level);
	log_setup(LOG_OFF, path);
	log_line(LOG_ERROR, "off");
	ck_assert_str_eq(text_of(error_path), "");
	ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

START_TEST(a_level_lets_through_itself_and_what_is_worse)
{
	for (int level = LOG_OFF; level <= LOG_DEBUG; level++) {
		unlink(path);
		log_setup((enum log_level)level, path);
		for (int line = LOG_ERROR; line <= LOG_DEBUG; line++)
			log_line((enum log_level)line, "line %d", line);
		ck_assert_int_eq(lines_in(path), level);
	}
	ck_assert_str_eq(text_of(error_path), "");
}
END_TEST

START_TEST(a_line_names_program_process_and_level)
{
	static const char *const names[] = {"off", "error", "warn", "info", "debug"};

	log_setup(LOG_DEBUG, "");
	for (int level = LOG_ERROR; level <= LOG_DEBUG; level++) {
		char want[64];

		ck_assert_int_eq(ftruncate(STDERR_FILENO, 0), 0);
		log_line((enum log_level)level, "text %s=%d", "key", 7);
		snprintf(want, sizeof(want), "cuota[%d]: %s: text key=7\n", (int)getpid(),
			 names[level]);
		ck_assert_str_eq(text_of(error_path), want);
	}
}
END_TEST

START_TEST(whatever_is_in_a_message_it_stays_one_line_of_at_most_512_bytes)
{
	static char longest[5000];

	memset(longest, 'x', sizeof(longest) - 1);
	log_setup(LOG_INFO, "");
	log_line(LOG_INFO, "a\nb\rc\x1b[31md\te%s", "");
	ck_assert_int_eq(lines_in(error_path), 1);
	ck_assert_ptr_nonnull(strstr(text_of(error_path), "a?b?c?[31md?e\n"));
	ck_assert_int_eq(ftruncate(STDERR_FILENO, 0), 0);
	log_line(LOG_INFO, "%s", longest);
	ck_assert_uint_eq(strlen(text_of(error_path)), 511);
	ck_assert_int_eq(lines_in(error_path), 1);
	ck_assert_int_eq(ftruncate(STDERR_FILENO, 0), 0);
	log_must("%s\n%s", longest, longest);
	ck_assert_int_eq(lines_in(error_path), 1);
	log_line(LOG_INFO, "%s", "%s%n%d");
	ck_assert_ptr_nonnull(strstr(text_of(error_path), "info: %s%n%d\n"));
}
END_TEST

START_TEST(what_must_be_seen_is_on_stderr_with_the_log_off_and_in_the_log_as_well_with_it_on)
{
	log_must("CUOTA_MEM='8': no unit: write 8G or 8M");
	ck_assert_str_eq(text_of(error_path), "cuota: CUOTA_MEM='8': no unit: write 8G or 8M\n");
	log_setup(LOG_ERROR, path);
	log_must("again %d", 2);
	ck_assert_int_eq(lines_in(error_path), 2);
	ck_assert_ptr_nonnull(strstr(text_of(path), "error: again 2\n"));
	log_setup(LOG_ERROR, "");
	log_must("once");
	ck_assert_int_eq(lines_in(error_path), 3); /* not twice on the same stderr */
}
END_TEST

START_TEST(errno_is_kept_whether_the_line_is_written_or_not)
{
	static const char *const places[] = {"", "/nowhere/log", "/", "/dev/full"};

	for (int i = 0; i < COUNT(places); i++) {
		log_setup(LOG_INFO, places[i]);
		errno = 4321;
		log_line(LOG_INFO, "x");
		log_line(LOG_DEBUG, "x");
		log_must("x");
		ck_assert_int_eq(errno, 4321);
	}
	close(STDERR_FILENO);
	log_setup(LOG_INFO, "");
	errno = 4321;
	log_line(LOG_INFO, "x");
	log_must("x");
	ck_assert_int_eq(errno, 4321);
}
END_TEST

START_TEST(no_descriptor_stays_open_so_the_host_may_close_and_reuse_all_of_them)
{
	int before = open_descriptors();

	log_setup(LOG_INFO, path);
	log_line(LOG_INFO, "one");
	log_must("two");
	ck_assert_int_eq(open_descriptors(), before);
	ck_assert_int_eq(lines_in(path), 2);
	ck_assert_int_eq(unlink(path), 0); /* and it may be rotated away */
	log_line(LOG_INFO, "three");
	ck_assert_int_eq(lines_in(path), 1);
}
END_TEST

START_TEST(a_log_file_is_appended_to_and_not_for_others_to_write)
{
	struct stat info;

	log_setup(LOG_INFO, path);
	for (int i = 0; i < 3; i++)
		log_line(LOG_INFO, "line %d", i);
	ck_assert_int_eq(lines_in(path), 3);
	ck_assert_int_eq(stat(path, &info), 0);
	ck_assert_uint_eq(info.st_mode & 022, 0);
}
END_TEST

START_TEST(a_log_file_that_cannot_be_opened_is_told_once_and_never_followed_through_a_link)
{
	char target[64];

	snprintf(target, sizeof(target), "%s/target", dir);
	ck_assert_int_eq(symlink(target, path), 0);
	log_setup(LOG_INFO, path);
	for (int i = 0; i < 5; i++)
		log_line(LOG_INFO, "line %d", i);
	ck_assert_int_eq(access(target, F_OK), -1);
	ck_assert_int_eq(lines_in(error_path), 1);
	ck_assert_ptr_nonnull(strstr(text_of(error_path), "is a symbolic link"));
	ck_assert_ptr_nonnull(strstr(text_of(error_path), "cuota: CUOTA_LOG_FILE='/tmp/"));
}
END_TEST

START_TEST(stdout_is_not_reached_through_its_name_either)
{
	static const char *const names[] = {"/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"};
	int out = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);

	dup2(out, STDOUT_FILENO);
	for (int i = 0; i < COUNT(names); i++) {
		log_setup(LOG_INFO, names[i]);
		log_line(LOG_INFO, "x");
	}
	dup2(saved, STDOUT_FILENO);
	ck_assert_str_eq(text_of(path), "");
}
END_TEST

START_TEST(a_fifo_without_a_reader_does_not_stop_the_program)
{
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	log_setup(LOG_INFO, path);
	log_line(LOG_INFO, "x");
}
END_TEST

/* Stderr a pipe whose reader has gone: a plain write would kill this process. */
static void break_stderr(void)
{
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	dup2(ends[1], STDERR_FILENO);
	close(ends[0]);
	close(ends[1]);
}

static volatile sig_atomic_t signals_seen;

static void count_signal(int number)
{
	(void)number;
	signals_seen++;
}

START_TEST(a_reader_that_has_gone_raises_no_signal_and_leaves_the_mask_alone)
{
	sigset_t before, after;

	signal(SIGPIPE, count_signal);
	break_stderr();
	log_setup(LOG_INFO, "");
	sigprocmask(SIG_SETMASK, NULL, &before);
	log_line(LOG_INFO, "x");
	log_must("x");
	sigprocmask(SIG_SETMASK, NULL, &after);
	ck_assert_int_eq(signals_seen, 0);
	for (int number = 1; number < NSIG; number++)
		ck_assert_int_eq(sigismember(&before, number), sigismember(&after, number));
	ck_assert_int_eq(raise(SIGPIPE), 0); /* the host's own signals still arrive */
	ck_assert_int_eq(signals_seen, 1);
}
END_TEST

START_TEST(a_pending_signal_of_the_host_stays_pending)
{
	sigset_t pipe_signal, pending;

	signal(SIGPIPE, count_signal);
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	sigprocmask(SIG_BLOCK, &pipe_signal, NULL);
	raise(SIGPIPE);
	break_stderr();
	log_setup(LOG_INFO, "");
	log_line(LOG_INFO, "x");
	sigpending(&pending);
	ck_assert_int_eq(sigismember(&pending, SIGPIPE), 1);
	sigprocmask(SIG_UNBLOCK, &pipe_signal, NULL);
	ck_assert_int_eq(signals_seen, 1);
}
END_TEST

START_TEST(a_file_at_its_size_limit_kills_nobody)
{
	struct rlimit limit = {.rlim_cur = 10, .rlim_max = RLIM_INFINITY};
	int status;
	pid_t child = fork();

	if (child == 0) {
		setrlimit(RLIMIT_FSIZE, &limit);
		log_setup(LOG_INFO, path);
		log_line(LOG_INFO, "this is longer than ten bytes");
		log_line(LOG_INFO, "and this finds the file full");
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
}
END_TEST

static void *write_many(void *text)
{
	for (int i = 0; i < 500; i++)
		log_line(LOG_INFO, "%s", (const char *)text);
	return NULL;
}

START_TEST(threads_and_children_write_whole_lines)
{
	static char text[300];
	pthread_t threads[4];
	char line[1024];
	int lines = 0;
	pid_t child;
	FILE *log;

	memset(text, 'y', sizeof(text) - 1);
	log_setup(LOG_INFO, path);
	child = fork();
	for (int i = 0; i < COUNT(threads); i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, write_many, text), 0);
	for (int i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	if (child == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	log = fopen(path, "re"); /* too much for text_of() */
	while (fgets(line, sizeof(line), log)) {
		ck_assert_msg(strncmp(line, "cuota[", 6) == 0 && strstr(line, text), "%s", line);
		lines++;
	}
	fclose(log);
	ck_assert_int_eq(lines, 2 * 4 * 500);
}
END_TEST

START_TEST(a_repeated_message_is_let_through_once_per_interval)
{
	uint64_t last = 0;

	ck_assert_int_eq(log_allowed(&last, 0, 100), 1);
	ck_assert_int_eq(log_allowed(&last, 50, 100), 0);
	ck_assert_int_eq(log_allowed(&last, 1000, 100), 1);
	ck_assert_int_eq(log_allowed(&last, 1000, 100), 0);
	ck_assert_int_eq(log_allowed(&last, 1099, 100), 0);
	ck_assert_int_eq(log_allowed(&last, 1100, 100), 1);
	ck_assert_int_eq(log_allowed(&last, 1050, 100),
			 0); /* another thread's clock, a moment behind */
	ck_assert_int_eq(log_allowed(&last, 1050, 0), 0);
	ck_assert_int_eq(log_allowed(&last, UINT64_MAX, 100), 1);
}
END_TEST

static uint64_t shared_last;
static int allowed_count;

static void *ask_many(void *unused)
{
	(void)unused;
	for (uint64_t now = 1; now <= 100000; now++)
		if (log_allowed(&shared_last, now, 1000))
			__atomic_fetch_add(&allowed_count, 1, __ATOMIC_RELAXED);
	return NULL;
}

START_TEST(threads_share_one_interval)
{
	pthread_t threads[4];

	for (int i = 0; i < COUNT(threads); i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_many, NULL), 0);
	for (int i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_ge(allowed_count, 1);
	ck_assert_int_le(allowed_count, 100);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("log");
	TCase *tests = tcase_create("log");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, redirect, restore);
	tcase_add_test(tests, nothing_is_written_unless_asked_for);
	tcase_add_test(tests, a_level_lets_through_itself_and_what_is_worse);
	tcase_add_test(tests, a_line_names_program_process_and_level);
	tcase_add_test(tests, whatever_is_in_a_message_it_stays_one_line_of_at_most_512_bytes);
	tcase_add_test(
		tests,
		what_must_be_seen_is_on_stderr_with_the_log_off_and_in_the_log_as_well_with_it_on);
	tcase_add_test(tests, errno_is_kept_whether_the_line_is_written_or_not);
	tcase_add_test(tests, no_descriptor_stays_open_so_the_host_may_close_and_reuse_all_of_them);
	tcase_add_test(tests, a_log_file_is_appended_to_and_not_for_others_to_write);
	tcase_add_test(
		tests,
		a_log_file_that_cannot_be_opened_is_told_once_and_never_followed_through_a_link);
	tcase_add_test(tests, stdout_is_not_reached_through_its_name_either);
	tcase_add_test(tests, a_fifo_without_a_reader_does_not_stop_the_program);
	tcase_add_test(tests, a_reader_that_has_gone_raises_no_signal_and_leaves_the_mask_alone);
	tcase_add_test(tests, a_pending_signal_of_the_host_stays_pending);
	tcase_add_test(tests, a_file_at_its_size_limit_kills_nobody);
	tcase_add_test(tests, threads_and_children_write_whole_lines);
	tcase_add_test(tests, a_repeated_message_is_let_through_once_per_interval);
	tcase_add_test(tests, threads_share_one_interval);
	tcase_set_timeout(tests, 30);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
