/*
 * Which cap holds: the admin's ceiling, what the environment asks, what the ledger holds for the group, and the
 * limits file of `cuota set`. The smallest wins; only a trusted limits file may raise what was asked.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "ledger_help.h"

#define GIB  (1ull << 30)
#define USER 12345

static struct ledger ledger;

static void setup(void)
{
	help_setup();
	help_open(&ledger);
}

static void join_as(struct member *member, uint64_t ceiling_gib, uint64_t asked_gib)
{
	struct quota ceiling = {.mem_bytes = ceiling_gib * GIB};
	struct quota asked = {.mem_bytes = asked_gib * GIB};
	struct error err;

	if (ledger_join(&ledger, "train", &ceiling, &asked, member, &err) != 0)
		ck_abort_msg("%s", err.text);
}

static void set(uint64_t gib)
{
	struct quota quota = {.mem_bytes = gib * GIB};
	struct error err;

	if (limits_write(help_dir, "train", &quota, &err) != 0)
		ck_abort_msg("%s", err.text);
}

/* Two members with a cap, none (0) or "none" each: what both may take, in either order. */
START_TEST(a_member_without_a_cap_never_widens_the_groups)
{
	static const struct {
		uint64_t first, second, first_cap, second_cap;
	} rows[] = {
		{8 * GIB, 0, 8 * GIB, 8 * GIB},		 {0, 8 * GIB, 8 * GIB, 8 * GIB},
		{8 * GIB, QUOTA_NONE, 8 * GIB, 8 * GIB}, {QUOTA_NONE, 8 * GIB, 8 * GIB, 8 * GIB},
		{8 * GIB, 4 * GIB, 4 * GIB, 4 * GIB},	 {4 * GIB, 8 * GIB, 4 * GIB, 4 * GIB},
		{0, 0, UINT64_MAX, UINT64_MAX},		 {QUOTA_NONE, 0, UINT64_MAX, UINT64_MAX},
	};
	struct quota first = {.mem_bytes = rows[_i].first};
	struct quota second = {.mem_bytes = rows[_i].second};
	struct member a, b;

	help_join(&ledger, "train", &first, &a);
	help_join(&ledger, "train", &second, &b);
	ck_assert_uint_eq(ledger_group_cap(&a), rows[_i].first_cap);
	ck_assert_uint_eq(ledger_group_cap(&b), rows[_i].second_cap);
}
END_TEST

START_TEST(a_cap_outlives_the_member_that_brought_it_but_not_the_group)
{
	struct quota small = {.mem_bytes = GIB}, large = {.mem_bytes = 8 * GIB};
	struct member a, b;

	help_join(&ledger, "train", &large, &a);
	help_join(&ledger, "train", &small, &b);
	ledger_leave(&b);
	ck_assert_uint_eq(ledger_group_cap(&a), GIB);
	ledger_leave(&a);
	help_join(&ledger, "train", &large, &a);
	ck_assert_uint_eq(ledger_group_cap(&a), 8 * GIB);
}
END_TEST

START_TEST(groups_of_one_ledger_have_caps_of_their_own)
{
	struct quota one = {.mem_bytes = GIB}, two = {.mem_bytes = 2 * GIB};
	struct member a, b, c;

	help_join(&ledger, "a", &one, &a);
	help_join(&ledger, "b", &two, &b);
	help_join(&ledger, "", NULL, &c);
	ck_assert_int_eq(ledger_charge(&a, CHARGE_LINEAR, 2 * GIB, NULL), -ENOMEM);
	ck_assert_int_eq(ledger_charge(&b, CHARGE_LINEAR, 2 * GIB, NULL), 0);
	ck_assert_int_eq(ledger_charge(&c, CHARGE_LINEAR, 100 * GIB, NULL), 0);
	ck_assert_int_eq(ledger_charge(&a, CHARGE_LINEAR, GIB, NULL), 0);
	ck_assert_uint_eq(help_total(&a), GIB);
	ck_assert_uint_eq(help_total(&b), 2 * GIB);
}
END_TEST

START_TEST(the_same_group_on_two_gpus_has_two_caps)
{
	struct quota quota = {.mem_bytes = GIB};
	struct ledger other;
	struct member a, b;

	ck_assert_int_eq(ledger_open(help_dir, "GPU-2", &other, NULL), 0);
	help_join(&ledger, "train", &quota, &a);
	help_join(&other, "train", &quota, &b);
	ck_assert_int_eq(ledger_charge(&a, CHARGE_LINEAR, GIB, NULL), 0);
	ck_assert_int_eq(ledger_charge(&b, CHARGE_LINEAR, GIB, NULL), 0);
	ck_assert_int_eq(ledger_charge(&b, CHARGE_LINEAR, 1, NULL), -ENOMEM);
	ledger_leave(&b);
	ledger_leave(&a);
	ledger_close(&other);
}
END_TEST

