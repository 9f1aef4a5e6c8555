/*
 * The whole environment (src/base/config.c, alias.c): every variable of env.def, the aliases of
 * other systems, and the one line that tells what is wrong. The environment is handed in, never
 * this process's own.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define M	     (1ull << 20)
#define G	     (1ull << 30)
#define VARIABLES    6

/* "NAME=value" texts up to the first NULL. */
static const char *const *environment;

static const char *get(const char *name)
{
	size_t length = strlen(name);

	for (int i = 0; i < VARIABLES && environment[i]; i++)
		if (strncmp(environment[i], name, length) == 0 && environment[i][length] == '=')
			return environment[i] + length + 1;
	return NULL;
}

static struct config config;

static int read_these(const char *const these[VARIABLES], struct error *err)
{
	environment = these;
	err->text[0] = '\0';
	return config_read(&config, get, err);
}

static int read_one(const char *name, const char *value, struct error *err)
{
	static char pair[20000];
	const char *these[VARIABLES] = {pair};

	snprintf(pair, sizeof(pair), "%s=%s", name, value);
	return read_these(these, err);
}

START_TEST(an_empty_environment_asks_for_nothing)
{
	static const char *const none[VARIABLES] = {NULL};
	struct error err;
	struct quota quota;

	ck_assert_int_eq(read_these(none, &err), 0);
	quota = config_quota(&config, 0, "GPU-8f3a", G);
	ck_assert_int_eq(quota_any(&quota), 0);
	ck_assert_int_eq(config.any_set, 0);
	ck_assert_int_eq(config.strict, 0);
	ck_assert_int_eq(config.log_level, LOG_OFF);
	ck_assert_int_eq(config.sched, SCHED_AUTO);
	ck_assert_str_eq(config.group, "");
	ck_assert_str_eq(config.dir, "");
	ck_assert_str_eq(config.policy_path, "");
	ck_assert_str_eq(config.log_file, "");
}
END_TEST

