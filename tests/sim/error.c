/*
 * Names and descriptions of result codes.
 */
#include "sim.h"
#include "entries.h"

static const struct {
	CUresult code;
	const char *name, *words;
} table[] = {
#define R(code, words) {code, #code, words},
#include "error.def"
#undef R
};

static int find(CUresult code)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].code == code)
			return (int)i;
	return -1;
}

CUresult sim_cuGetErrorName(CUresult code, const char **ret_name)
{
	if (!ret_name)
		return CUDA_ERROR_INVALID_VALUE;
	int i = find(code);
	*ret_name = i < 0 ? NULL : table[i].name;
	return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sim_cuGetErrorString(CUresult code, const char **ret_words)
{
	if (!ret_words)
		return CUDA_ERROR_INVALID_VALUE;
	int i = find(code);
	*ret_words = i < 0 ? NULL : table[i].words;
	return i < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