START_TEST(two_processes_of_700_mib_do_not_fit_under_1_gib)
{
	struct quota quota = {.mem_bytes = GIB};
	struct member a, b;

	help_join(&ledger, "train", &quota, &a);
	help_join(&ledger, "train", &quota, &b);
	ck_assert_int_eq(ledger_charge(&a, CHARGE_LINEAR, 700ull << 20, NULL), 0);
	ck_assert_int_eq(ledger_charge(&b, CHARGE_LINEAR, 700ull << 20, NULL), -ENOMEM);
}
END_TEST

START_TEST(the_ceiling_is_the_smaller_of_the_two_whoever_asks_for_more)
{
	struct member a, b;

	join_as(&a, 4, 8);
	ck_assert_uint_eq(ledger_group_cap(&a), 4 * GIB);
	join_as(&b, 0, 6);
	ck_assert_uint_eq(ledger_group_cap(&b), 4 * GIB);
}
END_TEST

START_TEST(set_lowers_at_once)
{
	struct member a;

	join_as(&a, 0, 8);
	ck_assert_int_eq(ledger_charge(&a, CHARGE_LINEAR, 4 * GIB, NULL), 0);
	set(2);
	ck_assert_int_eq(ledger_charge(&a, CHARGE_LINEAR, 1, NULL), -ENOMEM);
	ck_assert_uint_eq(ledger_room(&a), 0);
	ledger_refund(&a, CHARGE_LINEAR, 3 * GIB);
	ck_assert_uint_eq(ledger_room(&a), GIB);
	ck_assert_int_eq(ledger_charge(&a, CHARGE_LINEAR, GIB + 1, NULL), -ENOMEM);
	ck_assert_int_eq(ledger_charge(&a, CHARGE_LINEAR, GIB, NULL), 0);
}
END_TEST

START_TEST(set_by_the_owner_raises_what_was_asked_up_to_the_ceiling)
{
	struct member a, b;

	join_as(&a, 16, 8);
	join_as(&b, 12, 8);
	set(20);
	member_refresh(&a);
	member_refresh(&b);
	ck_assert_uint_eq(ledger_group_cap(&a), 16 * GIB);
	ck_assert_uint_eq(ledger_group_cap(&b), 12 * GIB);
	ck_assert_int_eq(ledger_charge(&a, CHARGE_LINEAR, 10 * GIB, NULL), 0);
	ck_assert_int_eq(ledger_charge(&b, CHARGE_LINEAR, 3 * GIB, NULL), -ENOMEM);
	ck_assert_int_eq(ledger_charge(&b, CHARGE_LINEAR, 2 * GIB, NULL), 0);
}
END_TEST

START_TEST(who_joins_later_reads_the_limits_too)
{
	struct member a;

	set(2);
	join_as(&a, 0, 8);
	ck_assert_uint_eq(ledger_group_cap(&a), 2 * GIB);
}
END_TEST

START_TEST(set_changes_only_the_fields_it_names)
{
	struct quota first = {.mem_bytes = 2 * GIB, .sm_bp = 3000, .weight = 50};
	struct quota second = {.mem_bytes = QUOTA_NONE, .priority = PRIORITY_HIGH};
	struct quota now;
	struct member a;

	join_as(&a, 0, 8);
	ck_assert_int_eq(limits_write(help_dir, "train", &first, NULL), 0);
	ck_assert_int_eq(limits_write(help_dir, "train", &second, NULL), 0);
	ck_assert_int_eq(limits_read(help_dir, "train", geteuid(), &now, NULL), 0);
	ck_assert_uint_eq(now.mem_bytes, QUOTA_NONE);
	ck_assert_uint_eq(now.mem_process_bytes, QUOTA_UNSET);
	ck_assert_uint_eq(now.sm_bp, 3000);
	member_refresh(&a);
	ck_assert_uint_eq(ledger_group_cap(&a), UINT64_MAX);
	ck_assert_uint_eq(a.sm_cap_bp, 3000);
	ck_assert_uint_eq(a.weight, 50);
	ck_assert_uint_eq(a.priority, PRIORITY_HIGH);
}
END_TEST

static char limits[256];

