/*
 * The admin's policy (src/base/policy.c, policy_parse.c): what its sections give to whom, what is
 * refused with file and line, and which files are not believed. Files live in a directory of the
 * test's own; as root the tests also give them to other users.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/policy.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define G	     (1ull << 30)
#define UUID	     "GPU-8f3a1c52-0000-1111-2222-333344445555"
#define STRANGER     54321 /* a uid that is neither root nor us */

static char dir[] = "/tmp/check_policy.XXXXXX";
static char path[128], conf_d[128];

static void make_dir(void)
{
	strcpy(dir, "/tmp/check_policy.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/cuota.conf", dir);
	snprintf(conf_d, sizeof(conf_d), "%s/conf.d", dir);
}

static void remove_dir(void)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

static void write_bytes(const char *name, const char *text, size_t bytes, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, bytes), (ssize_t)bytes);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	close(fd);
}

static void write_file(const char *name, const char *text)
{
	write_bytes(name, text, strlen(text), 0644);
}

static struct policy *read_policy(const char *text)
{
	struct policy *policy = NULL;
	struct error err = {""};

	write_file(path, text);
	ck_assert_msg(policy_read_from("", path, &policy, &err) == 0, "%s", err.text);
	ck_assert_str_eq(err.text, "");
	return policy;
}

static struct quota quota_for(const char *text, const struct policy_subject *who)
{
	struct policy *policy = read_policy(text);
	struct quota quota = policy_quota(policy, who);

	policy_free(policy);
	return quota;
}

static const unsigned gids[] = {2000, 2001};
static const struct policy_subject alice = {
	.uid = 1000,
	.gids = gids,
	.gid_count = 2,
	.group = "train",
	.uuid = UUID,
	.device_bytes = 80 * G,
};

