/* The table of charges: against a plain array, from threads, with a million entries. */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "memory_help.h"

static struct charge entry(enum charge_space space, uint64_t key, uint64_t bytes)
{
	return (struct charge){
		.key = key, .bytes = bytes, .owner = key % 7, .refs = 1, .space = (uint8_t)space};
}

START_TEST(what_was_put_is_got_and_taken_once)
{
	struct charges *table = charges_new();
	struct charge new = entry(AT_ADDRESS, 0x7f0000000000, 512), got;

	ck_assert_int_eq(charges_put(table, &new, &got), 0);
	ck_assert_int_eq(charges_get(table, AT_ADDRESS, new.key, &got), 0);
	ck_assert_uint_eq(got.bytes, 512);
	ck_assert_int_eq(charges_get(table, AT_ARRAY, new.key, &got), -ENOENT);
	ck_assert_int_eq(charges_take(table, AT_ADDRESS, new.key, &got), 0);
	ck_assert_int_eq(charges_take(table, AT_ADDRESS, new.key, &got), -ENOENT);
	ck_assert_uint_eq(charges_count(table), 0);
	charges_destroy(table);
}
END_TEST

START_TEST(an_entry_of_the_same_key_is_replaced_and_told)
{
	struct charges *table = charges_new();
	struct charge first = entry(AT_ADDRESS, 42, 1), second = entry(AT_ADDRESS, 42, 2), old;

	charges_put(table, &first, &old);
	ck_assert_int_eq(charges_put(table, &second, &old), 1);
	ck_assert_uint_eq(old.bytes, 1);
	ck_assert_int_eq(charges_get(table, AT_ADDRESS, 42, &old), 0);
	ck_assert_uint_eq(old.bytes, 2);
	ck_assert_uint_eq(charges_count(table), 1);
	charges_destroy(table);
}
END_TEST

START_TEST(references_are_counted_and_the_last_one_removes)
{
	struct charges *table = charges_new();
	struct charge page = entry(AT_PAGE, 7, 2 * MIB), got;

	ck_assert_int_eq(charges_ref(table, &page), 1);
	ck_assert_int_eq(charges_ref(table, &page), 0);
	ck_assert_int_eq(charges_add(table, AT_PAGE, 7, -1, 0, &got), 0);
	ck_assert_uint_eq(got.refs, 1);
	ck_assert_int_eq(charges_add(table, AT_PAGE, 7, -1, 0, &got), 0);
	ck_assert_uint_eq(got.refs, 0);
	ck_assert_int_eq(charges_add(table, AT_PAGE, 7, -1, 0, &got), -ENOENT);
	charges_destroy(table);
}
END_TEST

START_TEST(flags_tell_what_they_were)
{
	struct charges *table = charges_new();
	struct charge new = entry(AT_ADDRESS, 9, 1), before;

	charges_put(table, &new, &before);
	ck_assert_int_eq(charges_flag(table, AT_ADDRESS, 9, CHARGE_FREED, 0, &before), 0);
	ck_assert(!(before.flags & CHARGE_FREED));
	ck_assert_int_eq(charges_flag(table, AT_ADDRESS, 9, CHARGE_FREED, 0, &before), 0);
	ck_assert(before.flags & CHARGE_FREED);
	charges_destroy(table);
}
END_TEST

