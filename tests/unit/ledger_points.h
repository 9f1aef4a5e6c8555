/*
 * The ledger compiled into the test itself with its test points on: a process can be made to die, or to stop, at the
 * n-th point it passes, which lies between two writes to shared memory.
 */
#ifndef CUOTA_TESTS_LEDGER_POINTS_H
#define CUOTA_TESTS_LEDGER_POINTS_H

#define CUOTA_TEST_POINTS

#include "../../src/ledger/byte_lock.c"
#include "../../src/ledger/caps.c"
#include "../../src/ledger/charge.c"
#include "../../src/ledger/dir.c"
#include "../../src/ledger/group.c"
#include "../../src/ledger/join.c"
#include "../../src/ledger/limits.c"
#include "../../src/ledger/live.c"
#include "../../src/ledger/map.c"
#include "../../src/ledger/open.c"
#include "../../src/ledger/recover.c"
#include "../../src/ledger/tend.c"
#include "../../src/ledger/view.c"

#include <signal.h>

static unsigned points_left;	    /* 0 = never */
static int points_signal = SIGKILL; /* 0 = exit, where PID 1 cannot kill itself */
static int points_only;		    /* 0 = any point, else this one */
static unsigned points_passed;

void ledger_test_point(int point)
{
	if (points_only && point != points_only)
		return;
	points_passed++;
	if (!points_left || --points_left)
		return;
	if (points_signal == 0)
		syscall(SYS_exit_group, 9);
	else
		kill((pid_t)syscall(SYS_getpid), points_signal);
}

#endif
