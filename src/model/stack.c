/* SPDX-License-Identifier: Apache-2.0 */
/* stack.c - questions about call stacks that need no names but the ones they carry. Pure. */
#include "model/stack.h"

#include <ctype.h>
#include <string.h>

#include "base/macros.h"
#include "base/search.h"

const struct stack *stack_find(const struct stack_list *l, uint64_t hash)
{
	size_t count = l ? l->count : 0;
	size_t at = LOWER_BOUND(i, count, l->items[i]->hash < hash);

	return at < count && l->items[at]->hash == hash ? l->items[at] : NULL;
}

bool stack_has_names(const struct stack *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->frames[i].symbol || stack_frame_is_python(&s->frames[i]))
			return true;
	return false;
}

/* cudaMalloc, cuLaunchKernel, ncclAllReduce: the entry points by their names, whatever library they
 * were linked from; and all of the libraries themselves. */
static bool is_of_cuda(const struct stack_frame *f)
{
	static const char *const prefixes[] = {"cuda", "cu", "nccl"};
	static const char *const libraries[] = {"libcuda.so", "libcudart", "libnccl"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (!strncmp(f->symbol, prefixes[i], len) && isupper((unsigned char)f->symbol[len]))
			return true;
	}
	for (size_t i = 0; f->file && i < ARRAY_SIZE(libraries); i++)
		if (!strncmp(f->file, libraries[i], strlen(libraries[i])))
			return true;
	return false;
}

const struct stack_frame *stack_place(const struct stack *s)
{
	const struct stack_frame *native = NULL;

	for (size_t i = 0; i < s->count; i++) {
		const struct stack_frame *f = &s->frames[i];

		if (stack_frame_is_python(f))
			return f;
		if (!native && f->symbol && !is_of_cuda(f))
			native = f;
	}
	return native;
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
