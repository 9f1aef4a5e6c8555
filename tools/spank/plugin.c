/*
 * cuota_spank.so: caps for Slurm jobs. Adds --gpu-mem-cap, --gpu-sm-cap and --gpu-weight to srun,
 * sbatch and salloc, turns shards into caps, and makes each job a group of its own ("slurm-JOB").
 *
 * All of it is environment: LD_PRELOAD and CUOTA_*, set by slurmstepd before the tasks start. The
 * plugin opens no device and keeps no state. What cannot be enforced fails the job with one line,
 * for a cap that is silently not there is worse than none. docs/slurm.md has the settings.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "ceiling.h"
#include "container.h"
#include "environment.h"
#include "request.h"
#include "settings.h"
#include "survivors.h"

/* Slurm looks these up by name. */
#pragma GCC visibility push(default)
#include <slurm/spank.h>
SPANK_PLUGIN(cuota, 1)
#pragma GCC visibility pop

#define STEP_SPECIAL 0xfffffff0u /* batch, extern, interactive and pending steps are above */

/* Slurm 22.05 goes on as if nothing had happened when a hook returns ESPANK_ERROR, which is positive. */
#define REFUSE (-1)

static struct settings settings;
static struct request options; /* what the command line or #SBATCH asks for */
static struct error refusal;   /* why the caps of this step cannot be enforced; "" = they can */

/* ---- options ------------------------------------------------------------------------------------ */

static int take_option(const char *name, enum spec_kind kind, const char *text, struct spec *ret)
{
	char quoted[ERROR_QUOTE_BYTES];
	struct error err;

	if (spec_parse_value(kind, text ? text : "", ret, &err) == 0)
		return ESPANK_SUCCESS;
	slurm_error("cuota: --%s=%s: %s", name, error_quote(text ? text : "", quoted), err.text);
	return ESPANK_BAD_ARG;
}

static int take_mem(int val, const char *text, int remote)
{
	(void)val;
	(void)remote;
	return take_option("gpu-mem-cap", SPEC_MEM, text, &options.mem);
}

static int take_sm(int val, const char *text, int remote)
{
	(void)val;
	(void)remote;
	return take_option("gpu-sm-cap", SPEC_SM, text, &options.sm);
}

static int take_weight(int val, const char *text, int remote)
{
	(void)val;
	(void)remote;
	return take_option("gpu-weight", SPEC_WEIGHT, text, &options.weight);
}

static struct spank_option table[] = {
	{"gpu-mem-cap", "SIZE", "cuota: memory cap of the job on each of its GPUs: 8G, 512M, 25%",
	 1, 0, take_mem},
	{"gpu-sm-cap", "PERCENT", "cuota: cap of the job's SM time on each of its GPUs: 30, 12.5%",
	 1, 0, take_sm},
	{"gpu-weight", "N", "cuota: share when jobs compete for a GPU, 1..10000 (100)", 1, 0,
	 take_weight},
};

/* ---- environments ------------------------------------------------------------------------------- */

static int job_get(void *handle, const char *name, char *buf, size_t bytes)
{
	return spank_getenv(handle, name, buf, (int)bytes) == ESPANK_SUCCESS;
}

static int job_set(void *handle, const char *name, const char *value)
{
	return spank_setenv(handle, name, value, 1) == ESPANK_SUCCESS ? 0 : -EIO;
}

static void job_unset(void *handle, const char *name)
{
	spank_unsetenv(handle, name);
}

static int own_get(void *handle, const char *name, char *buf, size_t bytes)
{
	const char *value = getenv(name);

	(void)handle;
	if (!value || strlen(value) >= bytes)
		return 0;
	strcpy(buf, value);
	return 1;
}

static int own_set(void *handle, const char *name, const char *value)
{
	(void)handle;
	return setenv(name, value, 1) ? -errno : 0;
}

static void own_unset(void *handle, const char *name)
{
	(void)handle;
	unsetenv(name);
}

static const struct environment own_environment = {
	.get = own_get, .set = own_set, .unset = own_unset};

static unsigned get_number(const struct environment *env, const char *name)
{
	uint64_t number;
	char text[32];

	if (!env->get(env->handle, name, text, sizeof(text)) ||
	    number_parse(text, 0, 1u << 20, &number, NULL) < 0)
		return 0;
	return (unsigned)number;
}

