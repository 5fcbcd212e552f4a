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

/* The states of an interpreter's threads: the lists they are in, and which of
 * them is the thread that the kernel means.
 *
 * Python and the kernel agree on a thread through its kernel id, which 3.11 and later keep; for
 * older ones it is read where the C library keeps it. A list that has more members than its ceiling
 * is taken for a ring. */

#define INTERPRETER_BYTES 16384 /* searched for the list of threads; 3.12 has it at 72 */
#define PTHREAD_BYTES     2304  /* searched for the kernel's id: a struct pthread of glibc */

int python_frame(
	const struct python_memory *m, const struct stack_python *p, uint64_t thread, uint64_t *ret)
{
	uint64_t frame;
	int r = python_u64(m, thread + p->thread_frame, &frame);

	if (r < 0)
		return r;
	if (frame && p->cframe_frame != PYTHON_NONE) {
		r = python_u64(m, frame + p->cframe_frame, &frame);
		if (r < 0)
			return r;
	}
	*ret = frame;
	return 0;
}

/* list_each - the threads of @interpreter from @thread on; counts them in *count. */
static int list_each(const struct python_memory *m, const struct stack_python *p,
	uint64_t interpreter, uint64_t thread, python_thread_visit *visit, void *arg,
	unsigned *count)
{
	uint64_t owner;
	int r;

	while (thread) {
		if (++*count > PYTHON_THREADS_MAX)
			return -ELOOP;
		r = python_u64(m, thread + p->thread_interpreter, &owner);
		if (r < 0)
			return r;
		if (owner != interpreter)
			return -EBADMSG;
		r = visit(arg, thread);
		if (r != 0)
			return r;
		r = python_u64(m, thread + p->thread_next, &thread);
		if (r < 0)
			return r;
	}
	return 0;
}

int python_thread_each(const struct python_memory *m, const struct stack_python *p,
	python_thread_visit *visit, void *arg)
{
	uint64_t interpreter, thread;
	unsigned interpreters = 0, threads = 0;
	int r = python_first_interpreter(m, p, &interpreter);

	while (r == 0 && interpreter) {
		if (++interpreters > PYTHON_INTERPRETERS_MAX)
			return -ELOOP;
		r = python_u64(m, interpreter + p->interpreter_threads, &thread);
		if (r < 0)
			return r;
		r = list_each(m, p, interpreter, thread, visit, arg, &threads);
		if (r != 0)
			return r;
		r = python_u64(m, interpreter + p->interpreter_next, &interpreter);
	}
	return r;
}

struct wanted {
	const struct python_memory *m;
	const struct stack_python *p;
	uint32_t tid;
	uint64_t thread, frame; /* found */
	bool member;            /* the list has it, with a frame or without */
};

/* is_thread - false too if the C library's record of it is gone, as that of an ended thread. */
static bool is_thread(const struct wanted *w, uint64_t thread)
{
	uint64_t id;
	uint32_t tid;

	if (w->p->thread_native != PYTHON_NONE)
		return python_u64(w->m, thread + w->p->thread_native, &id) == 0 && id == w->tid;
	return w->p->pthread_tid != PYTHON_NONE &&
	       python_u64(w->m, thread + w->p->thread_id, &id) == 0 &&
	       python_u32(w->m, id + w->p->pthread_tid, &tid) == 0 && tid == w->tid;
}

static int visit_wanted(void *arg, uint64_t thread)
{
	struct wanted *w = arg;
	uint64_t frame;
	int r;

	if (!is_thread(w, thread))
		return 0;
	r = python_frame(w->m, w->p, thread, &frame);
	if (r < 0)
		return r;
	if (!frame)
		return 0;
	w->thread = thread;
	w->frame = frame;
	return 1;
}

int python_thread_find(const struct python_memory *m, const struct stack_python *p, uint32_t tid,
	uint64_t *ret_thread, uint64_t *ret_frame)
{
	struct wanted w = {.m = m, .p = p, .tid = tid};
	int r = python_thread_each(m, p, visit_wanted, &w);

	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	*ret_thread = w.thread;
	*ret_frame = w.frame;
	return 0;
}

static int visit_member(void *arg, uint64_t thread)
{
	struct wanted *w = arg;

	w->member |= is_thread(w, thread);
	return 0;
}

/* list_length - of the list that begins with @thread, if @w's thread is in it; else 0. */
static unsigned list_length(struct wanted *w, uint64_t interpreter, uint64_t thread)
{
	unsigned count = 0;

	w->member = false;
	if (list_each(w->m, w->p, interpreter, thread, visit_member, w, &count) < 0 || !w->member)
		return 0;
	return count;
}

int python_thread_search(const struct python_memory *m, const struct stack_python *p, uint32_t tid,
	uint32_t *ret_offset)
{
	struct wanted w = {.m = m, .p = p, .tid = tid};
	uint64_t interpreter, part[64];
	unsigned longest = 0;
	uint32_t found = 0;
	bool tied = false;
	int r = python_first_interpreter(m, p, &interpreter);

	if (r < 0)
		return r;
	/* Pointers to single threads exist too, so the longest list is the one. Of an only thread
	 * nothing tells them apart; those that CPython has come after the list. */
	for (uint32_t at = 0; at < INTERPRETER_BYTES; at += sizeof(part)) {
		if (python_bytes(m, interpreter + at, part, sizeof(part)) < 0)
			break;
		for (uint32_t i = 0; i < ARRAY_SIZE(part); i++) {
			unsigned length = part[i] % 8 ? 0 : list_length(&w, interpreter, part[i]);

			tied = length > longest ? false : tied || (length && length == longest);
			if (length > longest) {
				longest = length;
				found = at + i * 8;
			}
		}
	}
	if (!longest)
		return -ENOENT;
	*ret_offset = found;
	return tied;
}

struct pthread_wanted {
	struct wanted w;
	uint32_t offset;
};

static int visit_pthread(void *arg, uint64_t thread)
{
	struct pthread_wanted *pw = arg;
	const struct wanted *w = &pw->w;
	uint32_t part[16];
	uint64_t id;

	if (python_u64(w->m, thread + w->p->thread_id, &id) < 0)
		return 0;
	for (uint32_t at = 0; at < PTHREAD_BYTES; at += sizeof(part)) {
		if (python_bytes(w->m, id + at, part, sizeof(part)) < 0)
			return 0;
		for (uint32_t i = 0; i < ARRAY_SIZE(part); i++)
			if (part[i] == w->tid) {
				pw->offset = at + i * 4;
				return 1;
			}
	}
	return 0;
}

int python_pthread_search(const struct python_memory *m, const struct stack_python *p, uint32_t tid,
	uint32_t *ret_offset)
{
	struct pthread_wanted pw = {.w = {.m = m, .p = p, .tid = tid}};
	int r = python_thread_each(m, p, visit_pthread, &pw);

	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	*ret_offset = pw.offset;
	return 0;
}

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
	int r = python_thread_find(m, p, tid, &thread, &frame);

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