static const struct {
	const char *environment[VARIABLES];
	uint64_t mem[2]; /* on CUDA device 0 and 1, of 10 GiB each */
	uint64_t mem_process;
	uint32_t sm_bp[2];
	uint32_t weight, priority;
} quotas[] = {
	{{"CUOTA_MEM=8G"}, {8 * G, 8 * G}, 0, {0, 0}, 0, 0},
	{{"CUOTA_MEM=8192MiB"}, {8 * G, 8 * G}, 0, {0, 0}, 0, 0},
	{{"CUOTA_MEM=50%"}, {5 * G, 5 * G}, 0, {0, 0}, 0, 0},
	{{"CUOTA_MEM=none"}, {QUOTA_NONE, QUOTA_NONE}, 0, {0, 0}, 0, 0},
	{{"CUOTA_MEM=0=8G,1=4G"}, {8 * G, 4 * G}, 0, {0, 0}, 0, 0},
	{{"CUOTA_MEM=8G,1=4G"}, {8 * G, 4 * G}, 0, {0, 0}, 0, 0},
	{{"CUOTA_MEM=1=4G"}, {0, 4 * G}, 0, {0, 0}, 0, 0},
	{{"CUOTA_MEM=GPU-8f3a=4G"}, {4 * G, 4 * G}, 0, {0, 0}, 0, 0},
	{{"CUOTA_MEM=GPU-beef=4G"}, {0, 0}, 0, {0, 0}, 0, 0},
	{{"CUOTA_MEM_PER_PROCESS=2G"}, {0, 0}, 2 * G, {0, 0}, 0, 0},
	{{"CUOTA_SM=30"}, {0, 0}, 0, {3000, 3000}, 0, 0},
	{{"CUOTA_SM=0=30%,1=50"}, {0, 0}, 0, {3000, 5000}, 0, 0},
	{{"CUOTA_SM=none"}, {0, 0}, 0, {QUOTA_SM_NONE, QUOTA_SM_NONE}, 0, 0},
	{{"CUOTA_WEIGHT=300"}, {0, 0}, 0, {0, 0}, 300, 0},
	{{"CUOTA_WEIGHT=100,1=50"}, {0, 0}, 0, {0, 0}, 100, 0},
	{{"CUOTA_PRIORITY=low"}, {0, 0}, 0, {0, 0}, 0, PRIORITY_LOW},
	{{"CUOTA_PRIORITY=high"}, {0, 0}, 0, {0, 0}, 0, PRIORITY_HIGH},
	{{"CUOTA_MEM=8G", "CUOTA_MEM_PER_PROCESS=2G", "CUOTA_SM=30", "CUOTA_WEIGHT=7",
	  "CUOTA_PRIORITY=normal"},
	 {8 * G, 8 * G},
	 2 * G,
	 {3000, 3000},
	 7,
	 PRIORITY_NORMAL},
	/* HAMi's and KAI's variables */
	{{"CUDA_DEVICE_MEMORY_LIMIT=1g"}, {G, G}, 0, {0, 0}, 0, 0},
	{{"CUDA_DEVICE_MEMORY_LIMIT=1024m"}, {G, G}, 0, {0, 0}, 0, 0},
	{{"CUDA_DEVICE_MEMORY_LIMIT=1048576K"}, {G, G}, 0, {0, 0}, 0, 0},
	{{"CUDA_DEVICE_MEMORY_LIMIT=1073741824"}, {G, G}, 0, {0, 0}, 0, 0},
	{{"CUDA_DEVICE_MEMORY_LIMIT=1048576"}, {M, M}, 0, {0, 0}, 0, 0},
	{{"CUDA_DEVICE_MEMORY_LIMIT_0=3000m"}, {3000 * M, 0}, 0, {0, 0}, 0, 0},
	{{"CUDA_DEVICE_MEMORY_LIMIT_1=3000m"}, {0, 3000 * M}, 0, {0, 0}, 0, 0},
	{{"CUDA_DEVICE_MEMORY_LIMIT_0=2g", "CUDA_DEVICE_MEMORY_LIMIT=1g"},
	 {2 * G, G},
	 0,
	 {0, 0},
	 0,
	 0},
	{{"CUDA_DEVICE_SM_LIMIT=50"}, {0, 0}, 0, {5000, 5000}, 0, 0},
	{{"CUDA_DEVICE_SM_LIMIT=100"}, {0, 0}, 0, {QUOTA_SM_NONE, QUOTA_SM_NONE}, 0, 0},
	{{"CUDA_DEVICE_SM_LIMIT=0"}, {0, 0}, 0, {QUOTA_SM_NONE, QUOTA_SM_NONE}, 0, 0},
	{{"CUDA_DEVICE_SM_LIMIT_1=25"}, {0, 0}, 0, {0, 2500}, 0, 0},
	{{"GPU_MEMORY_LIMIT=2147483648"}, {2 * G, 2 * G}, 0, {0, 0}, 0, 0},
	{{"GPU_MEMORY_LIMIT=2G"}, {2 * G, 2 * G}, 0, {0, 0}, 0, 0},
	{{"CUDA_DEVICE_MEMORY_LIMIT_0=3g", "GPU_MEMORY_LIMIT=2G"}, {3 * G, 2 * G}, 0, {0, 0}, 0, 0},
	{{"CUDA_DEVICE_MEMORY_LIMIT=3g", "GPU_MEMORY_LIMIT=2G"}, {3 * G, 3 * G}, 0, {0, 0}, 0, 0},
	/* cuota's own come first, and then the aliases are not even looked at */
	{{"CUOTA_MEM=1G", "CUDA_DEVICE_MEMORY_LIMIT=9g"}, {G, G}, 0, {0, 0}, 0, 0},
	{{"CUOTA_MEM=1=1G", "CUDA_DEVICE_MEMORY_LIMIT=9g"}, {0, G}, 0, {0, 0}, 0, 0},
	{{"CUOTA_MEM=1G", "GPU_MEMORY_LIMIT=0.8"}, {G, G}, 0, {0, 0}, 0, 0},
	{{"CUOTA_SM=20", "CUDA_DEVICE_SM_LIMIT=abc"}, {0, 0}, 0, {2000, 2000}, 0, 0},
	{{"CUOTA_SM=20", "CUDA_DEVICE_MEMORY_LIMIT=2g"}, {2 * G, 2 * G}, 0, {2000, 2000}, 0, 0},
};

