/*
 * What NVML tells this process, by every version of every function that cuota has a view of.
 *
 *   nvml [use MIB] [busy MS] [wait] COMMAND
 *
 * use: holds that much device memory by CUDA first. busy: keeps the device busy for that long. wait: after the
 * command, waits for standard input to end.
 *   memory      total, free, used, reserved of both versions, and CUDA's own figures when `use` is given
 *   processes   each list: name, result, "pid:MiB"... ("me" for the own pid)
 *   sizes       what too little room and no room are answered
 *   errors      results before nvmlInit, of no handle, after nvmlShutdown
 *   utilization rates, and per process
 *   accounting  pids and stats
 */
#include <dlfcn.h>
#include <unistd.h>

#include "doors/library.h"
#include "driver/cuda_abi.h"
#include "hooks/nvml_abi.h"

static void *nvml, *cuda;
static nvmlDevice_t device;

#define NVML(symbol, ...) ((int)((__typeof__(symbol) *)find(nvml, #symbol))(__VA_ARGS__))
#define CUDA(symbol, ...) (((__typeof__(symbol) *)find(cuda, #symbol))(__VA_ARGS__))

static void *find(void *handle, const char *name)
{
	void *found = dlsym(handle, name);

	CHECK(found, "no %s", name);
	return found;
}

static int call_int(const char *name)
{
	return ((int (*)(void))find(nvml, name))();
}

static void open_device(void)
{
	int (*by_index)(unsigned, nvmlDevice_t *) =
		(int (*)(unsigned, nvmlDevice_t *))find(nvml, "nvmlDeviceGetHandleByIndex_v2");

	CHECK(call_int("nvmlInit_v2") == 0, "nvmlInit");
	CHECK(by_index(0, &device) == 0, "no device");
}

/* ---- the CUDA side -------------------------------------------------------------------------------- */

static void use(size_t mib)
{
	CUcontext context;
	CUdeviceptr at;

	cuda = dlopen("libcuda.so.1", RTLD_NOW);
	CHECK(cuda && CUDA(cuInit, 0) == CUDA_SUCCESS, "no CUDA");
	CHECK(CUDA(cuDevicePrimaryCtxRetain, &context, 0) == CUDA_SUCCESS, "context");
	CHECK(CUDA(cuCtxSetCurrent, context) == CUDA_SUCCESS, "context");
	CHECK(CUDA(cuMemAlloc_v2, &at, mib << 20) == CUDA_SUCCESS, "%zu MiB", mib);
}

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry sim_spin(.param .u64 ns)\n{\n\tret;\n}\n";

static void busy(unsigned long long ms)
{
	unsigned long long ns = 1000000;
	void *arguments[] = {&ns};
	CUmodule module;
	CUfunction function;

	CHECK(CUDA(cuModuleLoadData, &module, ptx) == CUDA_SUCCESS, "module");
	CHECK(CUDA(cuModuleGetFunction, &function, module, "sim_spin") == CUDA_SUCCESS, "function");
	for (unsigned long long i = 0; i < ms; i++) {
		CHECK(CUDA(cuLaunchKernel, function, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL) ==
			      CUDA_SUCCESS,
		      "launch");
		CHECK(CUDA(cuCtxSynchronize) == CUDA_SUCCESS, "synchronize");
	}
}

/* ---- what is shown -------------------------------------------------------------------------------- */

static void memory(void)
{
	nvmlMemory_v2_t two = {.version = (unsigned)sizeof(two) | 2u << 24};
	size_t free_bytes = 0, total_bytes = 0;
	nvmlMemory_t one;

	CHECK(NVML(nvmlDeviceGetMemoryInfo, device, &one) == 0, "memory");
	CHECK(NVML(nvmlDeviceGetMemoryInfo_v2, device, &two) == 0, "memory v2");
	printf("v1: total %llu free %llu used %llu\n", one.total >> 20, one.free >> 20,
	       one.used >> 20);
	printf("v2: total %llu free %llu used %llu reserved %llu sum %d\n", two.total >> 20,
	       two.free >> 20, two.used >> 20, two.reserved >> 20,
	       two.free + two.used + two.reserved == two.total);
	if (cuda) {
		CHECK(CUDA(cuMemGetInfo_v2, &free_bytes, &total_bytes) == 0, "cuMemGetInfo");
		printf("cuda: total %zu free %zu\n", total_bytes >> 20, free_bytes >> 20);
		printf("agree: %d\n", total_bytes == one.total && free_bytes == one.free);
	}
}

static void print_process(unsigned pid, unsigned long long bytes)
{
	if (pid == (unsigned)getpid())
		printf(" me:%llu", bytes >> 20);
	else
		printf(" %u:%llu", pid, bytes >> 20);
}

static const char *const lists[] = {
	"nvmlDeviceGetComputeRunningProcesses",	      "nvmlDeviceGetComputeRunningProcesses_v2",
	"nvmlDeviceGetComputeRunningProcesses_v3",    "nvmlDeviceGetGraphicsRunningProcesses",
	"nvmlDeviceGetGraphicsRunningProcesses_v2",   "nvmlDeviceGetGraphicsRunningProcesses_v3",
	"nvmlDeviceGetMPSComputeRunningProcesses",    "nvmlDeviceGetMPSComputeRunningProcesses_v2",
	"nvmlDeviceGetMPSComputeRunningProcesses_v3",
};