START_TEST(an_allocation_and_its_page_are_entered_in_one_step)
{
	struct charges *table = charges_new();
	struct charge page = entry(AT_PAGE, charges_page_key(3, 5), 2 * MIB), old, got;
	struct charge one = entry(AT_ADDRESS, 5 * 2 * MIB, 512), two = one;
	uint8_t kind;
	int is_new = -1;

	page.kind = CHARGE_MANAGED;
	two.key += 512;
	ck_assert_int_eq(charges_put_in_page(table, &one, &page, &old, &is_new), 0);
	ck_assert_int_eq(is_new, 1);
	ck_assert_int_eq(charges_put_in_page(table, &two, &page, &old, &is_new), 0);
	ck_assert_int_eq(is_new, 0);
	/* One that is there already is replaced, and stands on the page twice until that is given back. */
	two.bytes = 1024;
	ck_assert_int_eq(charges_put_in_page(table, &two, &page, &old, &is_new), 1);
	ck_assert_uint_eq(old.bytes, 512);
	ck_assert_int_eq(charges_get(table, AT_PAGE, page.key, &got), 0);
	ck_assert_uint_eq(got.refs, 3);
	ck_assert_int_eq(charges_unref(table, AT_PAGE, page.key, &kind), 2);
	ck_assert_int_eq(charges_unref(table, AT_PAGE, page.key, &kind), 1);
	ck_assert_int_eq(charges_unref(table, AT_PAGE, page.key, &kind), 0);
	ck_assert_uint_eq(kind, CHARGE_MANAGED);
	ck_assert_int_eq(charges_unref(table, AT_PAGE, page.key, &kind), -ENOENT);
	ck_assert_uint_eq(charges_count(table), 2);
	charges_destroy(table);
}
END_TEST

START_TEST(letting_go_removes_an_allocation_and_only_marks_a_pool_s_block)
{
	struct charges *table = charges_new();
	struct charge linear = entry(AT_ADDRESS, 0x1000, 512),
		      block = entry(AT_ADDRESS, 0x2000, 512);
	struct charge got;

	block.kind = CHARGE_POOL;
	block.owner = 9;
	charges_put(table, &linear, &got);
	charges_put(table, &block, &got);
	ck_assert_int_eq(charges_renew(table, block.key, 9, 512), 0);
	ck_assert_int_eq(charges_let_go(table, linear.key, &got), 0);
	ck_assert_uint_eq(got.bytes, 512);
	ck_assert_int_eq(charges_let_go(table, linear.key, &got), -ENOENT);
	ck_assert_int_eq(charges_let_go(table, block.key, &got), 0);
	ck_assert_uint_eq(got.flags, 0);
	ck_assert_int_eq(charges_let_go(table, block.key, &got), -EALREADY);
	ck_assert_uint_eq(charges_count(table), 1);
	/* It comes again: not larger, and not from another pool. */
	ck_assert_int_eq(charges_renew(table, block.key, 9, 513), 0);
	ck_assert_int_eq(charges_renew(table, block.key, 8, 512), 0);
	ck_assert_int_eq(charges_renew(table, block.key, 9, 256), 1);
	ck_assert_int_eq(charges_renew(table, block.key, 9, 256), 0);
	ck_assert_int_eq(charges_let_go(table, block.key, &got), 0);
	ck_assert_uint_eq(got.bytes, 256);
	ck_assert_int_eq(charges_renew(table, block.key, 9, 512), 0);
	charges_destroy(table);
}
END_TEST

/* Keys from a small range, so that chains of collisions come and go; the oracle is an array. */
START_TEST(a_million_random_operations_equal_an_array)
{
	enum { KEYS = 5000 };
	static uint64_t oracle[KEYS];
	struct charges *table = charges_new();
	uint64_t seed = 1, live = 0;

	for (int i = 0; i < 1000000; i++) {
		uint64_t key = help_random(&seed) % KEYS;
		uint64_t address = 0x7f0000000000 + key * 512;
		struct charge got, new = entry(AT_ADDRESS, address, key + (uint64_t)i + 1);

		switch (help_random(&seed) % 3) {
		case 0:
			ck_assert_int_eq(charges_put(table, &new, &got), oracle[key] != 0);
			live += oracle[key] == 0;
			oracle[key] = new.bytes;
			break;
		case 1:
			ck_assert_int_eq(charges_take(table, AT_ADDRESS, address, &got) == 0,
					 oracle[key] != 0);
			live -= oracle[key] != 0;
			oracle[key] = 0;
			break;
		default:
			ck_assert_int_eq(charges_get(table, AT_ADDRESS, address, &got) == 0,
					 oracle[key] != 0);
			if (oracle[key])
				ck_assert_uint_eq(got.bytes, oracle[key]);
		}
	}
	ck_assert_uint_eq(charges_count(table), live);
	charges_destroy(table);
}
END_TEST