static const struct {
	const char *text;
	struct quota quota; /* for alice */
} good[] = {
	{"", {0}},
	{"\n\n# nothing\n; nothing\n  # nothing\n", {0}},
	{"[default]\n", {0}},
	{"[default]\nmem = 20G\n", {.mem_bytes = 20 * G}},
	{"[default]\nmem=20G", {.mem_bytes = 20 * G}},
	{"[default]\r\nmem = 20G\r\n", {.mem_bytes = 20 * G}},
	{"  [ default ]  \n\t mem\t=\t20G \t\n", {.mem_bytes = 20 * G}},
	{"[default]\nmem = 20G # for all\nsm = 50% ; half\n", {.mem_bytes = 20 * G, .sm_bp = 5000}},
	{"[default]\nmem = 50%\n", {.mem_bytes = 40 * G}},
	{"[default]\nmem = none\nsm = none\n", {.mem_bytes = QUOTA_NONE, .sm_bp = QUOTA_SM_NONE}},
	{"[default]\nmem-per-process = 10G\n", {.mem_process_bytes = 10 * G}},
	{"[default]\nweight = 50\npriority = low\n", {.weight = 50, .priority = PRIORITY_LOW}},
	{"[default]\nmem=20G\nmem-per-process=10G\nsm=50%\nweight=100\npriority=normal\n",
	 {20 * G, 10 * G, 5000, 100, PRIORITY_NORMAL}},
	/* who */
	{"[user 1000]\nmem = 8G\n", {.mem_bytes = 8 * G}},
	{"[user 1001]\nmem = 8G\n", {0}},
	{"[user \"1000\"]\nmem = 8G\n", {.mem_bytes = 8 * G}},
	{"[user root]\nmem = 8G\n", {0}},
	{"[user 0]\nmem = 8G\n", {0}},
	{"[unix-group 2001]\nmem = 8G\n", {.mem_bytes = 8 * G}},
	{"[unix-group 2002]\nmem = 8G\n", {0}},
	{"[unix-group root]\nmem = 8G\n", {0}},
	{"[group train]\nmem = 8G\n", {.mem_bytes = 8 * G}},
	{"[group \"train\"]\nmem = 8G\n", {.mem_bytes = 8 * G}},
	{"[group trai]\nmem = 8G\n", {0}},
	{"[group training]\nmem = 8G\n", {0}},
	{"[gpu " UUID "]\nmem = 8G\n", {.mem_bytes = 8 * G}},
	{"[gpu GPU-8f3a]\nmem = 8G\n", {.mem_bytes = 8 * G}},
	{"[gpu gpu-8F3A]\nmem = 8G\n", {.mem_bytes = 8 * G}},
	{"[gpu GPU-beef]\nmem = 8G\n", {0}},
	{"[gpu MIG-8f3a]\nmem = 8G\n", {0}},
	/* how sections go together */
	{"[default]\nmem = 20G\n[user 1000]\nmem = 40G\n", {.mem_bytes = 40 * G}},
	{"[user 1000]\nmem = 40G\n[default]\nmem = 20G\n", {.mem_bytes = 40 * G}},
	{"[default]\nmem = 20G\n[user 1000]\nmem = none\n", {.mem_bytes = QUOTA_NONE}},
	{"[default]\nmem = 20G\n[user 1000]\nmem = 10G\n", {.mem_bytes = 10 * G}},
	{"[default]\nmem = 20G\nsm = 50%\n[user 1000]\nmem = 40G\n",
	 {.mem_bytes = 40 * G, .sm_bp = 5000}},
	{"[default]\nmem = 20G\n[user 1001]\nmem = 40G\n", {.mem_bytes = 20 * G}},
	{"[user 1000]\nmem = 40G\n[unix-group 2000]\nmem = 30G\n", {.mem_bytes = 30 * G}},
	{"[user 1000]\nmem = 40G\n[gpu GPU-8f3a]\nmem = 30G\n", {.mem_bytes = 30 * G}},
	{"[user 1000]\nmem = 40G\n[user 1000]\nmem = 30G\n", {.mem_bytes = 30 * G}},
	{"[default]\nmem = 40G\n[default]\nmem = 30G\n", {.mem_bytes = 30 * G}},
	{"[default]\nmem = 20G\n[group train]\nmem = 40G\n", {.mem_bytes = 20 * G}},
	{"[default]\nmem = 20G\n[group train]\nmem = none\n", {.mem_bytes = 20 * G}},
	{"[default]\nmem = 20G\n[group train]\nmem = 10G\n", {.mem_bytes = 10 * G}},
	{"[user 1000]\nmem = none\n[group train]\nmem = 10G\n", {.mem_bytes = 10 * G}},
	{"[user 1000]\nweight = 300\n[unix-group 2000]\nweight = 200\n", {.weight = 200}},
	{"[user 1000]\npriority = high\n[group train]\npriority = low\n",
	 {.priority = PRIORITY_LOW}},
};

START_TEST(a_policy_gives_a_user_what_its_sections_say)
{
	struct quota want = good[_i].quota, got = quota_for(good[_i].text, &alice);

	ck_assert_msg(got.mem_bytes == want.mem_bytes &&
			      got.mem_process_bytes == want.mem_process_bytes &&
			      got.sm_bp == want.sm_bp && got.weight == want.weight &&
			      got.priority == want.priority,
		      "%s gives mem %llu sm %u weight %u priority %u", good[_i].text,
		      (unsigned long long)got.mem_bytes, got.sm_bp, got.weight, got.priority);
}
END_TEST

