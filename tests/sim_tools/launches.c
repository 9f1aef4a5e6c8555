/*
 * launches PATH US SECONDS
 *
 * The same work by each way to launch: kernels of US microseconds, a wait after each, for so long. Prints the percentage
 * of the time that they took, or "absent" where the driver lacks the way. `launches` alone lists the paths.
 */
#include <dlfcn.h>
#include <string.h>

#include "spin.h"

/* By name: the header hides the per-thread twins behind macros and the oldest functions behind warnings. */
#define DRIVER(X) \
	X(cuLaunchKernel_ptsz, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, \
	  unsigned, unsigned, CUstream, void **, void **) \
	X(cuLaunchKernelEx_ptsz, const CUlaunchConfig *, CUfunction, void **, void **) \
	X(cuLaunchCooperativeKernel_ptsz, CUfunction, unsigned, unsigned, unsigned, unsigned, \
	  unsigned, unsigned, unsigned, CUstream, void **) \
	X(cuLaunchCooperativeKernelMultiDevice, CUDA_LAUNCH_PARAMS *, unsigned, unsigned) \
	X(cuLaunch, CUfunction) \
	X(cuLaunchGrid, CUfunction, int, int) \
	X(cuLaunchGridAsync, CUfunction, int, int, CUstream) \
	X(cuFuncSetBlockShape, CUfunction, int, int, int) \
	X(cuParamSetSize, CUfunction, unsigned) \
	X(cuParamSetv, CUfunction, int, void *, unsigned) \
	X(cuGraphLaunch_ptsz, CUgraphExec, CUstream)

#define X(symbol, ...) static CUresult (*p_##symbol)(__VA_ARGS__);
DRIVER(X)
#undef X

static unsigned long long ns;
static void *parameters[] = {&ns};
static CUfunction spin;
static CUstream stream;
static CUgraphExec graph;
static CUlaunchConfig config = {.gridDimX = 1,
				.gridDimY = 1,
				.gridDimZ = 1,
				.blockDimX = 1,
				.blockDimY = 1,
				.blockDimZ = 1};

#define ONE 1, 1, 1, 1, 1, 1, 0

static CUresult by_kernel(void)
{
	return cuLaunchKernel(spin, ONE, stream, parameters, NULL);
}
static CUresult by_kernel_ptsz(void)
{
	return p_cuLaunchKernel_ptsz(spin, ONE, NULL, parameters, NULL);
}
static CUresult by_ex(void)
{
	return cuLaunchKernelEx(&config, spin, parameters, NULL);
}
static CUresult by_ex_ptsz(void)
{
	return p_cuLaunchKernelEx_ptsz(&config, spin, parameters, NULL);
}
static CUresult by_cooperative(void)
{
	return cuLaunchCooperativeKernel(spin, ONE, stream, parameters);
}

static CUresult by_cooperative_ptsz(void)
{
	return p_cuLaunchCooperativeKernel_ptsz(spin, ONE, NULL, parameters);
}

static CUresult by_multi_device(void)
{
	CUDA_LAUNCH_PARAMS one = {.function = spin,
				  .gridDimX = 1,
				  .gridDimY = 1,
				  .gridDimZ = 1,
				  .blockDimX = 1,
				  .blockDimY = 1,
				  .blockDimZ = 1,
				  .hStream = stream,
				  .kernelParams = parameters};

	return p_cuLaunchCooperativeKernelMultiDevice(&one, 1, 0);
}

static void legacy_parameters(void)
{
	must(p_cuFuncSetBlockShape(spin, 1, 1, 1));
	must(p_cuParamSetSize(spin, sizeof(ns)));
	must(p_cuParamSetv(spin, 0, &ns, sizeof(ns)));
}

static CUresult by_launch(void)
{
	return p_cuLaunch(spin);
}
static CUresult by_grid(void)
{
	return p_cuLaunchGrid(spin, 1, 1);
}
static CUresult by_grid_async(void)
{
	return p_cuLaunchGridAsync(spin, 1, 1, stream);
}

static void make_graph(void)
{
	CUgraph made;

	must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(by_kernel());
	must(cuStreamEndCapture(stream, &made));
	must(cuGraphInstantiate(&graph, made, 0));
}

/*
 * Known as a short one long before it is given a kernel of the real length: what a launch costs is not of the handle for
 * ever.
 */
static void make_updated_graph(void)
{
	unsigned long long length = ns;
	CUgraphExecUpdateResultInfo info;
	CUgraph made;

	ns = 20000;
	make_graph();
	for (int i = 0; i < 500; i++) {
		must(cuGraphLaunch(graph, stream));
		must(cuCtxSynchronize());
	}
	ns = length;
	must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(by_kernel());
	must(cuStreamEndCapture(stream, &made));
	must(cuGraphExecUpdate(graph, made, &info));
}

static CUresult by_graph(void)
{
	return cuGraphLaunch(graph, stream);
}
static CUresult by_graph_ptsz(void)
{
	return p_cuGraphLaunch_ptsz(graph, NULL);
}

static void load_library(void)
{
	CUlibrary library;
	CUkernel kernel;

	must(cuLibraryLoadData(&library, spin_ptx, NULL, NULL, 0, NULL, NULL, 0));
	must(cuLibraryGetKernel(&kernel, library, "sim_spin"));
	spin = (CUfunction)kernel;
}

static const struct path {
	const char *name;
	CUresult (*launch)(void);
	void (*prepare)(void);
} paths[] = {
	{"kernel", by_kernel, NULL},
	{"kernel_ptsz", by_kernel_ptsz, NULL},
	{"ex", by_ex, NULL},
	{"ex_ptsz", by_ex_ptsz, NULL},
	{"cooperative", by_cooperative, NULL},
	{"cooperative_ptsz", by_cooperative_ptsz, NULL},
	{"multi_device", by_multi_device, NULL},
	{"launch", by_launch, legacy_parameters},
	{"grid", by_grid, legacy_parameters},
	{"grid_async", by_grid_async, legacy_parameters},
	{"graph", by_graph, make_graph},
	{"graph_ptsz", by_graph_ptsz, make_graph},
	{"graph_updated", by_graph, make_updated_graph},
	{"library_kernel", by_kernel, load_library},
};

#define PATHS (sizeof(paths) / sizeof(paths[0]))

int main(int argc, char **argv)
{
	double from, end, warm, settle;
	unsigned done = 0;
	size_t at = 0;

	for (size_t i = 0; argc < 4 && i < PATHS; i++)
		puts(paths[i].name);
	if (argc < 4)
		return 0;
	while (at < PATHS && strcmp(paths[at].name, argv[1]) != 0)
		at++;
	if (at == PATHS)
		return 2;
	ns = (unsigned long long)(atof(argv[2]) * 1e3);
#define X(symbol, ...) \
	p_##symbol = (__typeof__(p_##symbol))dlsym(RTLD_DEFAULT, #symbol); \
	if (!p_##symbol) { \
		puts("absent " #symbol); \
		return 1; \
	}
	DRIVER(X)
#undef X
	use_device();
	spin = spin_kernel();
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	config.hStream = strstr(argv[1], "_ptsz") ? NULL : stream;
	if (paths[at].prepare)
		paths[at].prepare();
	settle = atof(argv[3]) * 250;
	from = warm = now_ms();
	end = from + settle + atof(argv[3]) * 1e3;
	while (now_ms() < end) {
		must(paths[at].launch());
		must(cuCtxSynchronize());
		if (now_ms() < from + settle)
			warm = now_ms();
		else
			done++;
	}
	printf("%.1f\n", done * (double)ns / 1e4 / (now_ms() - warm));
	return 0;
}
