/*
 * The driver twice: as a program gets it (dlsym, so through whatever library is preloaded) and as it is
 * (its own symbol table, which nobody can interpose). Calling both in turn, in one process, tells what an
 * interposer adds to a call, without the difference between two runs.
 *
 * For the micro-benchmarks of this directory only; each is one file and one program.
 */
#ifndef CUOTA_BENCH_DRIVER_H
#define CUOTA_BENCH_DRIVER_H

#include <cuda.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../sim_tools/spin_ptx.h"

#define DRIVER_NAME_(symbol) #symbol
#define DRIVER_NAME(symbol)  DRIVER_NAME_(symbol)

/* As a program gets it; NULL when this driver lacks it. */
#define DRIVER_ASKED(symbol) ((__typeof__(&symbol))driver_asked(DRIVER_NAME(symbol)))
/* As it is; the same as DRIVER_ASKED when nothing interposes. */
#define DRIVER_RAW(symbol) ((__typeof__(&symbol))driver_raw(DRIVER_NAME(symbol)))

static inline void *driver_asked(const char *name)
{
	static void *library;

	if (!library)
		library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "no driver: %s\n", dlerror());
		exit(77);
	}
	return dlsym(library, name);
}

struct driver_search {
	const char *name;
	void *found;
};

/* The dynamic section's addresses are already relocated by glibc. */
static inline void *driver_symbol(const ElfW(Dyn) * dynamic, uintptr_t base, const char *name)
{
	const ElfW(Sym) *symbols = NULL;
	const char *strings = NULL;
	const uint32_t *table = NULL, *old_table = NULL, *buckets, *chain;
	uint32_t hash = 5381, at;

	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		if (dynamic->d_tag == DT_SYMTAB)
			symbols = (const void *)dynamic->d_un.d_ptr;
		else if (dynamic->d_tag == DT_STRTAB)
			strings = (const void *)dynamic->d_un.d_ptr;
		else if (dynamic->d_tag == DT_GNU_HASH)
			table = (const void *)dynamic->d_un.d_ptr;
		else if (dynamic->d_tag == DT_HASH)
			old_table = (const void *)dynamic->d_un.d_ptr;
	}
	if (!symbols || !strings)
		return NULL;
	/* The older table tells how many symbols there are: enough to look at each. */
	for (at = 0; !table && old_table && at < old_table[1]; at++)
		if (symbols[at].st_value && !strcmp(strings + symbols[at].st_name, name))
			return (void *)(base + symbols[at].st_value);
	if (!table)
		return NULL;
	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / 4);
	chain = buckets + table[0];
	at = buckets[hash % table[0]];
	for (; at >= table[1]; at++) {
		uint32_t entry = chain[at - table[1]];

		if ((entry | 1) == (hash | 1) && !strcmp(strings + symbols[at].st_name, name))
			return (void *)(base + symbols[at].st_value);
		if (entry & 1)
			break;
	}
	return NULL;
}

static inline int driver_visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct driver_search *search = arg;
	const char *file = strrchr(info->dlpi_name, '/');

	(void)size;
	if (strncmp(file ? file + 1 : info->dlpi_name, "libcuda.so", 10) != 0)
		return 0;
	for (int i = 0; i < info->dlpi_phnum && !search->found; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			search->found = driver_symbol(
				(const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
				info->dlpi_addr, search->name);
	return search->found != NULL;
}

static inline void *driver_raw(const char *name)
{
	struct driver_search search = {name, NULL};

	dl_iterate_phdr(driver_visit, &search);
	return search.found;
}

static inline void driver_must(CUresult rc, const char *what)
{
	if (rc == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, (int)rc);
	exit(1);
}

static inline uint64_t driver_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Context of device 0 and the kernel of fixed work, named as the simulated driver knows it. */
static inline CUfunction driver_start(void)
{
	CUfunction function;
	CUcontext context;
	CUdevice device;
	CUmodule module;

	driver_must(DRIVER_ASKED(cuInit)(0), "cuInit");
	driver_must(DRIVER_ASKED(cuDeviceGet)(&device, 0), "cuDeviceGet");
	driver_must(DRIVER_ASKED(cuDevicePrimaryCtxRetain)(&context, device), "context");
	driver_must(DRIVER_ASKED(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
	driver_must(DRIVER_ASKED(cuModuleLoadData)(&module, spin_ptx), "cuModuleLoadData");
	driver_must(DRIVER_ASKED(cuModuleGetFunction)(&function, module, "sim_spin"), "function");
	return function;
}

#endif