START_TEST(an_environment_gives_each_device_its_quota)
{
	struct error err;
	int r = read_these(quotas[_i].environment, &err);

	ck_assert_msg(r == 0, "%s: %s", quotas[_i].environment[0], err.text);
	ck_assert_int_eq(config.any_set, 1);
	for (unsigned device = 0; device < 2; device++) {
		struct quota quota = config_quota(&config, device, "GPU-8f3a1c52", 10 * G);

		ck_assert_msg(quota.mem_bytes == quotas[_i].mem[device], "%s on %u: %llu",
			      quotas[_i].environment[0], device,
			      (unsigned long long)quota.mem_bytes);
		ck_assert(quota.mem_process_bytes == quotas[_i].mem_process);
		ck_assert_uint_eq(quota.sm_bp, quotas[_i].sm_bp[device]);
		if (device == 0)
			ck_assert_uint_eq(quota.weight, quotas[_i].weight);
		ck_assert_uint_eq(quota.priority, quotas[_i].priority);
	}
}
END_TEST

static const char *const lines[][2] = {
	{"CUOTA_MEM=8", "CUOTA_MEM='8': no unit: write 8G or 8M"},
	{"CUOTA_MEM=", "CUOTA_MEM='': empty: write a value, or unset the variable"},
	{"CUOTA_MEM=0", "CUOTA_MEM='0': zero: write none for no cap"},
	{"CUOTA_MEM=-1", "CUOTA_MEM='-1': negative: write none for no cap"},
	{"CUOTA_MEM=4Gi,4Gi", "CUOTA_MEM='4Gi,4Gi': two values without a device"},
	{"CUOTA_MEM=8G\n", "CUOTA_MEM='8G?': blank inside: write it without"},
	{"CUOTA_MEM_PER_PROCESS=abc", "CUOTA_MEM_PER_PROCESS='abc': not a number: 'abc'"},
	{"CUOTA_SM=", "CUOTA_SM='': empty: write a value, or unset the variable"},
	{"CUOTA_SM=101", "CUOTA_SM='101': more than 100 percent"},
	{"CUOTA_SM=30x", "CUOTA_SM='30x': not a percentage: unknown 'x' after the number"},
	{"CUOTA_WEIGHT=0", "CUOTA_WEIGHT='0': out of range: write 1 to 10000"},
	{"CUOTA_WEIGHT=x", "CUOTA_WEIGHT='x': not a whole number: 'x'"},
	{"CUOTA_PRIORITY=urgent",
	 "CUOTA_PRIORITY='urgent': unknown priority: write high, normal or low"},
	{"CUOTA_GROUP=", "CUOTA_GROUP='': empty: write a name, or unset the variable"},
	{"CUOTA_GROUP=a/b", "CUOTA_GROUP='a/b': a group name has letters, digits and ._:@+- only"},
	{"CUOTA_SCHED=fair", "CUOTA_SCHED='fair': unknown mode: write auto, turns, rate or off"},
	{"CUOTA_SCHED=", "CUOTA_SCHED='': empty: write auto, turns, rate or off"},
	{"CUOTA_DIR=", "CUOTA_DIR='': empty: write a path, or unset the variable"},
	{"CUOTA_DIR=run/cuota",
	 "CUOTA_DIR='run/cuota': not an absolute path, and programs change directory"},
	{"CUOTA_CONFIG=x", "CUOTA_CONFIG='x': not an absolute path, and programs change directory"},
	{"CUOTA_STRICT=yes", "CUOTA_STRICT='yes': not a switch: write 1 or 0"},
	{"CUOTA_STRICT=", "CUOTA_STRICT='': empty: write 1 or 0"},
	{"CUOTA_STRICT=2", "CUOTA_STRICT='2': not a switch: write 1 or 0"},
	{"CUOTA_STRICT=10", "CUOTA_STRICT='10': not a switch: write 1 or 0"},
	{"CUOTA_LOG=verbose",
	 "CUOTA_LOG='verbose': unknown level: write off, error, warn, info or debug"},
	{"CUOTA_LOG=", "CUOTA_LOG='': empty: write off, error, warn, info or debug"},
	{"CUOTA_LOG_FILE=log",
	 "CUOTA_LOG_FILE='log': not an absolute path, and programs change directory"},
	{"CUDA_DEVICE_MEMORY_LIMIT=8192",
	 "CUDA_DEVICE_MEMORY_LIMIT='8192': no unit, and less than 1M as bytes: write 8192M"},
	{"CUDA_DEVICE_MEMORY_LIMIT=0",
	 "CUDA_DEVICE_MEMORY_LIMIT='0': zero: unset it, or set CUOTA_MEM=none"},
	{"CUDA_DEVICE_MEMORY_LIMIT=",
	 "CUDA_DEVICE_MEMORY_LIMIT='': empty: write a value, or unset the variable"},
	{"CUDA_DEVICE_MEMORY_LIMIT_0=0m",
	 "CUDA_DEVICE_MEMORY_LIMIT_0='0m': zero: write none for no cap"},
	{"CUDA_DEVICE_MEMORY_LIMIT_31=x", "CUDA_DEVICE_MEMORY_LIMIT_31='x': not a number: 'x'"},
	{"CUDA_DEVICE_MEMORY_LIMIT=99999999999999999999",
	 "CUDA_DEVICE_MEMORY_LIMIT='99999999999999999999': too large: more than 1048576T"},
	{"CUDA_DEVICE_MEMORY_LIMIT=8G,1=4G",
	 "CUDA_DEVICE_MEMORY_LIMIT='8G,1=4G': unknown unit 'G,1=4G': use K, M, G or T"},
	{"CUDA_DEVICE_SM_LIMIT=101", "CUDA_DEVICE_SM_LIMIT='101': more than 100 percent"},
	{"CUDA_DEVICE_SM_LIMIT=-1", "CUDA_DEVICE_SM_LIMIT='-1': negative: write none for no cap"},
	{"CUDA_DEVICE_SM_LIMIT_2=x", "CUDA_DEVICE_SM_LIMIT_2='x': not a number: 'x'"},
	{"GPU_MEMORY_LIMIT=0.8", "GPU_MEMORY_LIMIT='0.8': no unit: write 0.8G or 0.8M"},
	{"GPU_MEMORY_LIMIT=0", "GPU_MEMORY_LIMIT='0': zero: unset it, or set CUOTA_MEM=none"},
};

