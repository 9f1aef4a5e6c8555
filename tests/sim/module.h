/*
 * Modules, libraries and functions, as module.c, library.c and launch.c share them.
 */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

#include "sim.h"

enum { MOST_PARAMS = 64 };

struct function_info {
	char *name;
	uint64_t ns; /* device time; for sim_spin it is the argument */
	bool spins;
	unsigned param_count;
	size_t param_offset[MOST_PARAMS], param_size[MOST_PARAMS];
};

struct global_info {
	char *name;
	uint64_t bytes;
	uint64_t align;
	bool managed;
};

/* What an image holds. Any name is a function of one that is not PTX. */
struct image {
	bool is_ptx;
	uint64_t code_bytes;
	bool uses_malloc, uses_printf; /* device-side heap and buffer */
	struct function_info *functions;
	size_t function_count;
	struct global_info *globals;
	size_t global_count;
};

struct function {
	struct object object;
	struct module *module;
	struct function_info info;
	struct kernel *kernel;
	bool loaded;
	int attributes[CU_FUNC_ATTRIBUTE_MAX];
	unsigned block[3]; /* cuFuncSetBlockShape */
	unsigned param_bytes;
	unsigned char params[4096]; /* cuParamSet* */
	struct function *next;
};

struct module {
	struct object object;
	struct context *context;
	struct image *image;
	struct library *library; /* set when a library made it */
	bool resident;		 /* code and globals are in device memory */
	bool launched;		 /* one of its functions was */
	struct range *code;
	struct range **global; /* one per image->globals */
	struct function *functions;
	struct module *next;
};

struct kernel {
	struct object object;
	struct library *library;
	struct function_info info;
	int attributes[CU_FUNC_ATTRIBUTE_MAX];
	struct kernel *next;
};

/* ptx.c: CUDA_ERROR_INVALID_IMAGE for what is neither PTX nor a known binary */
CUresult image_parse(const void *data, struct image **ret_image);
struct function_info *image_function(const struct image *image, const char *name);
void image_free(struct image *image);

/* module.c; need core_lock */
struct module *module_new(struct context *context, struct image *image, struct library *library);
void module_delete(struct module *module);
CUresult module_make_resident(struct module *module);
CUresult module_function(struct module *module, const char *name, struct function **ret_function);
bool loads_lazily(void);
void function_defaults(int attributes[CU_FUNC_ATTRIBUTE_MAX]);

/* library.c; needs core_lock: the function of a kernel in the current context */
CUresult kernel_function(struct kernel *kernel, struct function **ret_function);

/* launch.c */
struct launch {
	struct function *function;
	unsigned grid[3], block[3];
	unsigned shared_bytes;
	void **params;
	void **extra;
};
/* The function behind a CUfunction or CUkernel handle. */
CUresult launch_resolve(CUfunction handle, struct function **ret_function);
CUresult launch_check(const struct launch *launch);
uint64_t launch_cost(const struct launch *launch);
CUresult launch_prepare(struct stream *stream, struct function *function);

#endif