static const struct {
	const char *text;
	const char *reason; /* behind "FILE:" */
} bad[] = {
	{"mem = 8G\n", "1: a setting before any [section]"},
	{"\n\nmem = 8G\n", "3: a setting before any [section]"},
	{"[default]\nmem = 8\n", "2: mem='8': no unit: write 8G or 8M"},
	{"[default]\nmem =\n", "2: mem='': empty"},
	{"[default]\nmem\n", "2: neither [section] nor key = value: 'mem'"},
	{"[default]\nmem = 0\n", "2: mem='0': zero"},
	{"[default]\nmem = -1\n", "2: mem='-1': negative"},
	{"[default]\nmem = unlimited\n", "2: mem='unlimited': not a number"},
	{"[default]\nmem = 8 G\n", "2: mem='8 G': blank inside"},
	{"[default]\nmem = 0=8G,1=4G\n", "2: mem='0=8G,1=4G': unknown unit"},
	{"[default]\nmem = 8G#x\n", "2: mem='8G#x': unknown unit"},
	{"[default]\nmem = \"8G\"\n", "2: mem='\"8G\"': not a number"},
	{"[default]\nmem = 8G\nmem = 4G\n", "3: mem twice in one section"},
	{"[default]\nsm = 0\n", "2: sm='0': zero"},
	{"[default]\nsm = 101%\n", "2: sm='101%': more than 100"},
	{"[default]\nweight = 0\n", "2: weight='0': out of range"},
	{"[default]\npriority = urgent\n", "2: priority='urgent': unknown priority"},
	{"[default]\nmemory = 8G\n", "2: unknown key 'memory'"},
	{"[default]\nMEM = 8G\n", "2: unknown key 'MEM'"},
	{"[default]\nmem_per_process = 8G\n", "2: unknown key"},
	{"[default]\n= 8G\n", "2: unknown key ''"},
	{"[default]\ncap = 8G\n", "2: unknown key 'cap'"},
	{"[default]\n\n\n\n\n\n\n\n\nx\n", "10: neither"},
	{"[default\nmem = 8G\n", "1: no ] at the end"},
	{"[default] mem = 8G\n", "1: no ] at the end"},
	{"[]\n", "1: unknown section []"},
	{"[defaults]\n", "1: unknown section [defaults]"},
	{"[Default]\n", "1: unknown section [Default]"},
	{"[default x]\n", "1: [default] takes no name"},
	{"[user]\n", "1: [user] without a name"},
	{"[user \"\"]\n", "1: [user] without a name"},
	{"[user 4294967295]\n", "1: out of range"},
	{"[user 99999999999999999999]\n", "1: out of range"},
	{"[user a:b]\n", "1: not a name: 'a:b'"},
	{"[user 1234567890123456789012345678901234567890123456789012345678901234]\n",
	 "1: name longer"},
	{"[users alice]\n", "1: unknown section [users]"},
	{"[group auto]\n", "1: 'auto' is not a name"},
	{"[group a b]\n", "1: a group name has"},
	{"[group a/b]\n", "1: a group name has"},
	{"[gpu 0]\n", "1: unknown device '0': write an index"},
	{"[gpu GPU-]\n", "1: device 'GPU-' is no UUID"},
	{"[gpu all]\n", "1: unknown device 'all'"},
	{"\xef\xbb\xbf[default]\n", "1: a setting before any"}, /* a byte order mark */
	{"{\"default\": {\"mem\": \"8G\"}}\n", "1: "},
	{"default:\n  mem: 8G\n", "1: a setting before any"},
};

START_TEST(a_policy_that_is_not_understood_is_refused_as_a_whole_with_its_line)
{
	struct policy *policy = (struct policy *)&dir;
	struct error err = {""};
	char want[256];

	write_file(path, bad[_i].text);
	ck_assert_msg(policy_read_from("", path, &policy, &err) == -EINVAL, "%s was accepted",
		      bad[_i].text);
	snprintf(want, sizeof(want), "%s:%s", path, bad[_i].reason);
	ck_assert_msg(strncmp(err.text, want, strlen(want)) == 0, "%s: %s", bad[_i].text, err.text);
	ck_assert_ptr_eq(policy, (struct policy *)&dir);
	ck_assert_int_eq(policy_read_from("", path, &policy, NULL), -EINVAL);
}
END_TEST

static int read_result(const char *system_path, const char *other, struct error *err)
{
	struct policy *policy = NULL;
	int r = policy_read_from(system_path, other, &policy, err);

	if (r == 0)
		policy_free(policy);
	return r;
}

