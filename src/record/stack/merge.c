/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c - see merge.h. */
#include "record/stack/merge.h"

#include <string.h>

/* The interpreter's loop: one function, its clones, and one per instruction in builds that jump
 * from one to the next. */
static bool is_loop(const struct merge_native *n)
{
	const char *s = n->frame.symbol;

	return s && !n->is_inlined &&
	       (!strncmp(s, "_PyEval_EvalFrameDefault", 24) || !strncmp(s, "_TAIL_CALL_", 11));
}

struct output {
	struct stack_frame *out;
	size_t count, max;
};

static void put(struct output *o, const struct stack_frame *f)
{
	if (o->count < o->max)
		o->out[o->count++] = *f;
}

/* The functions of one loop: up to the one that C called. Returns the next one's number. */
static size_t put_python(
	struct output *o, const struct merge_python *python, size_t count, size_t at)
{
	while (at < count) {
		put(o, &python[at].frame);
		if (python[at++].is_entry)
			break;
	}
	return at;
}

static size_t put_all(struct output *o, const struct merge_python *python, size_t count, size_t at)
{
	while (at < count)
		put(o, &python[at++].frame);
	return at;
}

size_t merge_frames(const struct merge_native *native, size_t native_count,
	const struct merge_python *python, size_t python_count, struct stack_frame *out, size_t max)
{
	struct output o = {.out = out, .max = max};
	bool has_loop = false;
	size_t at = 0;

	for (size_t i = 0; i < native_count; i++)
		has_loop |= is_loop(&native[i]);
	for (size_t i = 0; i < native_count; i++) {
		if (is_loop(&native[i]) && at < python_count) {
			at = put_python(&o, python, python_count, at);
			continue;
		}
		if (!has_loop && native[i].is_interpreter)
			at = put_all(&o, python, python_count, at);
		put(&o, &native[i].frame);
	}
	put_all(&o, python, python_count, at);
	return o.count;
}