START_TEST(an_error_is_one_line_with_the_variable_the_value_and_the_reason)
{
	const char *these[VARIABLES] = {lines[_i][0]};
	struct error err;

	ck_assert_int_eq(read_these(these, &err), -EINVAL);
	ck_assert_str_eq(err.text, lines[_i][1]);
}
END_TEST

static const char *const hostile[] = {
	"",	     " ",	"\n",	     "0",
	"00",	     "-0",	"-1",	     "+1",
	"8",	     "8192",	"abc",	     "8G ",
	" 8G",	     "8 G",	"8G\n",	     "8X",
	"0x8G",	     "1e9",	"NaN",	     "inf",
	"null",	     "None ",	"unlimited", "max",
	"off",	     "false",	"no",	     "${MEM}",
	"$MEM",	     "`id`",	"%s%n%s",    "8G,8G",
	"0=",	     "=8G",	",",	     "8G,",
	"0=8G,0=8G", "x=8G",	"1024=8G",   "0=8G;1=8G",
	"101%",	     "0%",	"-5%",	     "%",
	"50%%",	     "1.2.3",	"1048577T",  "99999999999999999999G",
	"\x01",	     "\x7f",	"\xff\xfe",  "\xe2\x88\x9e",
	"GPU-=8G",   "MIG-=8G", "GPU-zz=8G", "../../etc/passwd",
	"auto auto", "a b",	"\xc3\xa9",
};