START_TEST(a_missing_system_policy_is_empty_and_a_missing_file_of_ones_own_an_error)
{
	struct error err = {""};
	char nowhere[192];

	ck_assert_int_eq(read_result("", "", &err), 0);
	snprintf(nowhere, sizeof(nowhere), "%s/none/cuota.conf", dir);
	ck_assert_int_eq(read_result(nowhere, "", &err), 0);
	ck_assert_int_eq(read_result("", nowhere, &err), -ENOENT);
	ck_assert_int_eq(read_result("", path, &err), -ENOENT);
	ck_assert_ptr_nonnull(strstr(err.text, "cuota.conf: no such file"));
	if (geteuid() == 0)
		ck_assert_int_eq(read_result(path, "", &err), 0);
}
END_TEST

START_TEST(files_of_conf_d_count_and_other_names_there_do_not)
{
	static const char *const files[][2] = {{"10-a.conf", "[user 1000]\nmem = 9G\n"},
					       {"20-b.conf", "[user 1000]\nmem = 7G\n"},
					       {"30-c.conf.bak", "[user 1000]\nmem = 1G\n"},
					       {".conf", "[user 1000]\nmem = 1G\n"},
					       {".hidden.conf", "[user 1000]\nmem = 1G\n"},
					       {"README", "anything\n"}};
	struct quota quota;
	struct error err;
	char name[192];

	ck_assert_int_eq(mkdir(conf_d, 0755), 0);
	for (int i = 0; i < COUNT(files); i++) {
		snprintf(name, sizeof(name), "%s/%s", conf_d, files[i][0]);
		write_file(name, files[i][1]);
	}
	quota = quota_for("[default]\nmem = 20G\nsm = 50%\n", &alice);
	ck_assert(quota.mem_bytes == 7 * G);
	ck_assert_uint_eq(quota.sm_bp, 5000);
	snprintf(name, sizeof(name), "%s/15-broken.conf", conf_d);
	write_file(name, "[default]\nmem = 8\n");
	ck_assert_int_eq(read_result("", path, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "/conf.d/15-broken.conf:2: mem='8'"));
	ck_assert_int_eq(chmod(conf_d, 01777), 0);
	ck_assert_int_eq(read_result("", path, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.text, "/conf.d: others may write it (mode 1777)"));
}
END_TEST

START_TEST(a_file_that_others_could_write_is_not_believed)
{
	static const mode_t modes[] = {0666, 0664, 0646, 0602, 0620, 0777};
	struct error err;

	for (int i = 0; i < COUNT(modes); i++) {
		write_bytes(path, "[default]\n", 10, modes[i]);
		ck_assert_int_eq(read_result("", path, &err), -EPERM);
		ck_assert_ptr_nonnull(strstr(err.text, "others may write it"));
	}
	write_bytes(path, "[default]\n", 10, 0600);
	ck_assert_int_eq(read_result("", path, &err), 0);
	if (geteuid() != 0) { /* the system's policy must be root's, and this one is ours */
		ck_assert_int_eq(read_result(path, "", &err), -EPERM);
		return;
	}
	ck_assert_int_eq(read_result(path, "", &err), 0);
	ck_assert_int_eq(chown(path, STRANGER, 0), 0);
	ck_assert_int_eq(read_result(path, "", &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.text, "owned by uid 54321: it must belong to root"));
	ck_assert_int_eq(read_result("", path, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.text, "root or to you"));
	ck_assert_int_eq(chown(path, 0, 0), 0);
	ck_assert_int_eq(chmod(dir, 0777), 0);
	ck_assert_int_eq(read_result(path, "", &err), -EPERM);
	ck_assert_int_eq(chmod(dir, 01777), 0);
	ck_assert_int_eq(read_result(path, "", &err), 0);
}
END_TEST

START_TEST(a_link_a_fifo_a_directory_and_a_device_are_no_policy)
{
	struct error err;
	char target[192];

	snprintf(target, sizeof(target), "%s/target", dir);
	write_file(target, "[default]\n");
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_int_eq(read_result("", path, &err), -ELOOP);
	ck_assert_ptr_nonnull(strstr(err.text, "is a symbolic link"));
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(read_result("", path, &err), -EINVAL); /* and does not hang */
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	ck_assert_int_eq(read_result("", path, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "not a regular file"));
	ck_assert_int_eq(read_result("", "/dev/null", &err), -EINVAL);
	rmdir(path);
	write_file(path, "[default]\n");
	ck_assert_int_eq(symlink("/tmp", conf_d), 0);
	ck_assert_int_lt(read_result("", path, &err), 0);
}
END_TEST