static int has_gpu(const struct environment *env)
{
	char text[64];

	return get_number(env, "SLURM_GPUS_ON_NODE") > 0 ||
	       env->get(env->handle, "SLURM_JOB_GPUS", text, sizeof(text)) ||
	       env->get(env->handle, "SLURM_STEP_GPUS", text, sizeof(text));
}

/* ---- submission --------------------------------------------------------------------------------- */

/*
 * Only what is in this process's own environment gets into an OCI container (container.h). Not salloc's:
 * its environment is that of a shell on this host, and the srun in it does the same again.
 */
static int at_submission(int is_new_job)
{
	struct error err;
	struct request asked, both;

	environment_forget_other(&own_environment,
				 is_new_job ? 0 : get_number(&own_environment, "SLURM_JOB_ID"));
	if (!request_any(&options) || !strcmp(program_invocation_short_name, "salloc"))
		return ESPANK_SUCCESS;
	environment_request(&own_environment, &asked);
	if (request_strictest(&settings, &options, &asked, &both, &err) < 0)
		both = options; /* decided on the node, where a policy or the shards may help */
	if (environment_apply(&own_environment, &settings, "auto", &both) == 0)
		return ESPANK_SUCCESS;
	slurm_error("cuota: cannot set the environment");
	return REFUSE;
}

/* ---- on the node -------------------------------------------------------------------------------- */

/*
 * The group: the job's, or the step's own when it was given fewer shards than the job; else one small
 * step would lower the cap of all the others.
 */
static void name_group(const struct environment *env, uint32_t job, uint32_t step, unsigned shards,
		       char ret[GROUP_NAME_BYTES])
{
	unsigned of_job, job_shards;
	char text[64];

	snprintf(ret, GROUP_NAME_BYTES, "slurm-%u", job);
	if (step >= STEP_SPECIAL) {
		snprintf(text, sizeof(text), "%u:%u", job, shards);
		env->set(env->handle, SHARDS_VARIABLE, text);
	} else if (env->get(env->handle, SHARDS_VARIABLE, text, sizeof(text)) &&
		   sscanf(text, "%u:%u", &of_job, &job_shards) == 2 && of_job == job && shards &&
		   shards < job_shards) {
		snprintf(ret, GROUP_NAME_BYTES, "slurm-%u.%u", job, step);
	}
}

/*
 * Options and shards decide; the job's own CUOTA_ variables may ask for less, never for more. When
 * bytes and a percentage cannot be compared, the policy file can carry one and the variable the other.
 */
static int gather(const struct environment *env, unsigned shards, struct request *ret_ceiling,
		  struct request *ret_asked, struct error *err)
{
	struct request share = {0}, own, both;
	int r = 0;

	if (shards)
		r = request_from_shards(&settings, shards, &share, err);
	if (r < 0)
		return r;
	r = request_strictest(&settings, &share, &options, &both, err);
	if (r < 0 && !settings.policy_dir[0])
		return r;
	*ret_ceiling = r < 0 ? share : both;
	*ret_asked = r < 0 ? options : both;
	environment_request(env, &own);
	if (request_strictest(&settings, ret_asked, &own, &both, NULL) == 0)
		*ret_asked = both;
	return 0;
}

static int apply(const struct environment *env, const char *group, const struct request *ceiling,
		 const struct request *asked, struct error *err)
{
	int r;

	if (access(settings.library, R_OK))
		return error_set(err, errno, "%s: %s", settings.library, error_text(errno));
	if (settings.policy_dir[0] && request_any(ceiling)) {
		r = ceiling_write(settings.policy_dir, group, ceiling, err);
		if (r < 0)
			return r;
	}
	r = environment_apply(env, &settings, group, asked);
	return r < 0 ? error_set(err, -r, "cannot set the job's environment") : 0;
}

