/*
 * Members in other PID and user namespaces, where every PID is 1 or 2: unshare, bubblewrap and podman containers that
 * share the ledger's directory. The test binary runs itself inside them ("hold DIR GROUP MIB"). What is not
 * installed or not allowed here is skipped with a line that says so.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "ledger_help.h"

#define MIB (1ull << 20)

static char self_path[PATH_MAX];
static struct ledger ledger;
static struct member member;

static void setup(void)
{
	struct quota quota = {.mem_bytes = 8 * MIB};

	help_setup();
	ck_assert_int_eq(chmod(help_dir, 0777), 0);
	help_open(&ledger);
	help_join(&ledger, "train", &quota, &member);
}

/* In the namespace: joins, charges, says its PID, and holds until its standard input ends. */
static int hold(const char *dir, const char *group, unsigned mib)
{
	struct ledger own;
	struct member one;
	struct error err = {""};
	char byte;

	if (ledger_open(dir, HELP_UUID, &own, &err) != 0 ||
	    ledger_join(&own, group, NULL, NULL, &one, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (ledger_charge(&one, CHARGE_LINEAR, mib * MIB, NULL) != 0)
		return 2;
	printf("pid %d mark %u\n", getpid(), one.mark);
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}

struct inside {
	pid_t pid; /* of the tool, in a process group of its own */
	int in;
	unsigned inner_pid;
};

/* 0 when the member inside has charged; 77 when the tool cannot do it here. */
static int start(const char *tool, const char *group, unsigned mib, struct inside *ret)
{
	char command[2 * PATH_MAX], line[128] = "";
	int in[2], out[2];
	FILE *from;

	snprintf(command, sizeof(command), "exec %s '%s' hold '%s' %s %u", tool, self_path,
		 help_dir, group, mib);
	ck_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	fflush(NULL);
	ret->pid = fork();
	if (ret->pid == 0) {
		setpgid(0, 0);
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[0]);
		close(in[1]);
		close(out[0]);
		close(out[1]);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	ret->in = in[1];
	from = fdopen(out[0], "r");
	if (!fgets(line, sizeof(line), from) || sscanf(line, "pid %u", &ret->inner_pid) != 1) {
		close(ret->in);
		waitpid(ret->pid, NULL, 0);
		fclose(from);
		return 77;
	}
	fclose(from);
	return 0;
}

static void end_gently(struct inside *inside)
{
	close(inside->in);
	waitpid(inside->pid, NULL, 0);
}

/* Every way in; %s takes the directory of this binary and the ledger's. */
static const struct {
	const char *name, *tool, *kill;
} ways[] = {
	{"unshare, a PID namespace", "unshare --fork --pid --mount-proc --kill-child", NULL},
	{"unshare, PID and user namespaces",
	 "unshare --user --map-root-user --fork --pid --mount-proc --kill-child", NULL},
	{"bubblewrap",
	 "bwrap --unshare-pid --unshare-user --dev-bind / / --proc /proc --die-with-parent", NULL},
	{"podman",
	 "podman --runtime runc run --rm -i --name cuota-ledger-test --network=none "
	 "--ulimit nofile=1024:1024 --ulimit nproc=1024:1024 -v /usr:/usr:ro "
	 "-v \"$CUOTA_TEST_SELF:$CUOTA_TEST_SELF:ro\" -v \"$CUOTA_TEST_DIR:$CUOTA_TEST_DIR\" "
	 "--rootfs \"$CUOTA_TEST_ROOT\"",
	 "podman kill -s KILL cuota-ledger-test >/dev/null 2>&1"},
};

/* A root file system of links, for podman to put /usr and the rest into. */
static void make_root(void)
{
	static const char *const links[] = {"bin", "sbin", "lib", "lib64"};
	char path[256], target[32], root[160];
	unsigned i;

	snprintf(root, sizeof(root), "%s/root", help_dir);
	mkdir(root, 0755);
	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", root, links[i]);
		snprintf(target, sizeof(target), "usr/%s", links[i]);
		if (symlink(target, path) != 0)
			perror(path);
	}
	setenv("CUOTA_TEST_ROOT", root, 1);
	setenv("CUOTA_TEST_DIR", help_dir, 1);
	setenv("CUOTA_TEST_SELF", self_path, 1);
}

static void kill_inside(struct inside *inside, const char *command)
{
	if (command)
		ck_assert_int_eq(system(command), 0);
	else
		kill(-inside->pid, SIGKILL);
	end_gently(inside);
}

START_TEST(a_member_in_another_namespace_counts_while_it_lives_and_not_after)
{
	uint64_t start_ns;
	struct inside inside;

	make_root();
	if (start(ways[_i].tool, "train", 6, &inside) != 0) {
		printf("skipped: %s does not work here\n", ways[_i].name);
		return;
	}
	ck_assert_uint_le(inside.inner_pid, 3);
	ck_assert_uint_eq(help_total(&member), 6 * MIB);
	ck_assert_int_eq(ledger_charge(&member, CHARGE_LINEAR, 6 * MIB, NULL), -ENOMEM);
	ck_assert_uint_eq(help_total(&member), 6 * MIB);
	kill_inside(&inside, ways[_i].kill);
	start_ns = clock_now_ns();
	while (ledger_charge(&member, CHARGE_LINEAR, 6 * MIB, NULL) != 0)
		ck_assert_uint_lt(clock_now_ns() - start_ns, 200 * NS_PER_MS);
	ck_assert_uint_eq(help_total(&member), 6 * MIB);
	printf("%s: inner pid %u\n", ways[_i].name, inside.inner_pid);
}
END_TEST

/* The kernel may still be ending it when the tool is gone; 200 ms is the promise. */
static void settles_at(uint64_t bytes)
{
	uint64_t start_ns = clock_now_ns();

	while (ledger_reap(&ledger), help_total(&member) != bytes)
		ck_assert_uint_lt(clock_now_ns() - start_ns, 200 * NS_PER_MS);
}

START_TEST(members_of_equal_pids_in_three_namespaces_are_three)
{
	struct inside inside[3];
	unsigned i;

	for (i = 0; i < 3; i++) {
		if (start(ways[0].tool, "train", 2, &inside[i]) != 0) {
			ck_assert_uint_eq(i, 0);
			printf("skipped: %s does not work here\n", ways[0].name);
			return;
		}
		ck_assert_uint_eq(inside[i].inner_pid, 1);
	}
	ck_assert_uint_eq(help_total(&member), 6 * MIB);
	kill_inside(&inside[1], NULL);
	settles_at(4 * MIB);
	end_gently(&inside[0]); /* exits without leaving */
	settles_at(2 * MIB);
	kill_inside(&inside[2], NULL);
	settles_at(0);
}
END_TEST

START_TEST(a_reused_pid_is_not_taken_for_its_former_owner)
{
	struct inside inside;
	unsigned round;

	/* PID 1 each time: a container that is restarted over the ledger its forerunner left. */
	for (round = 0; round < 5; round++) {
		if (start(ways[0].tool, "train", 5, &inside) != 0) {
			printf("skipped: %s does not work here\n", ways[0].name);
			return;
		}
		kill_inside(&inside, NULL);
		settles_at(0);
	}
}
END_TEST

int main(int argc, char **argv)
{
	TCase *tcase = tcase_create("namespaces");

	if (argc == 5 && strcmp(argv[1], "hold") == 0)
		return hold(argv[2], argv[3], (unsigned)atoi(argv[4]));
	if (readlink("/proc/self/exe", self_path, sizeof(self_path) - 1) < 0)
		return 1;
	tcase_add_checked_fixture(tcase, setup, help_teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(
		tcase, a_member_in_another_namespace_counts_while_it_lives_and_not_after, 0, 4);
	tcase_add_test(tcase, members_of_equal_pids_in_three_namespaces_are_three);
	tcase_add_test(tcase, a_reused_pid_is_not_taken_for_its_former_owner);
	return help_run("ledger: namespaces", tcase);
}
