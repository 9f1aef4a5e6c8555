/*
 * `cuota doctor`: each check adds findings; each finding that is no "good" carries the command that mends it.
 */
#ifndef CUOTA_CLI_DOCTOR_H
#define CUOTA_CLI_DOCTOR_H

#include "snapshot.h"

enum doctor_level { DOCTOR_GOOD, DOCTOR_NOTE, DOCTOR_WARN, DOCTOR_BAD };

struct finding {
	enum doctor_level level;
	const char *check;
	char text[512];
	char mend[512]; /* a command, or "" */
};

struct doctor {
	const struct snapshot *snapshot;
	unsigned count;
	struct finding *findings;
	int self_test;
};

/* A finding; `mend` may be NULL. Both are printf formats: text, then mend with its own arguments by
 * doctor_mend(). */
void doctor_add(struct doctor *doctor, const char *check, enum doctor_level level,
		const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The command that mends the last finding. */
void doctor_mend(struct doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The checks: of the host (doctor_host.c), of the GPUs (doctor_gpu.c), live (doctor_live.c). */
void doctor_library(struct doctor *doctor);
void doctor_environment(struct doctor *doctor);
void doctor_directory(struct doctor *doctor);
void doctor_policy(struct doctor *doctor);
void doctor_driver(struct doctor *doctor);
void doctor_modes(struct doctor *doctor);
void doctor_ledgers(struct doctor *doctor);
void doctor_caps(struct doctor *doctor);
void doctor_unattached(struct doctor *doctor);
void doctor_kernel_limits(struct doctor *doctor);
void doctor_live(struct doctor *doctor);

#endif
