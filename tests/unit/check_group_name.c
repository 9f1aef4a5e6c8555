/*
 * Names of groups (src/base/group_name.c): which are allowed, and what "auto" makes of the cgroup
 * and mount texts that Slurm, Kubernetes, Docker, Podman, containerd and CRI-O leave in /proc.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/group_name.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define ID	     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2	     "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define POD	     "6f3f5d9e-4c0a-4a5e-9a4e-2b1f0c9d8e7f"
#define POD_UNIT     "6f3f5d9e_4c0a_4a5e_9a4e_2b1f0c9d8e7f"
#define HOST_NS	     0xEFFFFFFBull
#define OTHER_NS     4026532567ull

static const struct {
	const char *job, *cgroup, *mounts;
	uint64_t ns;
	const char *name;
} hints[] = {
	/* Slurm */
	{"123", NULL, NULL, 0, "slurm-123"},
	{"123", "0::/docker/" ID "\n", NULL, 0, "slurm-123"},
	{NULL, "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0\n", NULL, 0,
	 "slurm-77"},
	{"", "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0\n", NULL, 0, "slurm-77"},
	{NULL, "5:devices:/slurm/uid_1000/job_77/step_batch\n4:cpu:/\n", NULL, 0, "slurm-77"},
	{NULL, "4:cpu:/\n5:devices:/slurm_node1/uid_1000/job_77/step_batch/task_0\n", NULL, 0,
	 "slurm-77"},
	{NULL, "0::/system.slice/slurmstepd.scope/job_77/step_0/user/libpod-" ID ".scope\n", NULL,
	 0, "slurm-77"},
	{NULL, "0::/system.slice/job_77\n", NULL, HOST_NS, "uid-1000"},
	{NULL, "0::/slurm/job_abc\n", NULL, HOST_NS, "uid-1000"},
	{NULL, "0::/slurm/job_\n", NULL, HOST_NS, "uid-1000"},
	{NULL, "0::/slurm/job_12x/step_0\n", NULL, HOST_NS, "uid-1000"},
	{"12_3", NULL, NULL, HOST_NS, "uid-1000"},
	{"../../x", NULL, NULL, HOST_NS, "uid-1000"},
	{"-1", NULL, NULL, HOST_NS, "uid-1000"},
	{"99999999999999999999999999999999999999999999999999999999999999999999", NULL, NULL,
	 HOST_NS, "uid-1000"},
	/* Kubernetes */
	{NULL, "0::/kubepods/burstable/pod" POD "/" ID "\n", NULL, 0, "pod-" POD},
	{NULL, "0::/kubepods/pod" POD "/" ID "\n", NULL, 0, "pod-" POD},
	{NULL,
	 "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_UNIT
	 ".slice/cri-containerd-" ID ".scope\n",
	 NULL, 0, "pod-" POD},
	{NULL,
	 "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_UNIT
	 ".slice/crio-" ID ".scope\n",
	 NULL, 0, "pod-" POD},
	{NULL,
	 "12:memory:/kubepods/besteffort/pod" POD "/" ID "\n11:cpu:/kubepods/besteffort/pod" POD
	 "/" ID "\n",
	 NULL, 0, "pod-" POD},
	{NULL, "1:name=systemd:/docker/" ID2 "/kubelet/kubepods/pod" POD "/" ID "\n", NULL, 0,
	 "pod-" POD},
	{NULL, "0::/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" ID "\n", NULL, 0,
	 "pod-0123456789abcdef0123456789abcdef"},
	{NULL, "0::/kubepods/burstable/podshort/" ID "\n", NULL, 0, "ctr-0123456789ab"},
	{NULL, "0::/\n",
	 "600 590 8:1 /var/lib/kubelet/pods/" POD
	 "/etc-hosts /etc/hosts rw,relatime - ext4 /dev/sda1 rw\n",
	 OTHER_NS, "pod-" POD},
	/* containers */
	{NULL, "0::/docker/" ID "\n", NULL, 0, "ctr-0123456789ab"},
	{NULL, "0::/system.slice/docker-" ID ".scope\n", NULL, 0, "ctr-0123456789ab"},
	{NULL,
	 "13:pids:/docker/" ID "\n12:hugetlb:/docker/" ID "\n0::/system.slice/containerd.service\n",
	 NULL, 0, "ctr-0123456789ab"},
	{NULL, "0::/machine.slice/libpod-" ID ".scope/container\n", NULL, 0, "ctr-0123456789ab"},
	{NULL, "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope\n",
	 NULL, 0, "ctr-0123456789ab"},
	{NULL, "0::/default/" ID "\n", NULL, 0, "ctr-0123456789ab"},
	{NULL, "0::/docker/" ID, NULL, 0, "ctr-0123456789ab"},
	{NULL, "0::/docker/" ID "a\n", NULL, HOST_NS, "uid-1000"}, /* 65 digits */
	{NULL, "0::/\n",
	 "700 690 8:1 /var/lib/docker/containers/" ID
	 "/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n",
	 OTHER_NS, "ctr-0123456789ab"},
	{NULL, "0::/\n",
	 "700 690 0:30 /containers/overlay-containers/" ID
	 "/userdata/hosts /etc/hosts rw - tmpfs tmpfs rw\n",
	 OTHER_NS, "ctr-0123456789ab"},
	/* an overlay's layers carry ids that name images, not containers */
	{NULL, "0::/\n",
	 "690 1 0:50 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/" ID
	 ",upperdir=/var/lib/docker/overlay2/" ID2 "/diff\n",
	 OTHER_NS, "cgns-4026532567"},
	{NULL, "0::/\n", "690 1 0:50 /x/" ID " /data/etc/hosts rw - ext4 /dev/sda1 rw\n", OTHER_NS,
	 "cgns-4026532567"},
	/* nothing of that kind */
	{NULL, "0::/\n", "", OTHER_NS, "cgns-4026532567"},
	{NULL, "0::/\n", "", HOST_NS, "uid-1000"},
	{NULL, "0::/\n", NULL, 0, "uid-1000"},
	{NULL, "0::/user.slice/user-1000.slice/session-3.scope\n", NULL, HOST_NS, "uid-1000"},
	{NULL, NULL, NULL, 0, "uid-1000"},
	{NULL, "", "", HOST_NS, "uid-1000"},
	{NULL, "\n\n\n", "\n", HOST_NS, "uid-1000"},
	{NULL, "nonsense", "nonsense", HOST_NS, "uid-1000"},
	{NULL, ":::::", ":::", HOST_NS, "uid-1000"},
	{NULL, "0::/kubepodspodpodpodpod\n", NULL, HOST_NS, "uid-1000"},
};