START_TEST(a_file_too_large_or_with_a_zero_byte_is_refused)
{
	static char text[65537];
	struct error err;

	memset(text, '#', sizeof(text));
	write_bytes(path, text, 65536, 0644);
	ck_assert_int_eq(read_result("", path, &err), 0);
	write_bytes(path, text, 65537, 0644);
	ck_assert_int_eq(read_result("", path, &err), -EFBIG);
	ck_assert_ptr_nonnull(strstr(err.text, "larger than 64 KiB"));
	write_bytes(path, "[default]\nmem = 8G\0\nmem = 1G\n", 29, 0644);
	ck_assert_int_eq(read_result("", path, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "zero byte"));
}
END_TEST

START_TEST(a_file_of_ones_own_can_only_lower_what_the_system_allows)
{
	struct policy *policy = NULL;
	struct quota quota;
	struct error err = {""};
	char own[192];

	if (geteuid() != 0)
		return; /* the system's file must be root's; the merge itself is check_quota's */
	snprintf(own, sizeof(own), "%s/own.conf", dir);
	write_file(path, "[default]\nmem = 20G\nsm = 50%\nweight = 100\n[user 1000]\nmem = 30G\n");
	write_file(own, "[user 1000]\nmem = 60G\nsm = 20%\nweight = 9000\nmem-per-process = 1G\n");
	ck_assert_msg(policy_read_from(path, own, &policy, &err) == 0, "%s", err.text);
	quota = policy_quota(policy, &alice);
	ck_assert(quota.mem_bytes == 30 * G);
	ck_assert(quota.mem_process_bytes == G);
	ck_assert_uint_eq(quota.sm_bp, 2000);
	ck_assert_uint_eq(quota.weight, 100);
	policy_free(policy);
	write_file(path, "[default]\nmem = 8\n"); /* a broken system policy is not skipped either */
	ck_assert_int_eq(read_result(path, own, &err), -EINVAL);
}
END_TEST

START_TEST(a_name_that_is_in_etc_passwd_is_its_number_and_one_that_is_not_is_told)
{
	const struct policy_subject root = {
		.uid = 0, .gids = (const unsigned[]){0}, .gid_count = 1};
	struct policy *policy = read_policy("[user root]\nmem = 3G\n[unix-group root]\nsm = 10%\n");
	struct quota quota = policy_quota(policy, &root);

	ck_assert(quota.mem_bytes == 3 * G);
	ck_assert_uint_eq(quota.sm_bp, 1000);
	ck_assert_str_eq(policy_warning(policy), "");
	policy_free(policy);
	policy = read_policy("[default]\nmem = 5G\n[user no-such-user-here]\nmem = 1G\n");
	ck_assert(policy_quota(policy, &root).mem_bytes == 5 * G);
	ck_assert_ptr_nonnull(
		strstr(policy_warning(policy), "[user no-such-user-here] matches nobody"));
	policy_free(policy);
	policy = read_policy("[unix-group no-such-group-here]\nmem = 1G\n");
	ck_assert_ptr_nonnull(strstr(policy_warning(policy), "/etc/group"));
	policy_free(policy);
}
END_TEST

START_TEST(a_policy_with_a_section_is_there_even_if_it_stands_in_conf_d_alone)
{
	struct policy *policy = read_policy("# nothing yet\n");
	struct error err;
	char name[192];

	ck_assert_int_eq(policy_any(policy), 0);
	policy_free(policy);
	ck_assert_int_eq(mkdir(conf_d, 0755), 0);
	snprintf(name, sizeof(name), "%s/a.conf", conf_d);
	write_file(name, "[group other]\nmem = 1G\n");
	ck_assert_int_eq(policy_read_from("", path, &policy, &err), 0);
	ck_assert_int_eq(policy_any(policy), 1);
	policy_free(policy);
	if (geteuid() != 0)
		return;
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(policy_read_from(path, "", &policy, &err), 0);
	ck_assert_int_eq(policy_any(policy), 1);
	policy_free(policy);
}
END_TEST

