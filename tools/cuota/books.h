/*
 * Reading the journal that the library keeps (ledger/journal.h): who ended with what account, and
 * how each group fared over time. A user can only have written files of his own; a record in one
 * that speaks for somebody else is taken only when it says that it was found dead.
 */
#ifndef CUOTA_CLI_BOOKS_H
#define CUOTA_CLI_BOOKS_H

#include <stdint.h>

#include "cli.h"
#include "ledger/ledger.h"

struct end_record {
	double t_s; /* when it ended, seconds since the epoch */
	char gpu[UUID_TEXT_BYTES], device[64], group[GROUP_NAME_BYTES], comm[17];
	uint32_t uid, pid;
	double alive_s, busy_s, throttled_s, byte_s;
	uint64_t device_bytes, peak_bytes, denials, launches;
	int reaped, running; /* running: not ended; as of now, from the ledger */
};

struct sample {
	double t_s;
	char gpu[UUID_TEXT_BYTES], group[GROUP_NAME_BYTES];
	uint32_t uid, sm_bp;
	uint64_t used_bytes, cap_bytes, busy_ns, throttled_ns, denials, created_ns;
};

struct books {
	size_t end_count, sample_count;
	struct end_record *ends; /* by time */
	struct sample *samples;	 /* by time */
	unsigned damaged_lines, distrusted_files;
};

enum { BOOKS_ENDS = 1, BOOKS_SAMPLES = 2 };

/*
 * Reads <dir>/journal of each directory: records from `since_s` on, of each file at most the last
 * `tail_bytes` (0 = all of it). No journal is no error. -ENOMEM, or -EACCES with the reason.
 */
int books_read(const struct cli_dirs *dirs, unsigned what, double since_s, size_t tail_bytes,
	       struct books *ret, struct error *err);
void books_free(struct books *books);

/* Appends a record of the caller's own. -ENOMEM. */
int books_add_end(struct books *books, const struct end_record *record);

/*
 * The share of the device's time that a group had over the last `window_s`, NAN when the books do
 * not reach back so far. A group younger than that: over its life.
 */
double books_share(const struct books *books, const char *gpu, const struct group_view *group,
		   double now_s, uint64_t now_monotonic_ns, double window_s);

#endif