static int of_owner(const struct charge *candidate, void *arg)
{
	return candidate->owner == *(uint64_t *)arg;
}

START_TEST(a_walk_takes_every_match_and_nothing_else)
{
	struct charges *table = charges_new();
	struct charges_walk walk = {0};
	struct charge old, batch[13];
	uint64_t owner = 3, sum = 0;
	size_t count;

	for (uint64_t key = 0; key < 70000; key++) {
		struct charge new = entry(AT_ADDRESS, key, 1);

		charges_put(table, &new, &old);
	}
	while ((count = charges_collect(table, &walk, 1, of_owner, &owner, batch, 13))) {
		for (size_t i = 0; i < count; i++)
			ck_assert_uint_eq(batch[i].owner, 3);
		sum += count;
	}
	ck_assert_uint_eq(sum, 10000);
	ck_assert_uint_eq(charges_count(table), 60000);
	charges_destroy(table);
}
END_TEST

START_TEST(a_walk_misses_nothing_when_others_are_removed_between_its_batches)
{
	struct charges *table = charges_new();
	struct charges_walk walk = {0};
	struct charge old, batch[13];
	uint64_t owner = 3, key = 0, sum = 0;
	size_t count;

	for (key = 0; key < 70000; key++) {
		struct charge new = entry(AT_ADDRESS, key, 1);

		charges_put(table, &new, &old);
	}
	/* What stands behind a removed entry moves forward, past where the walk has come to. */
	while ((count = charges_collect(table, &walk, 1, of_owner, &owner, batch, 13))) {
		sum += count;
		for (uint64_t i = 0; i < 100 && key > 0;)
			if (--key % 7 != owner && ++i)
				charges_take(table, AT_ADDRESS, key, &old);
	}
	ck_assert_uint_eq(sum, 10000);
	charges_destroy(table);
}
END_TEST

START_TEST(bytes_are_brought_between_two_bounds_and_what_they_were_is_told)
{
	struct charges *table = charges_new();
	struct charge limit = entry(AT_LIMIT, 7, 100), got;

	ck_assert_int_eq(charges_clamp(table, AT_LIMIT, 7, 0, 1, &got), -ENOENT);
	charges_put(table, &limit, &got);
	ck_assert_int_eq(charges_clamp(table, AT_LIMIT, 7, 300, UINT64_MAX, &got), 0);
	ck_assert_uint_eq(got.bytes, 100);
	ck_assert_int_eq(charges_clamp(table, AT_LIMIT, 7, 200, UINT64_MAX, &got), 0);
	ck_assert_uint_eq(got.bytes, 300);
	ck_assert_int_eq(charges_clamp(table, AT_LIMIT, 7, 0, 50, &got), 0);
	ck_assert_uint_eq(got.bytes, 300);
	ck_assert_int_eq(charges_get(table, AT_LIMIT, 7, &got), 0);
	ck_assert_uint_eq(got.bytes, 50);
	charges_destroy(table);
}
END_TEST

static struct charges *shared_table;

static void *put_and_take(void *arg)
{
	uint64_t base = (uint64_t)(uintptr_t)arg << 32;
	struct charge page = entry(AT_PAGE, 1, 1), got, shared = entry(AT_PAGE, 99, 1);
	struct charge mine = entry(AT_ADDRESS, 99ull << CHARGES_PAGE_SHIFT | (uintptr_t)arg, 1);
	uint8_t kind;
	int is_new;

	for (uint64_t i = 0; i < 100000; i++) {
		struct charge new = entry(AT_ADDRESS, base + i, i);

		charges_put(shared_table, &new, &got);
		charges_ref(shared_table, &page);
		if (i >= 100 && charges_take(shared_table, AT_ADDRESS, base + i - 100, &got))
			return (void *)1;
		if (charges_put_in_page(shared_table, &mine, &shared, &got, &is_new) ||
		    charges_let_go(shared_table, mine.key, &got) ||
		    charges_unref(shared_table, AT_PAGE, 99, &kind) < 0)
			return (void *)2;
	}
	return NULL;
}

