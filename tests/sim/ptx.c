/*
 * Reads as much of a PTX text as the simulator needs: names and parameters of entries, names and
 * sizes of global variables, and how long a kernel shall take ("// sim: ns=5000" after ".entry").
 */
#include "module.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool looks_like_text(const char *data)
{
	for (int i = 0; i < 16; i++) {
		unsigned char c = (unsigned char)data[i];
		if (!c)
			return i > 0;
		if (c >= 0x7f || (c < 0x20 && !isspace(c)))
			return false;
	}
	return true;
}

static const char *skip_space(const char *at)
{
	while (isspace((unsigned char)*at))
		at++;
	return at;
}

static char *take_name(const char **at)
{
	const char *start = skip_space(*at);
	const char *end = start;
	while (isalnum((unsigned char)*end) || *end == '_' || *end == '$' || *end == '.')
		end++;
	*at = end;
	return strndup(start, (size_t)(end - start));
}

/* Bytes of ".u64", ".b8" and the like; 0 for what is no type. */
static uint64_t type_bytes(const char *at)
{
	if (*at != '.' || !at[1] || !strchr("busf", at[1]) || !isdigit((unsigned char)at[2]))
		return 0;
	return strtoull(at + 2, NULL, 10) / 8;
}

/* Reads ".align 4 .b8 name[12]" up to its end: element size, alignment, name, elements. */
static const char *read_variable(const char *at, uint64_t *ret_bytes, uint64_t *ret_align,
				 char **ret_name)
{
	uint64_t element = 1, align = 0, elements = 1;
	*ret_name = NULL;
	for (at = skip_space(at); *at == '.'; at = skip_space(at)) {
		uint64_t bytes = type_bytes(at);
		if (bytes)
			element = bytes;
		if (strncmp(at, ".align", 6) == 0) {
			char *end;
			align = strtoull(at + 6, &end, 10);
			at = end;
			continue;
		}
		at++;
		while (isalnum((unsigned char)*at) || *at == '_')
			at++;
	}
	*ret_name = take_name(&at);
	at = skip_space(at);
	while (*at == '[') {
		char *end;
		uint64_t n = strtoull(at + 1, &end, 10);
		elements *= n ? n : 1;
		at = *end ? skip_space(end + 1) : end;
	}
	*ret_bytes = element * elements;
	*ret_align = align ? align : element;
	return at;
}

static const char *read_params(const char *at, struct function_info *f)
{
	size_t offset = 0;
	at = skip_space(at);
	if (*at != '(')
		return at;
	for (at++; *at && *at != ')';) {
		const char *param = strstr(at, ".param");
		const char *close = strchr(at, ')');
		if (!param || (close && close < param))
			return close ? close : at;
		uint64_t bytes, align;
		char *name;
		at = read_variable(param + 6, &bytes, &align, &name);
		free(name);
		if (f->param_count == MOST_PARAMS)
			continue;
		offset = (offset + align - 1) / align * align;
		f->param_offset[f->param_count] = offset;
		f->param_size[f->param_count++] = bytes;
		offset += bytes;
	}
	return at;
}

static void add_function(struct image *image, const char **at)
{
	size_t n = image->function_count;
	image->functions = realloc(image->functions, (n + 1) * sizeof(image->functions[0]));
	struct function_info *f = &image->functions[n];
	memset(f, 0, sizeof(*f));
	f->name = take_name(at);
	f->ns = 1000;
	f->spins = strcmp(f->name, "sim_spin") == 0;
	*at = read_params(*at, f);
	const char *next = strstr(*at, ".entry");
	const char *note = strstr(*at, "sim: ns=");
	if (note && (!next || note < next))
		f->ns = strtoull(note + 8, NULL, 10);
	image->function_count = n + 1;
}

static void add_global(struct image *image, const char **at, bool managed)
{
	size_t n = image->global_count;
	struct global_info g = {.managed = managed};
	*at = read_variable(*at, &g.bytes, &g.align, &g.name);
	image->globals = realloc(image->globals, (n + 1) * sizeof(image->globals[0]));
	image->globals[n] = g;
	image->global_count = n + 1;
}

/* A global is declared at the start of a line, perhaps behind .visible, .extern, .weak. */
static bool declares(const char *text, const char *at)
{
	const char *line = at;
	while (line > text && line[-1] != '\n' && line[-1] != ';' && line[-1] != '}')
		line--;
	line = skip_space(line);
	return line == at || strncmp(line, ".visible", 8) == 0 || strncmp(line, ".weak", 5) == 0 ||
	       strncmp(line, ".common", 7) == 0;
}

/* ELF, a fat binary, or its wrapper: any name is a function of it. */
static bool looks_like_binary(const void *data)
{
	uint32_t magic;
	memcpy(&magic, data, sizeof(magic));
	return magic == 0x464c457f || magic == 0xba55ed50 || magic == 0x466243b1;
}

CUresult image_parse(const void *data, struct image **ret_image)
{
	const char *text = data;
	bool binary = looks_like_binary(data);
	if (!binary && (!looks_like_text(text) || !strstr(text, ".version")))
		return CUDA_ERROR_INVALID_IMAGE;
	if (!binary && !strstr(text, ".target"))
		return CUDA_ERROR_INVALID_PTX;
	struct image *image = calloc(1, sizeof(*image));
	*ret_image = image;
	image->is_ptx = !binary;
	if (binary)
		return CUDA_SUCCESS;
	image->code_bytes = strlen(text);
	image->uses_malloc = strstr(text, "malloc,") != NULL;
	image->uses_printf = strstr(text, "vprintf,") != NULL;
	for (const char *at = strchr(text, '.'); at; at = strchr(at, '.')) {
		if (strncmp(at, ".entry", 6) == 0 && isspace((unsigned char)at[6])) {
			at += 6;
			add_function(image, &at);
		} else if (strncmp(at, ".global", 7) == 0 && isspace((unsigned char)at[7]) &&
			   declares(text, at)) {
			at += 7;
			bool managed = strstr(at, ".attribute(.managed)") == skip_space(at);
			if (managed)
				at = skip_space(at) + 20;
			add_global(image, &at, managed);
		} else {
			at++;
		}
	}
	return CUDA_SUCCESS;
}

struct function_info *image_function(const struct image *image, const char *name)
{
	for (size_t i = 0; i < image->function_count; i++)
		if (strcmp(image->functions[i].name, name) == 0)
			return &image->functions[i];
	return NULL;
}

void image_free(struct image *image)
{
	for (size_t i = 0; i < image->function_count; i++)
		free(image->functions[i].name);
	for (size_t i = 0; i < image->global_count; i++)
		free(image->globals[i].name);
	free(image->functions);
	free(image->globals);
	free(image);
}
