/*
 * `cuota doctor`, live: a small program under a quota of its own asks the driver for more than its cap, by
 * each of the ways a program finds the driver. Nothing else shows that interposition works on this host.
 */
#include "doctor.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>

#define CAP_TEXT  "1G"
#define CAP_BYTES (1ull << 30)

typedef CUresult get_proc_address(const char *, void **, int, cuuint64_t);
typedef CUresult get_proc_address_v2(const char *, void **, int, cuuint64_t,
				     CUdriverProcAddressQueryResult *);

static int say(const char *what, const char *text)
{
	printf("%s %s\n", what, text);
	return 1;
}

/* A total of the cap, a refusal with the right code beyond it, memory below it. */
static int try_way(const char *way, CUresult (*total)(size_t *, CUdevice),
		   CUresult (*take)(CUdeviceptr *, size_t), CUresult (*release)(CUdeviceptr))
{
	CUdeviceptr memory = 0;
	size_t bytes = 0;
	CUresult rc;
	char text[128];

	if (!total || !take || !release)
		return say("BAD", "a look-up gave nothing");
	total(&bytes, 0);
	if (bytes > CAP_BYTES) {
		snprintf(text, sizeof(text), "found by %s, the driver shows %zu bytes, not the cap",
			 way, bytes);
		return say("BAD", text);
	}
	rc = take(&memory, 2 * CAP_BYTES);
	if (rc != CUDA_ERROR_OUT_OF_MEMORY) {
		snprintf(text, sizeof(text), "found by %s, memory beyond the cap: result %d", way,
			 (int)rc);
		return say("BAD", text);
	}
	rc = take(&memory, 1 << 20);
	if (rc) {
		snprintf(text, sizeof(text), "found by %s, a MiB below the cap: result %d", way,
			 (int)rc);
		return say("BAD", text);
	}
	release(memory);
	return 0;
}

static int try_all(void *driver)
{
	get_proc_address *look = (get_proc_address *)dlsym(driver, "cuGetProcAddress");
	get_proc_address_v2 *look2 = (get_proc_address_v2 *)dlsym(driver, "cuGetProcAddress_v2");
	void *total = NULL, *take = NULL, *release = NULL;
	int bad;

	bad = try_way("dlsym",
		      (CUresult(*)(size_t *, CUdevice))dlsym(driver, "cuDeviceTotalMem_v2"),
		      (CUresult(*)(CUdeviceptr *, size_t))dlsym(driver, "cuMemAlloc_v2"),
		      (CUresult(*)(CUdeviceptr))dlsym(driver, "cuMemFree_v2"));
	if (look2) {
		look2("cuDeviceTotalMem", &total, 12000, 0, NULL);
		look2("cuMemAlloc", &take, 12000, 0, NULL);
		look2("cuMemFree", &release, 12000, 0, NULL);
	} else if (look) {
		look("cuDeviceTotalMem", &total, 11030, 0);
		look("cuMemAlloc", &take, 11030, 0);
		look("cuMemFree", &release, 11030, 0);
	} else {
		return bad;
	}
	return bad | try_way("cuGetProcAddress", (CUresult(*)(size_t *, CUdevice))total,
			     (CUresult(*)(CUdeviceptr *, size_t))take,
			     (CUresult(*)(CUdeviceptr))release);
}

/* The program itself, under `cuota run`. One line of result: GOOD, NOTE or BAD and why. */
int command_self_test(int argc, char **argv)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*init)(unsigned), (*retain)(CUcontext *, CUdevice), (*use)(CUcontext);
	CUresult (*version)(int *);
	CUcontext context;
	char text[128];
	int number = 0;

	(void)argc;
	(void)argv;
	if (!driver)
		return say("NOTE", "no libcuda.so.1 here: nothing to test");
	init = (CUresult(*)(unsigned))dlsym(driver, "cuInit");
	retain = (CUresult(*)(CUcontext *, CUdevice))dlsym(driver, "cuDevicePrimaryCtxRetain");
	use = (CUresult(*)(CUcontext))dlsym(driver, "cuCtxSetCurrent");
	version = (CUresult(*)(int *))dlsym(driver, "cuDriverGetVersion");
	if (!init || !retain || !use || !version)
		return say("BAD", "libcuda.so.1 lacks the simplest functions");
	number = (int)init(0);
	if (number) {
		snprintf(text, sizeof(text), "cuInit says %d: no usable GPU here", number);
		return say("NOTE", text);
	}
	if (retain(&context, 0) || use(context))
		return say("NOTE", "the GPU gives no context now: nothing tested");
	if (try_all(driver))
		return CLI_FAILED;
	version(&number);
	snprintf(text, sizeof(text), "the caps hold, by dlsym and cuGetProcAddress (CUDA %d.%d)",
		 number / 1000, number % 1000 / 10);
	say("GOOD", text);
	return CLI_OK;
}

static void run_self(void)
{
	char self[] = "/proc/self/exe", path[PATH_MAX];
	ssize_t length = readlink(self, path, sizeof(path) - 1);

	if (length <= 0)
		_exit(CLI_RUN_FAILED);
	path[length] = '\0';
	unsetenv("CUOTA_SM");
	unsetenv("CUOTA_MEM_PER_PROCESS");
	unsetenv("CUOTA_GROUP");
	execl(path, "cuota", "run", "--no-check", "--mem", CAP_TEXT, "--", path, "self-test",
	      (char *)NULL);
	_exit(CLI_RUN_FAILED);
}

static void judge(struct doctor *doctor, const char *line)
{
	if (!strncmp(line, "GOOD ", 5))
		doctor_add(doctor, "self-test", DOCTOR_GOOD, "%s", line + 5);
	else if (!strncmp(line, "NOTE ", 5))
		doctor_add(doctor, "self-test", DOCTOR_NOTE, "%s", line + 5);
	else if (!strncmp(line, "BAD ", 4))
		doctor_add(doctor, "self-test", DOCTOR_BAD, "%s", line + 4);
	else
		doctor_add(doctor, "self-test", DOCTOR_BAD, "the program under the quota says: %s",
			   line);
	if (doctor->findings[doctor->count - 1].level == DOCTOR_BAD)
		doctor_mend(doctor,
			    "CUOTA_LOG=debug cuota run --mem " CAP_TEXT " -- cuota self-test");
}

void doctor_live(struct doctor *doctor)
{
	int pipes[2], lines = 0;
	char line[512];
	FILE *answer;
	pid_t pid;

	if (!doctor->self_test || pipe(pipes))
		return;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		dup2(pipes[1], STDOUT_FILENO);
		dup2(pipes[1], STDERR_FILENO);
		closefrom(STDERR_FILENO + 1);
		run_self();
	}
	close(pipes[1]);
	answer = fdopen(pipes[0], "r");
	while (answer && fgets(line, sizeof(line), answer)) {
		line[strcspn(line, "\n")] = '\0';
		judge(doctor, line);
		lines++;
	}
	if (answer)
		fclose(answer);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (!lines)
		doctor_add(doctor, "self-test", DOCTOR_BAD,
			   "the program under the quota ended without a word");
}