START_TEST(no_quota_variable_takes_a_hostile_value_for_anything)
{
	static const char *const names[] = {"CUOTA_MEM",
					    "CUOTA_MEM_PER_PROCESS",
					    "CUOTA_SM",
					    "CUOTA_WEIGHT",
					    "CUOTA_PRIORITY",
					    "CUOTA_GROUP",
					    "CUOTA_SCHED",
					    "CUOTA_STRICT",
					    "CUOTA_LOG",
					    "CUDA_DEVICE_MEMORY_LIMIT",
					    "CUDA_DEVICE_MEMORY_LIMIT_0",
					    "GPU_MEMORY_LIMIT"};
	/* what one of them rightly takes: a number, a word of its own, a name that happens to be
	 * one */
	static const char *const right[] = {
		"CUOTA_SM=8",		"CUOTA_WEIGHT=8",
		"CUOTA_WEIGHT=8192",	"CUOTA_STRICT=0",
		"CUOTA_SCHED=off",	"CUOTA_LOG=off",
		"CUOTA_GROUP=0",	"CUOTA_GROUP=00",
		"CUOTA_GROUP=-0",	"CUOTA_GROUP=-1",
		"CUOTA_GROUP=+1",	"CUOTA_GROUP=8",
		"CUOTA_GROUP=8192",	"CUOTA_GROUP=abc",
		"CUOTA_GROUP=8X",	"CUOTA_GROUP=0x8G",
		"CUOTA_GROUP=1e9",	"CUOTA_GROUP=NaN",
		"CUOTA_GROUP=inf",	"CUOTA_GROUP=null",
		"CUOTA_GROUP=max",	"CUOTA_GROUP=off",
		"CUOTA_GROUP=false",	"CUOTA_GROUP=no",
		"CUOTA_GROUP=1.2.3",	"CUOTA_GROUP=unlimited",
		"CUOTA_GROUP=1048577T", "CUOTA_GROUP=99999999999999999999G",
	};
	const char *value = hostile[_i];
	struct error err;

	for (int n = 0; n < COUNT(names); n++) {
		char pair[128];
		int is_right = 0;

		snprintf(pair, sizeof(pair), "%s=%s", names[n], value);
		for (int i = 0; i < COUNT(right); i++)
			is_right |= strcmp(pair, right[i]) == 0;
		ck_assert_msg((read_one(names[n], value, &err) == 0) == is_right, "%s: %s", pair,
			      err.text);
		if (is_right)
			continue;
		ck_assert_msg(strncmp(err.text, pair, strlen(names[n])) == 0, "%s", err.text);
		for (const char *c = err.text; *c; c++)
			ck_assert_msg(*c >= ' ' && *c < 0x7f, "'%s'", err.text);
	}
}
END_TEST

START_TEST(a_huge_value_is_refused_with_a_short_line)
{
	static char value[19000];
	struct error err;

	memset(value, 'A', sizeof(value) - 1);
	ck_assert_int_eq(read_one("CUOTA_MEM", value, &err), -EINVAL);
	ck_assert_uint_lt(strlen(err.text), sizeof(err.text));
	ck_assert_int_eq(read_one("CUOTA_GROUP", value, &err), -EINVAL);
	value[0] = '/';
	ck_assert_int_eq(read_one("CUOTA_DIR", value, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "too long"));
	value[PATH_MAX - 1] = '\0';
	ck_assert_int_eq(read_one("CUOTA_DIR", value, &err), 0);
	ck_assert_uint_eq(strlen(config.dir), PATH_MAX - 1);
	value[PATH_MAX - 1] = 'A';
	value[PATH_MAX] = '\0';
	ck_assert_int_eq(read_one("CUOTA_DIR", value, &err), -EINVAL);
}
END_TEST

