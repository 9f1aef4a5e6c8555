/*
 * Failure injection, so that tests see how a caller copes with a driver that fails or dawdles.
 *
 *   CUOTA_SIM_FAIL, and for NVML CUOTA_SIM_NVML_FAIL = rule { "," rule }
 *   rule           = FUNCTION "=" CODE [ "@" N ]        return CODE (a number), always or only in
 *                                                       the N-th call of this process
 *                  | FUNCTION ":delay=" TIME [ "@" N ]  sleep before the call; TIME is a number
 *                                                       with ns, us, ms or s
 *                  | FUNCTION ":while=" FILE            wait before the call as long as FILE is there
 * FUNCTION is the exported name with its suffix: cuMemAlloc_v2, cuLaunchKernel_ptsz, nvmlInit_v2. A trailing
 * "*" matches every name that begins so. A failing call has no effect and leaves its outputs.
 */
#include "shared_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RULES = 64 };

struct rule {
	char name[64];
	char file[256]; /* empty without :while= */
	bool prefix;
	bool delays;
	unsigned long long value; /* code or nanoseconds */
	unsigned long long only;  /* N, or 0 */
	unsigned long long calls;
};

static struct rule rules[MAX_RULES];
static int rule_count;
static bool configured;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool parse_time(char **at, unsigned long long *ret_ns)
{
	char *end;
	double number = strtod(*at, &end);
	double unit = 1;
	if (end == *at || number < 0)
		return false;
	if (strncmp(end, "ns", 2) == 0)
		end += 2;
	else if (strncmp(end, "us", 2) == 0)
		unit = 1e3, end += 2;
	else if (strncmp(end, "ms", 2) == 0)
		unit = 1e6, end += 2;
	else if (*end == 's')
		unit = 1e9, end += 1;
	else
		return false;
	*ret_ns = (unsigned long long)(number * unit);
	*at = end;
	return true;
}

static bool parse_rule(char *text, struct rule *ret_rule)
{
	size_t length = strcspn(text, "=:");
	memset(ret_rule, 0, sizeof(*ret_rule));
	if (!length || length >= sizeof(ret_rule->name))
		return false;
	memcpy(ret_rule->name, text, length);
	if (ret_rule->name[length - 1] == '*') {
		ret_rule->prefix = true;
		ret_rule->name[length - 1] = '\0';
	}
	text += length;
	if (*text == '=') {
		char *end;
		ret_rule->value = strtoull(text + 1, &end, 10);
		if (end == text + 1)
			return false;
		text = end;
	} else if (strncmp(text, ":delay=", 7) == 0) {
		text += 7;
		ret_rule->delays = true;
		if (!parse_time(&text, &ret_rule->value))
			return false;
	} else if (strncmp(text, ":while=", 7) == 0 && strlen(text + 7) < sizeof(ret_rule->file)) {
		strcpy(ret_rule->file, text + 7);
		text += strlen(text);
	} else {
		return false;
	}
	if (*text == '@')
		ret_rule->only = strtoull(text + 1, &text, 10);
	return *text == '\0';
}

static void read_rules(void)
{
	const char *text = getenv(fail_variable);
	char *copy = text && *text ? strdup(text) : NULL;
	char *rest = copy;
	while (copy && rest && rule_count < MAX_RULES) {
		char *one = strsep(&rest, ",");
		if (parse_rule(one, &rules[rule_count]))
			rule_count++;
		else
			fprintf(stderr, "cuota-sim: cannot read %s rule '%s'\n", fail_variable,
				one);
	}
	free(copy);
	configured = rule_count > 0;
}

bool fail_configured(void)
{
	pthread_once(&once, read_rules);
	return configured;
}

static bool matches(const struct rule *rule, const char *name)
{
	if (rule->prefix)
		return strncmp(rule->name, name, strlen(rule->name)) == 0;
	return strcmp(rule->name, name) == 0;
}

int fail_consult(const char *name)
{
	for (int i = 0; i < rule_count; i++) {
		struct rule *rule = &rules[i];
		if (!matches(rule, name))
			continue;
		unsigned long long call = __atomic_add_fetch(&rule->calls, 1, __ATOMIC_RELAXED);
		if (rule->only && rule->only != call)
			continue;
		while (rule->file[0] && access(rule->file, F_OK) == 0)
			nanosleep(&(struct timespec){0, 1000000}, NULL);
		if (!rule->delays && !rule->file[0])
			return (int)rule->value;
		struct timespec wait = {
			(time_t)(rule->value / 1000000000ull),
			(long)(rule->value % 1000000000ull),
		};
		nanosleep(&wait, NULL);
	}
	return 0;
}
