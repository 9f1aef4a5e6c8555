/* What the memory policy's tests share: a member of a private ledger, under a cap. */
#ifndef CUOTA_TESTS_MEMORY_HELP_H
#define CUOTA_TESTS_MEMORY_HELP_H

#include <check.h>
#include <stdlib.h>

#include "memory/memory.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

#define HELP_UUID "GPU-11111111-2222-3333-4444-555555555555"

static struct ledger help_ledger;
static struct member help_member;

static inline void help_begin(uint64_t cap_bytes)
{
	struct quota quota = {.mem_bytes = cap_bytes};
	struct error err = {""};

	ck_assert_int_eq(ledger_open_private(HELP_UUID, &help_ledger, &err), 0);
	if (ledger_join(&help_ledger, "train", NULL, &quota, &help_member, &err))
		ck_abort_msg("join: %s", err.text);
}

static inline uint64_t help_used(void)
{
	return ledger_process_used(&help_member);
}

static inline void help_end(void)
{
	ck_assert_uint_eq(help_used(), 0);
	ledger_leave(&help_member);
	ledger_close(&help_ledger);
}

/* A fixed sequence, the same on every machine. */
static inline uint64_t help_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline int help_run(const char *name, TCase *tcase)
{
	Suite *suite = suite_create(name);
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 240);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

#endif
