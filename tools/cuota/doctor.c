/*
 * `cuota doctor`: runs every check and prints what each found. The order is that of a person's questions:
 * is it installed, where are the ledgers, what about the GPUs, does it really work.
 */
#include "doctor.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void (*const checks[])(struct doctor *) = {
	doctor_library,	   doctor_environment,	 doctor_directory, doctor_policy,
	doctor_driver,	   doctor_modes,	 doctor_ledgers,   doctor_caps,
	doctor_unattached, doctor_kernel_limits, doctor_live,
};

static const char *const level_names[] = {"good", "note", "warning", "bad"};

struct input {
	int json, no_self_test, strict;
};

enum { KEY_NO_SELF_TEST = 0x100, KEY_STRICT };

static const struct argp_option options[] = {
	{"json", 'j', NULL, 0, "print JSON", 0},
	{"no-self-test", KEY_NO_SELF_TEST, NULL, 0, "run no program on the GPU", 0},
	{"strict", KEY_STRICT, NULL, 0, "exit 1 for warnings, too", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	switch (key) {
	case 'j': in->json = 1; return 0;
	case KEY_NO_SELF_TEST: in->no_self_test = 1; return 0;
	case KEY_STRICT: in->strict = 1; return 0;
	case ARGP_KEY_ARG: argp_error(state, "'%s' is no option", arg); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

void doctor_add(struct doctor *doctor, const char *check, enum doctor_level level,
		const char *format, ...)
{
	struct finding *more = realloc(doctor->findings,
				       (doctor->count + 1) * sizeof(*doctor->findings)),
		       *finding;
	va_list args;

	if (!more)
		return;
	doctor->findings = more;
	finding = &more[doctor->count++];
	finding->level = level;
	finding->check = check;
	finding->mend[0] = '\0';
	va_start(args, format);
	vsnprintf(finding->text, sizeof(finding->text), format, args);
	va_end(args);
}

void doctor_mend(struct doctor *doctor, const char *format, ...)
{
	struct finding *finding = &doctor->findings[doctor->count - 1];
	va_list args;

	if (!doctor->count)
		return;
	va_start(args, format);
	vsnprintf(finding->mend, sizeof(finding->mend), format, args);
	va_end(args);
}

static void print_text(const struct doctor *doctor)
{
	static const char *const colours[] = {"\033[32m", "\033[36m", "\033[33m", "\033[31m"};
	int colour = cli_colour(stdout);

	for (unsigned i = 0; i < doctor->count; i++) {
		const struct finding *f = &doctor->findings[i];

		printf("%s%-8s%s %-12s %s\n", colour ? colours[f->level] : "",
		       level_names[f->level], colour ? "\033[0m" : "", f->check, f->text);
		if (f->mend[0])
			printf("%-8s %-12s $ %s\n", "", "", f->mend);
	}
}

static void print_json(const struct doctor *doctor)
{
	json_t *list = json_array(), *root;

	for (unsigned i = 0; i < doctor->count; i++) {
		const struct finding *f = &doctor->findings[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:o}", "check", f->check, "level",
						level_names[f->level], "text", f->text, "mend",
						f->mend[0] ? json_string(f->mend) : json_null()));
	}
	root = json_pack("{s:s, s:i, s:o}", "schema", "cuota.doctor", "version", 1, "findings",
			 list);
	json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
}

int command_doctor(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Looks for what keeps quotas from working here and tells how to mend it.\v"
		       "Exit code: 1 when something is bad.",
	};
	enum doctor_level worst = DOCTOR_GOOD;
	struct input in = {0};
	struct snapshot snapshot;
	struct error err = {""};
	struct doctor doctor = {.snapshot = &snapshot};

	cli_parse(&argp, argc, argv, CLI_USAGE, &in);
	doctor.self_test = !in.no_self_test;
	if (snapshot_read(&snapshot, &err)) {
		memset(&snapshot, 0, sizeof(snapshot));
		doctor_add(&doctor, "ledgers", DOCTOR_BAD, "%s", err.text);
	}
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++)
		checks[i](&doctor);
	if (in.json)
		print_json(&doctor);
	else
		print_text(&doctor);
	for (unsigned i = 0; i < doctor.count; i++)
		if (doctor.findings[i].level > worst)
			worst = doctor.findings[i].level;
	free(doctor.findings);
	snapshot_free(&snapshot);
	nvml_close();
	return cli_finish(worst == DOCTOR_BAD || (in.strict && worst == DOCTOR_WARN) ? CLI_FAILED
										     : CLI_OK);
}