static void write_limits(const char *text, unsigned mode, unsigned uid)
{
	int fd;

	snprintf(limits, sizeof(limits), "%s/limits", help_dir);
	mkdir(limits, 0755);
	snprintf(limits, sizeof(limits), "%s/limits/train.limits", help_dir);
	fd = open(limits, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(fchmod(fd, mode), 0);
	if (uid)
		ck_assert_int_eq(fchown(fd, uid, uid), 0);
	close(fd);
}

START_TEST(limits_that_somebody_else_could_have_written_are_not_believed)
{
	static const unsigned modes[] = {0644, 0664, 0646, 0644};
	static const unsigned uids[] = {0, 0, 0, USER};
	struct quota quota;
	struct member a;
	int trusted = _i == 0;

	if (uids[_i] && geteuid() != 0)
		return;
	write_limits("mem = 1073741824\n", modes[_i], uids[_i]);
	ck_assert_int_eq(limits_read(help_dir, "train", geteuid(), &quota, NULL),
			 trusted ? 0 : -EPERM);
	join_as(&a, 0, 8);
	ck_assert_uint_eq(ledger_group_cap(&a), trusted ? GIB : 8 * GIB);
	if (uids[_i]) /* its owner believes it */
		ck_assert_int_eq(limits_read(help_dir, "train", USER, &quota, NULL), 0);
}
END_TEST

START_TEST(limits_that_cannot_be_understood_lift_nothing)
{
	static const char *const texts[] = {"mem = \n",	   "mem = -1\n",   "mem = 0\n",
					    "mem = abc\n", "memory = 5\n", "mem 5\n",
					    "mem = 5",	   "sm = 10001\n", "weight = none\n",
					    "mem = 1 \n",  "\x01\x02\n"};
	struct quota quota;
	struct member a;

	join_as(&a, 0, 8);
	set(2);
	member_refresh(&a);
	ck_assert_uint_eq(ledger_group_cap(&a), 2 * GIB);
	write_limits(texts[_i], 0644, 0);
	ck_assert_int_eq(limits_read(help_dir, "train", geteuid(), &quota, NULL), -EINVAL);
	atomic_fetch_add(&ledger.file->group[a.group].limits_gen, 1);
	member_refresh(&a);
	ck_assert_uint_eq(ledger_group_cap(&a), 2 * GIB);
}
END_TEST

START_TEST(without_limits_again_the_environment_counts)
{
	struct member a;

	join_as(&a, 0, 8);
	set(2);
	member_refresh(&a);
	write_limits("", 0644, 0);
	ck_assert_int_eq(unlink(limits), 0);
	atomic_fetch_add(&ledger.file->group[a.group].limits_gen, 1);
	member_refresh(&a);
	ck_assert_uint_eq(ledger_group_cap(&a), 8 * GIB);
}
END_TEST

START_TEST(shares_weights_and_priorities_are_the_smallest_asked)
{
	struct quota one = {.sm_bp = 5000, .weight = 200, .priority = PRIORITY_HIGH};
	struct quota two = {.sm_bp = 3000, .weight = 50, .priority = PRIORITY_LOW};
	struct member a, b, c;

	help_join(&ledger, "train", NULL, &c);
	ck_assert_uint_eq(c.sm_cap_bp, QUOTA_SM_NONE);
	ck_assert_uint_eq(c.weight, QUOTA_WEIGHT_DEFAULT);
	ck_assert_uint_eq(c.priority, PRIORITY_NORMAL);
	help_join(&ledger, "train", &one, &a);
	ck_assert_uint_eq(a.weight, 200);
	help_join(&ledger, "train", &two, &b);
	ck_assert_uint_eq(b.sm_cap_bp, 3000);
	ck_assert_uint_eq(b.weight, 50);
	ck_assert_uint_eq(b.priority, PRIORITY_LOW);
	member_refresh(&a); /* what joined later binds the others too */
	ck_assert_uint_eq(a.sm_cap_bp, 3000);
	ck_assert_uint_eq(a.weight, 50);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("caps");

	tcase_add_checked_fixture(tcase, setup, help_teardown);
	tcase_add_loop_test(tcase, a_member_without_a_cap_never_widens_the_groups, 0, 8);
	tcase_add_test(tcase, a_cap_outlives_the_member_that_brought_it_but_not_the_group);
	tcase_add_test(tcase, groups_of_one_ledger_have_caps_of_their_own);
	tcase_add_test(tcase, the_same_group_on_two_gpus_has_two_caps);
	tcase_add_test(tcase, two_processes_of_700_mib_do_not_fit_under_1_gib);
	tcase_add_test(tcase, the_ceiling_is_the_smaller_of_the_two_whoever_asks_for_more);
	tcase_add_test(tcase, set_lowers_at_once);
	tcase_add_test(tcase, set_by_the_owner_raises_what_was_asked_up_to_the_ceiling);
	tcase_add_test(tcase, who_joins_later_reads_the_limits_too);
	tcase_add_test(tcase, set_changes_only_the_fields_it_names);
	tcase_add_loop_test(tcase, limits_that_somebody_else_could_have_written_are_not_believed, 0,
			    4);
	tcase_add_loop_test(tcase, limits_that_cannot_be_understood_lift_nothing, 0, 11);
	tcase_add_test(tcase, without_limits_again_the_environment_counts);
	tcase_add_test(tcase, shares_weights_and_priorities_are_the_smallest_asked);
	return help_run("ledger: caps", tcase);
}
