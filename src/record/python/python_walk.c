/* SPDX-License-Identifier: Apache-2.0 */
/* python_walk.c - a thread's Python frames, by the rules of the kernel half.
 *
 * 1. A frame's last instruction is in bytes from its code's start; one that has not begun is at 0.
 * 2. A frame owned by the C stack is no function: it is left out, and the function inside it was
 *    called by C.
 * 3. The walk ends at a frame without a caller, or when @max are found.
 *
 * The process runs on meanwhile: a walk may fail, or be of frames that no longer are. */
#include "record/python/python_private.h"

#define TAG_BITS 7 /* objects are aligned to 8 */

struct walk {
	const struct python_memory *m;
	const struct stack_python *p;
	struct stack_python_frame *out;
	size_t count, max;
};

static int lasti_read(const struct walk *w, uint64_t frame, uint64_t code, uint32_t *ret)
{
	int64_t lasti;
	uint64_t at;
	uint32_t index;
	int r;

	if (w->p->flags & PYTHON_LASTI_POINTER) {
		r = python_u64(w->m, frame + w->p->frame_lasti, &at);
		if (r < 0)
			return r;
		lasti = (int64_t)(at - (code + w->p->code_bytes));
	} else {
		r = python_u32(w->m, frame + w->p->frame_lasti, &index);
		if (r < 0)
			return r;
		lasti = (int32_t)index;
		if (w->p->flags & PYTHON_LASTI_UNITS)
			lasti *= 2;
	}
	if (lasti > INT32_MAX || lasti < INT32_MIN)
		return -EBADMSG;
	*ret = lasti > 0 ? (uint32_t)lasti : 0;
	return 0;
}

/* Returns 0, or 1 if there is no room for it. */
static int function_add(struct walk *w, uint64_t frame, bool entry)
{
	uint64_t code, lines;
	uint32_t lasti;
	int r;

	if (w->count == w->max)
		return 1;
	r = python_u64(w->m, frame + w->p->frame_code, &code);
	if (r < 0)
		return r;
	if (w->p->flags & PYTHON_TAGGED)
		code &= ~(uint64_t)TAG_BITS;
	r = lasti_read(w, frame, code, &lasti);
	if (r < 0)
		return r;
	r = python_u64(w->m, code + w->p->code_lines, &lines);
	if (r < 0)
		return r;
	w->out[w->count++] = (struct stack_python_frame){
		.code = code, .lasti = lasti, .entry = entry, .lines = lines};
	return 0;
}

static int frame_add(struct walk *w, uint64_t frame)
{
	uint8_t entry = 1;
	int r;

	if (w->p->frame_entry != PYTHON_NONE) {
		r = python_bytes(w->m, frame + w->p->frame_entry, &entry, sizeof(entry));
		if (r < 0)
			return r;
	}
	if (!(w->p->flags & PYTHON_ENTRY_IS_OWNER))
		return function_add(w, frame, entry != 0);
	if (entry < w->p->owner_c_stack)
		return function_add(w, frame, false);
	if (w->count)
		w->out[w->count - 1].entry = 1;
	return 0;
}

int python_walk(const struct python_memory *m, const struct stack_python *p, uint32_t tid,
	struct stack_python_frame *out, size_t max)
{
	struct walk w = {.m = m, .p = p, .out = out, .max = max};
	uint64_t thread, frame, mark = 0;
	size_t steps = 0, next_mark = 1;
	int r;

	r = python_thread_find(m, p, tid, &thread, &frame);
	if (r < 0)
		return r;
	while (frame) {
		/* a ring comes back to the frame marked last; marks are ever farther apart */
		if (frame == mark || steps > 2 * max + 2)
			return -ELOOP;
		if (++steps == next_mark) {
			mark = frame;
			next_mark *= 2;
		}
		r = frame_add(&w, frame);
		if (r != 0)
			return r < 0 ? r : (int)w.count;
		r = python_u64(m, frame + p->frame_back, &frame);
		if (r < 0)
			return r;
	}
	return (int)w.count;
}