START_TEST(a_job_a_pod_and_a_container_are_told_from_what_proc_says)
{
	struct group_hints these = {.slurm_job_id = hints[_i].job,
				    .cgroup_text = hints[_i].cgroup,
				    .mountinfo_text = hints[_i].mounts,
				    .cgroup_namespace = hints[_i].ns,
				    .uid = 1000};
	char name[GROUP_NAME_BYTES];

	group_auto(&these, name);
	ck_assert_str_eq(name, hints[_i].name);
	ck_assert_int_eq(group_name_check(name, NULL), 0);
}
END_TEST

START_TEST(random_proc_texts_always_give_an_allowed_name)
{
	static const char *const parts[] = {
		"0::/",		  "slurm",	 "/job_",    "12", "/kubepods",
		"/pod",		  POD,		 ID,	     "\n", " /etc/hosts ",
		"/pods/",	  "/etc-hosts ", "\xff\xfe", "/",  "a",
		("pod" POD_UNIT), "[",		 "-_-_"};

	srandom(5);
	for (int round = 0; round < 100000; round++) {
		char text[2][2048] = {"", ""}, name[GROUP_NAME_BYTES];
		struct group_hints these = {.cgroup_text = text[0], .mountinfo_text = text[1]};

		for (int t = 0; t < 2; t++)
			for (long n = random() % 12; n > 0; n--)
				strcat(text[t], parts[random() % COUNT(parts)]);
		group_auto(&these, name);
		ck_assert_msg(group_name_check(name, NULL) == 0, "%s", name);
	}
}
END_TEST

START_TEST(a_line_longer_than_any_path_is_passed_over)
{
	static char text[20000];
	struct group_hints these = {.cgroup_text = text, .uid = 5};
	char name[GROUP_NAME_BYTES];

	memset(text, 'a', sizeof(text) - 1);
	strcpy(text + 10000, "\n0::/docker/" ID "\n");
	group_auto(&these, name);
	ck_assert_str_eq(name, "ctr-0123456789ab");
}
END_TEST

START_TEST(this_process_has_an_automatic_group)
{
	char name[GROUP_NAME_BYTES], again[GROUP_NAME_BYTES];

	group_auto_self(NULL, name);
	group_auto_self(NULL, again);
	ck_assert_int_eq(group_name_check(name, NULL), 0);
	ck_assert_str_eq(name, again);
}
END_TEST

static const struct {
	const char *name;
	const char *reason; /* NULL = allowed */
} names[] = {
	{"a", NULL},
	{"train", NULL},
	{"Train-1_2.3:4@5+6", NULL},
	{"0", NULL},
	{"uid-1000", NULL},
	{"automatic", NULL},
	{"123456789012345678901234567890123456789012345678901234567890123", NULL},
	{"1234567890123456789012345678901234567890123456789012345678901234", "longer than 63"},
	{"", "empty"},
	{"auto", "not a name"},
	{"a b", "letters"},
	{"a/b", "letters"},
	{"a\nb", "letters"},
	{"a\"b", "letters"},
	{"a,b", "letters"},
	{"a=b", "letters"},
	{"a%b", "letters"},
	{"\xc3\xa9", "letters"},
	{"\x7f", "letters"},
};

START_TEST(a_group_name_is_short_and_harmless_wherever_it_is_printed)
{
	struct error err = {""};
	int r = group_name_check(names[_i].name, &err);

	if (!names[_i].reason) {
		ck_assert_msg(r == 0, "'%s': %s", names[_i].name, err.text);
		return;
	}
	ck_assert_int_eq(r, -EINVAL);
	ck_assert_msg(strstr(err.text, names[_i].reason) != NULL, "'%s': %s", names[_i].name,
		      err.text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("group_name");
	TCase *tests = tcase_create("group_name");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tests, a_job_a_pod_and_a_container_are_told_from_what_proc_says, 0,
			    COUNT(hints));
	tcase_add_test(tests, random_proc_texts_always_give_an_allowed_name);
	tcase_add_test(tests, a_line_longer_than_any_path_is_passed_over);
	tcase_add_test(tests, this_process_has_an_automatic_group);
	tcase_add_loop_test(tests, a_group_name_is_short_and_harmless_wherever_it_is_printed, 0,
			    COUNT(names));
	tcase_set_timeout(tests, 60);
	suite_add_tcase(suite, tests);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