START_TEST(the_other_variables_are_read_as_written)
{
	static const char *const these[VARIABLES] = {
		"CUOTA_DIR=/tmp/x", "CUOTA_CONFIG=/etc/q.conf", "CUOTA_STRICT=1",
		"CUOTA_LOG=debug",  "CUOTA_LOG_FILE=/tmp/l",	"CUOTA_SCHED=turns"};
	struct error err;

	ck_assert_int_eq(read_these(these, &err), 0);
	ck_assert_str_eq(config.dir, "/tmp/x");
	ck_assert_str_eq(config.policy_path, "/etc/q.conf");
	ck_assert_str_eq(config.log_file, "/tmp/l");
	ck_assert_int_eq(config.strict, 1);
	ck_assert_int_eq(config.log_level, LOG_DEBUG);
	ck_assert_int_eq(config.sched, SCHED_TURNS);
	ck_assert_int_eq(config.any_set, 1);
}
END_TEST

START_TEST(settings_that_ask_for_no_quota_do_not_attach_the_process)
{
	static const char *const these[VARIABLES] = {"CUOTA_DIR=/tmp/x", "CUOTA_CONFIG=/etc/q.conf",
						     "CUOTA_STRICT=1", "CUOTA_LOG=debug",
						     "CUOTA_LOG_FILE=/tmp/l"};
	struct error err;

	ck_assert_int_eq(read_these(these, &err), 0);
	ck_assert_int_eq(config.any_set, 0);
}
END_TEST

START_TEST(the_first_error_is_told_and_the_log_and_strict_settings_are_read_all_the_same)
{
	static const char *const these[VARIABLES] = {"CUOTA_MEM=8", "CUOTA_SM=0", "CUOTA_LOG=info",
						     "CUOTA_LOG_FILE=/tmp/l", "CUOTA_STRICT=1"};
	struct error err;

	ck_assert_int_eq(read_these(these, &err), -EINVAL);
	ck_assert_str_eq(err.text, "CUOTA_MEM='8': no unit: write 8G or 8M");
	ck_assert_int_eq(config.log_level, LOG_INFO);
	ck_assert_str_eq(config.log_file, "/tmp/l");
	ck_assert_int_eq(config.strict, 1);
	ck_assert_int_eq(config_read(&config, get, NULL), -EINVAL);
}
END_TEST

START_TEST(an_automatic_group_has_a_name_of_its_own)
{
	static const char *const job[VARIABLES] = {"CUOTA_GROUP=auto", "SLURM_JOB_ID=4711"};
	static const char *const plain[VARIABLES] = {"CUOTA_GROUP=auto"};
	struct error err;

	ck_assert_int_eq(read_these(job, &err), 0);
	ck_assert_str_eq(config.group, "slurm-4711");
	ck_assert_int_eq(read_these(plain, &err), 0);
	ck_assert_int_eq(group_name_check(config.group, &err), 0);
	ck_assert_int_eq(config.any_set, 1);
}
END_TEST

START_TEST(a_group_keeps_its_name)
{
	struct error err;

	ck_assert_int_eq(read_one("CUOTA_GROUP", "train@lab.1:a+b_c-d", &err), 0);
	ck_assert_str_eq(config.group, "train@lab.1:a+b_c-d");
	ck_assert_int_eq(read_one("CUOTA_GROUP", "Auto", &err), 0);
	ck_assert_str_eq(config.group, "Auto");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("config");
	TCase *tests = tcase_create("config");
	SRunner *runner;
	int failed;

	tcase_add_test(tests, an_empty_environment_asks_for_nothing);
	tcase_add_loop_test(tests, an_environment_gives_each_device_its_quota, 0, COUNT(quotas));
	tcase_add_loop_test(tests, an_error_is_one_line_with_the_variable_the_value_and_the_reason,
			    0, COUNT(lines));
	tcase_add_loop_test(tests, no_quota_variable_takes_a_hostile_value_for_anything, 0,
			    COUNT(hostile));
	tcase_add_test(tests, a_huge_value_is_refused_with_a_short_line);
	tcase_add_test(tests, the_other_variables_are_read_as_written);
	tcase_add_test(tests, settings_that_ask_for_no_quota_do_not_attach_the_process);
	tcase_add_test(
		tests,
		the_first_error_is_told_and_the_log_and_strict_settings_are_read_all_the_same);
	tcase_add_test(tests, an_automatic_group_has_a_name_of_its_own);
	tcase_add_test(tests, a_group_keeps_its_name);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