static void processes(void)
{
	nvmlProcessDetail_v1_t detail[64];
	nvmlProcessDetailList_t list = {.version = (unsigned)sizeof(list) | 1u << 24,
					.numProcArrayEntries = 64,
					.procArray = detail};
	int rc;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		int first = !strstr(lists[i], "_v");
		nvmlProcessInfo_v1_t one[64];
		nvmlProcessInfo_v2_t two[64];
		unsigned count = 64;

		rc = ((int (*)(nvmlDevice_t, unsigned *, void *))find(nvml, lists[i]))(
			device, &count, first ? (void *)one : (void *)two);
		printf("%s: %d", lists[i] + strlen("nvmlDeviceGet"), rc);
		for (unsigned p = 0; rc == 0 && p < count; p++)
			print_process(first ? one[p].pid : two[p].pid,
				      first ? one[p].usedGpuMemory : two[p].usedGpuMemory);
		printf("\n");
	}
	rc = NVML(nvmlDeviceGetRunningProcessDetailList, device, &list);
	printf("detail: %d", rc);
	for (unsigned p = 0; rc == 0 && p < list.numProcArrayEntries; p++)
		print_process(detail[p].pid, detail[p].usedGpuMemory);
	printf("\n");
}

static void sizes(void)
{
	nvmlProcessInfo_v2_t infos[64];
	unsigned count = 0;
	int rc = NVML(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, NULL);

	printf("no room: %d, count %u\n", rc, count);
	if (count > 1) {
		count = 1;
		infos[0].pid = 12345;
		rc = NVML(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, infos);
		printf("too little: %d, count %u, touched %d\n", rc, count, infos[0].pid != 12345);
	}
	count = 64;
	rc = NVML(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, infos);
	printf("enough: %d, count %u\n", rc, count);
	rc = NVML(nvmlDeviceGetComputeRunningProcesses_v3, device, NULL, NULL);
	printf("no count: %d\n", rc);
}

static void show_results(const char *when)
{
	nvmlProcessUtilizationSample_t sample[64];
	nvmlProcessInfo_v2_t infos[64];
	nvmlUtilization_t rates;
	nvmlMemory_t one;
	unsigned count = 64, sampled = 64;
	int memory_rc = NVML(nvmlDeviceGetMemoryInfo, device, &one);
	int list_rc = NVML(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, infos);
	int rates_rc = NVML(nvmlDeviceGetUtilizationRates, device, &rates);

	printf("%s: memory %d, list %d, rates %d, samples %d\n", when, memory_rc, list_rc, rates_rc,
	       NVML(nvmlDeviceGetProcessUtilization, device, sample, &sampled, 0));
}

static void errors(void)
{
	nvmlDevice_t good = device;

	device = NULL;
	show_results("no handle");
	device = good;
	call_int("nvmlShutdown");
	show_results("after shutdown");
}

static void utilization(void)
{
	nvmlProcessUtilizationSample_t sample[128];
	nvmlUtilization_t rates = {777, 777};
	unsigned count = 128;
	int rc = NVML(nvmlDeviceGetUtilizationRates, device, &rates);

	printf("rates: %d, gpu %u\n", rc, rates.gpu);
	rc = NVML(nvmlDeviceGetProcessUtilization, device, sample, &count, 0);
	printf("processes: %d", rc);
	for (unsigned i = 0; rc == 0 && i < count; i++)
		printf(" %s:%u", sample[i].pid == (unsigned)getpid() ? "me" : "other",
		       sample[i].smUtil);
	printf("\n");
}

static void accounting(void)
{
	nvmlAccountingStats_t stats;
	unsigned pids[64], count = 64;
	int rc = NVML(nvmlDeviceGetAccountingPids, device, &count, pids);

	printf("pids: %d", rc);
	for (unsigned i = 0; rc == 0 && i < count; i++) {
		rc = NVML(nvmlDeviceGetAccountingStats, device, pids[i], &stats);
		printf(" %s:%d:%llu", pids[i] == (unsigned)getpid() ? "me" : "other", rc,
		       stats.maxMemoryUsage >> 20);
	}
	printf("\nof init: %d\n", NVML(nvmlDeviceGetAccountingStats, device, 1, &stats));
}

static const struct {
	const char *name;
	void (*show)(void);
} commands[] = {
	{"memory", memory}, {"processes", processes},	  {"sizes", sizes},
	{"errors", errors}, {"utilization", utilization}, {"accounting", accounting},
};

int main(int argc, char **argv)
{
	unsigned long long busy_ms = 0;
	int wait = 0;

	nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	CHECK(nvml, "%s", dlerror());
	if (argc > 1 && strcmp(argv[argc - 1], "errors") == 0)
		show_results("before init");
	open_device();
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "use") == 0 && i + 1 < argc)
			use(strtoul(argv[++i], NULL, 10));
		else if (strcmp(argv[i], "busy") == 0 && i + 1 < argc)
			busy_ms = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "wait") == 0)
			wait = 1;
		for (size_t c = 0; c < sizeof(commands) / sizeof(commands[0]); c++) {
			if (strcmp(commands[c].name, argv[i]) == 0) {
				if (busy_ms)
					busy(busy_ms);
				commands[c].show();
			}
		}
	}
	fflush(stdout);
	while (wait && getchar() != EOF)
		continue;
	return 0;
}
