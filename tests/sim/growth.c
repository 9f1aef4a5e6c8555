/*
 * Memory that a driver takes for itself after a context was made: for its first stream, its first code, the tables
 * of many allocations. A card does so (about 8 MiB of an H200, driver 580); this one only when told:
 *
 *   CUOTA_SIM_GROWTH = rule { "," rule }
 *   rule             = FUNCTION "=" BYTES [ "@" N ]   the first such call of each context takes BYTES
 *                                                     beside, or with N every N-th of this process
 * FUNCTION is the exported name with its suffix; a trailing "*" matches every name that begins so. What was taken
 * stays with the context. A device that is full gives nothing, and the call goes on.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RULES = 32 };

struct rule {
	char name[64];
	bool prefix;
	uint64_t bytes, every, calls;
};

static struct rule rules[MAX_RULES];
static unsigned rule_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool parse_rule(const char *text, struct rule *ret_rule)
{
	size_t length = strcspn(text, "=");
	const char *end;
	memset(ret_rule, 0, sizeof(*ret_rule));
	if (!length || length >= sizeof(ret_rule->name) || !text[length])
		return false;
	memcpy(ret_rule->name, text, length);
	if (ret_rule->name[length - 1] == '*') {
		ret_rule->prefix = true;
		ret_rule->name[length - 1] = '\0';
	}
	if (!config_parse_size(text + length + 1, &ret_rule->bytes, &end))
		return false;
	if (*end == '@')
		ret_rule->every = strtoull(end + 1, (char **)&end, 10);
	return *end == '\0';
}

static void read_rules(void)
{
	const char *text = getenv("CUOTA_SIM_GROWTH");
	char *copy = text && *text ? strdup(text) : NULL;
	char *rest = copy;
	while (copy && rest && rule_count < MAX_RULES) {
		char *one = strsep(&rest, ",");
		if (parse_rule(one, &rules[rule_count]))
			rule_count++;
		else
			fprintf(stderr, "cuota-sim: cannot read CUOTA_SIM_GROWTH rule '%s'\n", one);
	}
	free(copy);
}

static bool is_due(struct rule *rule, unsigned i, const char *name, struct context *host)
{
	if (strncmp(name, rule->name, strlen(rule->name) + !rule->prefix) != 0)
		return false;
	if (rule->every)
		return ++rule->calls % rule->every == 0;
	if (host->grown & 1u << i)
		return false;
	host->grown |= 1u << i;
	return true;
}

void growth_before(const char *name, struct context *context)
{
	pthread_once(&once, read_rules);
	if (!rule_count)
		return;
	pthread_mutex_lock(&core_lock);
	for (unsigned i = 0; i < rule_count; i++)
		if (is_due(&rules[i], i, name, context->host) &&
		    device_take(context->device, rules[i].bytes))
			context->host->own_bytes += rules[i].bytes;
	pthread_mutex_unlock(&core_lock);
}