static void on_node(spank_t spank)
{
	const struct environment env = {
		.handle = spank, .get = job_get, .set = job_set, .unset = job_unset};
	unsigned shards = get_number(&env, "SLURM_SHARDS_ON_NODE");
	char group[GROUP_NAME_BYTES], bundle[PATH_MAX];
	struct request ceiling, asked;
	uint32_t job = 0, step = 0;
	int r;

	spank_get_item(spank, S_JOB_ID, &job);
	spank_get_item(spank, S_JOB_STEPID, &step);
	environment_forget_other(&env, job);
	r = gather(&env, shards, &ceiling, &asked, &refusal);
	if (!r && !request_any(&ceiling) && !request_any(&options) &&
	    !(settings.attach_all && has_gpu(&env)))
		return;
	name_group(&env, job, step, shards, group);
	if (!r && container_bundle(&env, bundle))
		r = container_check(&env, &settings, bundle, &ceiling, &refusal);
	if (!r)
		r = apply(&env, group, &ceiling, &asked, &refusal);
	if (r < 0)
		slurm_error("cuota: job %u: %s", job, refusal.text);
	else
		refusal.text[0] = '\0';
}

/* ---- slurmd, and the end of a job --------------------------------------------------------------- */

static void tell(const struct survivors *survivors, unsigned job)
{
	for (unsigned i = 0; i < survivors->count; i++) {
		const struct survivor *one = &survivors->list[i];
		char size[16];

		if (group_is_job(one->group, job))
			slurm_error(
				"cuota: job %u has ended, and its process %u (%s) lives and holds "
				"%s on %s",
				job, one->pid, one->comm,
				size_format(one->used_bytes, size, sizeof(size)), one->uuid);
	}
}

static int after_job(unsigned job)
{
	struct survivors survivors;
	struct error err;

	if (survivors_find(settings.dir, &survivors, &err) < 0 || err.text[0])
		slurm_error("cuota: %s", err.text);
	if (job)
		tell(&survivors, job);
	if (settings.policy_dir[0])
		ceiling_remove(settings.policy_dir, job, &survivors);
	free(survivors.list);
	return ESPANK_SUCCESS;
}

static int make_dir(void)
{
	if (!mkdir(settings.dir, 01777))
		return chmod(settings.dir, 01777) ? REFUSE : ESPANK_SUCCESS;
	if (errno == EEXIST)
		return ESPANK_SUCCESS;
	slurm_error("cuota: %s: %s", settings.dir, error_text(errno));
	return REFUSE;
}

/* ---- what Slurm calls --------------------------------------------------------------------------- */

static int read_settings(int ac, char *argv[])
{
	struct error err;

	if (settings_read(ac, argv, &settings, &err) == 0)
		return ESPANK_SUCCESS;
	slurm_error("cuota: %s", err.text);
	return REFUSE;
}

int slurm_spank_init(spank_t spank, int ac, char *argv[])
{
	options = (struct request){0};
	refusal.text[0] = '\0';
	if (read_settings(ac, argv) != ESPANK_SUCCESS)
		return REFUSE;
	if (spank_context() == S_CTX_SLURMD)
		return make_dir() == ESPANK_SUCCESS ? after_job(0) : REFUSE;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (spank_option_register(spank, &table[i]) != ESPANK_SUCCESS)
			return REFUSE;
	return ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t spank, int ac, char *argv[])
{
	(void)ac;
	(void)argv;
	switch (spank_context()) {
	case S_CTX_LOCAL: return at_submission(!getenv("SLURM_JOB_ID"));
	case S_CTX_ALLOCATOR: return at_submission(1);
	case S_CTX_REMOTE: on_node(spank); return ESPANK_SUCCESS;
	default: return ESPANK_SUCCESS;
	}
}

/*
 * A refusal ends the tasks here and not in init_post_opt: that would drain the node, for a mistake that
 * may be the user's. What is said here goes to the job's own output.
 */
int slurm_spank_task_init(spank_t spank, int ac, char *argv[])
{
	(void)spank;
	(void)ac;
	(void)argv;
	if (!refusal.text[0])
		return ESPANK_SUCCESS;
	slurm_error("cuota: %s", refusal.text);
	return REFUSE;
}

int slurm_spank_job_epilog(spank_t spank, int ac, char *argv[])
{
	uint32_t job = 0;

	/* slurm_spank_init is not called in a job script's context. */
	if (read_settings(ac, argv) != ESPANK_SUCCESS)
		return REFUSE;
	spank_get_item(spank, S_JOB_ID, &job);
	return after_job(job);
}
