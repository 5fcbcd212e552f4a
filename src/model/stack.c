/* SPDX-License-Identifier: Apache-2.0 */
/* stack.c - questions about call stacks that need no names but the ones they carry, and copies. Pure.
 */
#include "model/stack.h"

#include <ctype.h>

#include "base/macros.h"
#include "base/search.h"

const struct stack *stack_find(const struct stack_list *l, uint64_t hash)
{
	size_t count = l && hash ? l->count : 0;
	size_t at = LOWER_BOUND(i, count, l->items[i]->hash < hash);

	return at < count && l->items[at]->hash == hash ? l->items[at] : NULL;
}

static size_t text_bytes(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static const char *text_copy(const char *text, char **at)
{
	char *to = *at;
	size_t bytes = text_bytes(text);

	if (!text)
		return NULL;
	memcpy(to, text, bytes);
	*at += bytes;
	return to;
}

struct stack *stack_copy(const struct stack *s, size_t *ret_bytes)
{
	size_t bytes = sizeof(*s) + s->count * sizeof(*s->frames) + text_bytes(s->stop);
	struct stack_frame *frames;
	struct stack *copy;
	char *at;

	for (size_t i = 0; i < s->count; i++) {
		const struct stack_frame *f = &s->frames[i];

		bytes += text_bytes(f->symbol) + text_bytes(f->file) + text_bytes(f->py_file) +
			 text_bytes(f->py_func);
	}
	copy = malloc(bytes);
	if (!copy)
		return NULL;
	frames = (struct stack_frame *)(copy + 1);
	at = (char *)(frames + s->count);
	for (size_t i = 0; i < s->count; i++) {
		frames[i] = s->frames[i];
		frames[i].symbol = text_copy(s->frames[i].symbol, &at);
		frames[i].file = text_copy(s->frames[i].file, &at);
		frames[i].py_file = text_copy(s->frames[i].py_file, &at);
		frames[i].py_func = text_copy(s->frames[i].py_func, &at);
	}
	*copy = (struct stack){.hash = s->hash,
		.frames = frames,
		.count = s->count,
		.stop = text_copy(s->stop, &at)};
	if (ret_bytes)
		*ret_bytes = bytes;
	return copy;
}

bool stack_has_names(const struct stack *s)
{
	return EXISTS(i, s->count, s->frames[i].symbol || stack_frame_is_python(&s->frames[i]));
}

/* cudaMalloc, cuLaunchKernel, ncclAllReduce: the entry points by their names, whatever library they
 * were linked from; and all of the libraries themselves. */
bool stack_frame_is_cuda(const struct stack_frame *f)
{
	static const char *const prefixes[] = {"cuda", "cu", "nccl"};
	static const char *const libraries[] = {"libcuda.so", "libcudart", "libnccl"};

	if (!f->symbol)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (!strncmp(f->symbol, prefixes[i], len) && isupper((unsigned char)f->symbol[len]))
			return true;
	}
	return f->file && EXISTS(i, ARRAY_SIZE(libraries),
				  !strncmp(f->file, libraries[i], strlen(libraries[i])));
}

/* What it is called with stands behind its name. */
bool stack_symbol_is_std(const char *symbol)
{
	static const char *const spaces[] = {"std::", "__gnu_cxx::"};
	size_t name = strcspn(symbol, "(<");

	for (size_t i = 0; i < ARRAY_SIZE(spaces); i++) {
		const char *at = strstr(symbol, spaces[i]);

		if (at && (size_t)(at - symbol) < name && (at == symbol || at[-1] == ' '))
			return true;
	}
	return false;
}

const struct stack_frame *stack_place(const struct stack *s)
{
	const struct stack_frame *native = NULL, *std = NULL;

	for (size_t i = 0; i < s->count; i++) {
		const struct stack_frame *f = &s->frames[i];

		if (stack_frame_is_python(f))
			return f;
		if (native || !f->symbol || stack_frame_is_cuda(f))
			continue;
		if (!stack_symbol_is_std(f->symbol))
			native = f;
		else if (!std)
			std = f;
	}
	return native ? native : std;
}

/* What follows @folder where a part of @path begins with it; NULL: none does. */
static const char *after_folder(const char *path, const char *folder)
{
	for (const char *at = path; (at = strstr(at, folder)); at++)
		if (at == path || at[-1] == '/')
			return at + strlen(folder);
	return NULL;
}

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool is_of_library(const char *path)
{
	static const char *const packages[] = {"site-packages/", "dist-packages/", "torch/"};
	static const char *const standard[] = {"lib/python", "lib64/python"}; /* …3.12/ */

	if (EXISTS(i, ARRAY_SIZE(packages), after_folder(path, packages[i])))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(standard); i++) {
		const char *version = after_folder(path, standard[i]);

		if (version && isdigit((unsigned char)version[0]))
			return true;
	}
	return starts_with(path, "<frozen");
}

/* Code that has no file, such as methods that a library wrote for a class. So has a whole program after python3 -c. */
static bool is_made(const char *path)
{
	return path[0] == '<' && !starts_with(path, "<stdin") && !starts_with(path, "<ipython");
}

bool stack_frame_is_user(const struct stack_frame *f)
{
	return stack_frame_is_python(f) && f->py_file[0] && !is_of_library(f->py_file) &&
	       !is_made(f->py_file);
}

bool stack_frame_is_begin(const struct stack_frame *f)
{
	return stack_frame_is_python(f) && f->py_func && strstr(f->py_func, "_bootstrap") &&
	       strstr(f->py_file, "/multiprocessing/process.py");
}

const struct stack_frame *stack_user_frame(const struct stack *s)
{
	const struct stack_frame *made = NULL;

	for (size_t i = 0; i < s->count; i++) {
		const struct stack_frame *f = &s->frames[i];

		if (stack_frame_is_begin(f))
			break;
		if (!stack_frame_is_python(f) || !f->py_file[0] || is_of_library(f->py_file))
			continue;
		if (!is_made(f->py_file))
			return f;
		made = made ? made : f;
	}
	return made;
}

const char *stack_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash || strcmp(slash, "/__init__.py"))
		return slash && slash[1] ? slash + 1 : path;
	while (slash > path && slash[-1] != '/')
		slash--;
	return slash;
}