START_TEST(somebody_of_whom_nothing_is_known_gets_the_default_only)
{
	static const struct policy_subject nobody = {.uid = 5};
	struct quota quota =
		quota_for("[default]\nmem = 50%\n[group train]\nmem = 1G\n[gpu GPU-8]\nsm = 1\n"
			  "[unix-group 0]\nsm = 2\n",
			  &nobody);

	ck_assert(quota.mem_bytes ==
		  1); /* half of an unknown device: as good as nothing, not no cap */
	ck_assert_uint_eq(quota.sm_bp, 0);
}
END_TEST

START_TEST(random_policies_are_refused_with_a_line_or_limit_as_written)
{
	static const char *const parts[] = {"[default]\n",
					    "[user 1000]\n",
					    "[group train]\n",
					    "[gpu GPU-8f]\n",
					    "mem = 8G\n",
					    "mem",
					    " = ",
					    "8G",
					    "\n",
					    "#",
					    "[",
					    "]",
					    "sm = 30%\n",
					    "weight = 5\n",
					    "\xff",
					    "\"",
					    "priority = low\n",
					    "=\n",
					    "[user root]\n",
					    "\r\n"};

	srandom(6);
	for (int round = 0; round < 3000; round++) {
		struct policy *policy;
		struct error err = {""};
		char text[512] = "";

		for (long n = random() % 12; n >= 0; n--)
			strcat(text, parts[random() % COUNT(parts)]);
		write_file(path, text);
		if (policy_read_from("", path, &policy, &err) < 0) {
			ck_assert_msg(strncmp(err.text, path, strlen(path)) == 0, "%s", err.text);
			continue;
		}
		policy_quota(policy, &alice);
		policy_free(policy);
	}
}
END_TEST

START_TEST(no_descriptor_is_left_open)
{
	int before = dup(0), after;
	struct error err;

	close(before);
	for (int i = 0; i < COUNT(bad); i++) {
		write_file(path, bad[i].text);
		read_result("", path, &err);
	}
	mkdir(conf_d, 0755);
	write_file(path, "[default]\n");
	read_result("", path, &err);
	read_result("", "/nowhere/x", &err);
	after = dup(0);
	close(after);
	ck_assert_int_eq(before, after);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("policy");
	TCase *tests = tcase_create("policy");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tests, make_dir, remove_dir);
	tcase_add_loop_test(tests, a_policy_gives_a_user_what_its_sections_say, 0, COUNT(good));
	tcase_add_loop_test(tests,
			    a_policy_that_is_not_understood_is_refused_as_a_whole_with_its_line, 0,
			    COUNT(bad));
	tcase_add_test(tests,
		       a_missing_system_policy_is_empty_and_a_missing_file_of_ones_own_an_error);
	tcase_add_test(tests, files_of_conf_d_count_and_other_names_there_do_not);
	tcase_add_test(tests, a_file_that_others_could_write_is_not_believed);
	tcase_add_test(tests, a_link_a_fifo_a_directory_and_a_device_are_no_policy);
	tcase_add_test(tests, a_file_too_large_or_with_a_zero_byte_is_refused);
	tcase_add_test(tests, a_file_of_ones_own_can_only_lower_what_the_system_allows);
	tcase_add_test(tests,
		       a_name_that_is_in_etc_passwd_is_its_number_and_one_that_is_not_is_told);
	tcase_add_test(tests, a_policy_with_a_section_is_there_even_if_it_stands_in_conf_d_alone);
	tcase_add_test(tests, somebody_of_whom_nothing_is_known_gets_the_default_only);
	tcase_add_test(tests, random_policies_are_refused_with_a_line_or_limit_as_written);
	tcase_add_test(tests, no_descriptor_is_left_open);
	tcase_set_timeout(tests, 60);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
