/* Pools: charged by what they reserve, grown ahead, ended with live blocks. */
#include <errno.h>
#include <pthread.h>

#include "memory_help.h"

static struct pools pools;

static void begin(uint64_t cap)
{
	help_begin(cap);
	ck_assert_int_eq(pools_setup(&pools), 0);
}

static void end(void)
{
	help_end();
	pools_destroy(&pools);
}

static struct pool *enter(uint64_t handle)
{
	return pools_enter(&pools, handle, &help_member, 0, CHARGE_POOL);
}

START_TEST(a_pool_is_found_by_its_handle_and_entered_once)
{
	begin(GIB);
	ck_assert_ptr_null(pools_find(&pools, 0x1000));
	ck_assert_ptr_nonnull(enter(0x1000));
	ck_assert_ptr_eq(enter(0x1000), pools_find(&pools, 0x1000));
	ck_assert_uint_eq(atomic_load(&pools.count), 1);
	end();
}
END_TEST

START_TEST(the_hot_path_needs_no_growth_while_the_pool_has_room)
{
	struct pool *pool;

	begin(GIB);
	pool = enter(0x1000);
	ck_assert_uint_eq(pool_growth(pool, 1), POOL_GRANULE);
	ck_assert_int_eq(pool_hold(pool, 64 * MIB, 0, NULL), 0);
	ck_assert_int_eq(pool_settle(pool, 64 * MIB, 64 * MIB, NULL), 0);
	ck_assert_uint_eq(pool_growth(pool, 64 * MIB), 0);
	ck_assert_uint_eq(pool_growth(pool, 65 * MIB), POOL_GRANULE);
	pool_live(pool, 40 * MIB);
	ck_assert_uint_eq(pool_growth(pool, 24 * MIB), 0);
	ck_assert_uint_eq(pool_growth(pool, 25 * MIB), POOL_GRANULE);
	ck_assert_uint_eq(pool_growth(pool, UINT64_MAX), UINT64_MAX);
	pool_live(pool, -40 * (int64_t)MIB);
	pool_settle(pool, 0, 0, NULL);
	end();
}
END_TEST

START_TEST(the_charge_is_what_the_driver_says_is_reserved)
{
	struct pool *pool;

	begin(GIB);
	pool = enter(0x1000);
	pool_hold(pool, 512 * MIB, 0, NULL);
	ck_assert_uint_eq(help_used(), 512 * MIB);
	pool_settle(pool, 512 * MIB, 288 * MIB, NULL);
	ck_assert_uint_eq(help_used(), 288 * MIB);
	pool_settle(pool, 0, 32 * MIB, NULL);
	ck_assert_uint_eq(help_used(), 32 * MIB);
	pool_settle(pool, 0, 0, NULL);
	end();
}
END_TEST

START_TEST(growth_that_nobody_foresaw_is_charged_and_told)
{
	struct pool *pool;
	struct refusal why;

	begin(GIB);
	pool = enter(0x1000);
	ck_assert_int_eq(pool_settle(pool, 0, 2 * GIB, &why), -ENOMEM);
	ck_assert_uint_eq(help_used(), 2 * GIB);
	ck_assert_int_eq(pool_settle(pool, 0, 0, &why), 0);
	end();
}
END_TEST

START_TEST(two_growths_at_once_are_not_charged_twice)
{
	struct pool *pool;
	struct refusal why;

	begin(128 * MIB);
	pool = enter(0x1000);
	ck_assert_int_eq(pool_hold(pool, 64 * MIB, 0, &why), 0);
	ck_assert_int_eq(pool_hold(pool, 64 * MIB, 0, &why), 0);
	/* The first to come back already sees what the second one got. */
	ck_assert_int_eq(pool_settle(pool, 64 * MIB, 128 * MIB, &why), 0);
	ck_assert_uint_eq(help_used(), 128 * MIB);
	ck_assert_int_eq(pool_settle(pool, 64 * MIB, 128 * MIB, &why), 0);
	ck_assert_uint_eq(help_used(), 128 * MIB);
	pool_settle(pool, 0, 0, &why);
	end();
}
END_TEST