START_TEST(threads_do_not_lose_or_double_anything)
{
	pthread_t threads[4];
	struct charge got;
	void *bad;

	shared_table = charges_new();
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, put_and_take, (void *)(i + 1));
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &bad);
		ck_assert_ptr_null(bad);
	}
	ck_assert_uint_eq(charges_count(shared_table), 4 * 100 + 1);
	ck_assert_int_eq(charges_get(shared_table, AT_PAGE, 1, &got), 0);
	ck_assert_uint_eq(got.refs, 400000);
	charges_destroy(shared_table);
}
END_TEST

static uint64_t pair_ns(struct charges *table, uint64_t from)
{
	struct timespec start, end;
	struct charge got;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (uint64_t i = 0; i < 100000; i++) {
		struct charge new = entry(AT_ADDRESS, from + i * 512, 1);

		charges_put(table, &new, &got);
		charges_take(table, AT_ADDRESS, new.key, &got);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((uint64_t)(end.tv_sec - start.tv_sec) * 1000000000 +
		(uint64_t)(end.tv_nsec - start.tv_nsec)) /
	       100000;
}

/* A list would be thousands of times slower; the bound allows for caches and a busy machine. */
START_TEST(a_million_live_entries_cost_no_more_than_caches)
{
	struct charges *table = charges_new();
	uint64_t few = pair_ns(table, 1ull << 40), many;
	struct charge old;

	for (uint64_t i = 0; i < 1000000; i++) {
		struct charge new = entry(AT_ADDRESS, 0x7f0000000000 + i * 512, 1);

		ck_assert_int_eq(charges_put(table, &new, &old), 0);
	}
	many = pair_ns(table, 1ull << 40);
	ck_assert_msg(many < few * 20 + 2000, "%lu ns with a million, %lu ns with none",
		      (unsigned long)many, (unsigned long)few);
	charges_destroy(table);
}
END_TEST

START_TEST(a_forked_child_owns_nothing_of_its_parent)
{
	struct memory *memory = memory_new();
	struct charge new = entry(AT_ADDRESS, 5, 1), old;
	int status;
	pid_t pid;

	charges_put(memory->charges, &new, &old);
	pid = fork();
	if (pid == 0) {
		if (!memory_ready(memory))
			_exit(1);
		_exit(charges_count(memory->charges) == 0 ? 0 : 2);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(charges_count(memory->charges), 1);
	memory_destroy(memory);
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("charges");

	tcase_add_test(tcase, what_was_put_is_got_and_taken_once);
	tcase_add_test(tcase, an_entry_of_the_same_key_is_replaced_and_told);
	tcase_add_test(tcase, references_are_counted_and_the_last_one_removes);
	tcase_add_test(tcase, flags_tell_what_they_were);
	tcase_add_test(tcase, an_allocation_and_its_page_are_entered_in_one_step);
	tcase_add_test(tcase, letting_go_removes_an_allocation_and_only_marks_a_pool_s_block);
	tcase_add_test(tcase, a_million_random_operations_equal_an_array);
	tcase_add_test(tcase, a_walk_takes_every_match_and_nothing_else);
	tcase_add_test(tcase, a_walk_misses_nothing_when_others_are_removed_between_its_batches);
	tcase_add_test(tcase, bytes_are_brought_between_two_bounds_and_what_they_were_is_told);
	tcase_add_test(tcase, threads_do_not_lose_or_double_anything);
	tcase_add_test(tcase, a_million_live_entries_cost_no_more_than_caches);
	tcase_add_test(tcase, a_forked_child_owns_nothing_of_its_parent);
	return help_run("memory charges", tcase);
}