START_TEST(a_destroyed_pool_is_charged_until_its_last_block_is_back)
{
	struct pool *pool;

	begin(GIB);
	pool = enter(0x1000);
	pool_settle(pool, 0, 64 * MIB, NULL);
	pool_live(pool, 10 * MIB);
	pool_live(pool, 20 * MIB);
	pool_end(pool);
	pool_ended(pool);
	ck_assert_ptr_null(pools_find(&pools, 0x1000));
	ck_assert_uint_eq(help_used(), 64 * MIB);
	/* The same handle may be another pool by now. */
	ck_assert_ptr_ne(enter(0x1000), pool);
	pool_live(pool, -10 * (int64_t)MIB);
	ck_assert_uint_eq(help_used(), 64 * MIB);
	pool_live(pool, -20 * (int64_t)MIB);
	ck_assert_uint_eq(help_used(), 0);
	end();
}
END_TEST

START_TEST(a_destroyed_pool_without_blocks_is_charged_nothing)
{
	struct pool *pool;

	begin(GIB);
	pool = enter(0x1000);
	pool_settle(pool, 0, 64 * MIB, NULL);
	pool_end(pool);
	pool_ended(pool);
	end();
}
END_TEST

START_TEST(places_of_ended_pools_are_used_again)
{
	begin(GIB);
	for (uint64_t i = 1; i < 20000; i++) {
		struct pool *pool = enter(i * 0x1000);

		ck_assert_ptr_nonnull(pool);
		pool_end(pool);
		pool_ended(pool);
	}
	ck_assert_uint_le(atomic_load(&pools.count), POOLS);
	end();
}
END_TEST

/* A driver with a pool: grows by granules under a lock, as threads come. */
static pthread_mutex_t driver = PTHREAD_MUTEX_INITIALIZER;
static uint64_t driver_used, driver_reserved, driver_most;

static uint64_t driver_take(int64_t bytes)
{
	uint64_t reserved;

	pthread_mutex_lock(&driver);
	driver_used += (uint64_t)bytes;
	if (driver_used > driver_reserved)
		driver_reserved = (driver_used + POOL_GRANULE - 1) / POOL_GRANULE * POOL_GRANULE;
	if (driver_reserved > driver_most)
		driver_most = driver_reserved;
	reserved = driver_reserved;
	pthread_mutex_unlock(&driver);
	return reserved;
}

static void *use_pool(void *arg)
{
	struct pool *pool = arg;
	uint64_t seed = (uint64_t)(uintptr_t)&seed;

	for (int i = 0; i < 20000; i++) {
		int64_t bytes = (int64_t)(help_random(&seed) % (48 * MIB) + 1);
		uint64_t growth = pool_growth(pool, (uint64_t)bytes);

		if (growth && pool_hold(pool, growth, 0, NULL))
			continue;
		pool_settle(pool, growth, driver_take(bytes), NULL);
		pool_live(pool, bytes);
		pool_live(pool, -bytes);
		driver_take(-bytes);
	}
	return NULL;
}

START_TEST(threads_that_share_a_pool_leave_the_charge_equal_to_the_driver)
{
	pthread_t threads[4];
	struct pool *pool;

	begin(4 * GIB);
	pool = enter(0x1000);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, use_pool, pool);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	pool_settle(pool, 0, driver_reserved, NULL);
	ck_assert_uint_eq(help_used(), driver_reserved);
	ck_assert_uint_eq(pool->held, 0);
	ck_assert_uint_eq(pool->live_bytes, 0);
	pool_settle(pool, 0, 0, NULL);
	end();
}
END_TEST

int main(void)
{
	TCase *tcase = tcase_create("pools");

	tcase_add_test(tcase, a_pool_is_found_by_its_handle_and_entered_once);
	tcase_add_test(tcase, the_hot_path_needs_no_growth_while_the_pool_has_room);
	tcase_add_test(tcase, the_charge_is_what_the_driver_says_is_reserved);
	tcase_add_test(tcase, growth_that_nobody_foresaw_is_charged_and_told);
	tcase_add_test(tcase, two_growths_at_once_are_not_charged_twice);
	tcase_add_test(tcase, a_destroyed_pool_is_charged_until_its_last_block_is_back);
	tcase_add_test(tcase, a_destroyed_pool_without_blocks_is_charged_nothing);
	tcase_add_test(tcase, places_of_ended_pools_are_used_again);
	tcase_add_test(tcase, threads_that_share_a_pool_leave_the_charge_equal_to_the_driver);
	return help_run("memory pools", tcase);
}
