/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* python.bpf.h - the Python frames of the current thread, as they are at this very call.
 *
 * The thread's PyThreadState is found once, in the interpreter's list, and remembered: a look at
 * its thread id tells whether it is still the one. A frame gives its code object and the last
 * instruction; what belongs to the code object (file, name, line table) is copied out the first
 * time that it is met, so that the agent needs nothing from the process later. */
#pragma once

#include "record/probe/stack/unwind.bpf.h"

#define THREADS_MAX     2048     /* looked at in one search */
#define SEARCH_AGAIN_NS 50000000 /* after a search without result */
#define LOWEST_TAG      ~7ULL

/* Addresses mean something in one life of a process only: the next program that it executes, or the
 * next process of its number, may have another function at the same place. */
struct code_key {
	__u64 code, lines, life;
	__u32 pid, first_line;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct code_key);
	__type(value, __u64); /* hash of its names */
} codes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} stacks SEC(".maps");

/* Fields of the object that was read into w->object. */
static __always_inline __u64 object_word(const struct stack_walk *w, __u32 at)
{
	return *(const __u64 *)&w->object[BOUNDED(at, 0xf8)];
}

static __always_inline __u32 object_half(const struct stack_walk *w, __u32 at)
{
	return *(const __u32 *)&w->object[BOUNDED(at, 0xfc)];
}

static __always_inline bool is_thread_of(const struct stack_walk *w, __u64 thread)
{
	__u64 pthread = 0;
	__u32 tid = 0;

	if (w->python.thread_native != PYTHON_NONE)
		return stack_read(&tid, 4, thread + w->python.thread_native) && tid == w->tid_space;
	return w->python.pthread_tid != PYTHON_NONE &&
	       stack_read(&pthread, 8, thread + w->python.thread_id) &&
	       stack_read(&tid, 4, pthread + w->python.pthread_tid) && tid == w->tid_space;
}

/* The innermost frame of @thread; 0: it runs no Python. */
static __always_inline __u64 thread_frame(const struct stack_walk *w, __u64 thread)
{
	__u64 frame = 0;

	if (!stack_read(&frame, 8, thread + w->python.thread_frame))
		return 0;
	if (frame && w->python.cframe_frame != PYTHON_NONE &&
		!stack_read(&frame, 8, frame + w->python.cframe_frame))
		return 0;
	return frame;
}

/* python_thread_step - one more thread of the list, of the next interpreter behind its last. 0: go
 * on, 1: w->thread is this thread's, 2: there are no more. */
__attribute__((noinline)) int python_thread_step(struct stack_walk *w)
{
	if (!w || !w->interpreter)
		return 2;
	if (!w->thread) {
		if (!stack_read(&w->thread, 8, w->interpreter + w->python.interpreter_threads))
			return 2;
	} else {
		/* A thread may have a state in several interpreters: the one that runs counts. */
		if (is_thread_of(w, w->thread) && thread_frame(w, w->thread))
			return 1;
		if (!stack_read(&w->thread, 8, w->thread + w->python.thread_next))
			return 2;
	}
	if (!w->thread &&
		!stack_read(&w->interpreter, 8, w->interpreter + w->python.interpreter_next))
		return 2;
	return 0;
}

static __always_inline bool python_thread_find(struct stack_walk *w)
{
	w->thread = 0;
	if (!stack_read(&w->interpreter, 8, w->python.runtime + w->python.runtime_interpreters))
		return false;
	for (int i = 0; i < THREADS_MAX; i++) {
		int at = python_thread_step(w);

		if (at)
			return at == 1;
	}
	return false;
}

/* A str's characters; returns how many bytes. Only the compact forms: identifiers and file names
 * have no other since 3.3. */
static __always_inline __u32 text_copy(
	struct stack_walk *w, __u64 text, __u8 *out, __u8 *ret_kind, __u8 *ret_cut)
{
	const struct stack_python *p = &w->python;
	__u32 state, kind;
	__u64 length, at, bytes;

	if (!stack_read(w->object, 64, text))
		return 0;
	length = object_word(w, p->text_length);
	state = object_half(w, p->text_state) >> (p->text_kind_shift & 31);
	kind = state & 7;
	if (!(state & (1 << 3)) || (kind != 1 && kind != 2 && kind != 4))
		return 0;
	at = text + (state & (1 << 4) ? p->text_ascii : p->text_compact);
	if (length > STACK_TEXT_BYTES / kind) {
		length = STACK_TEXT_BYTES / kind;
		*ret_cut = 1;
	}
	bytes = AT_MOST(length * kind, STACK_TEXT_BYTES);
	if (!stack_read(out, bytes, at))
		return 0;
	*ret_kind = kind;
	return bytes;
}

static __always_inline __u64 text_hash(__u64 hash, const __u8 *text)
{
	for (int i = 0; i < STACK_TEXT_BYTES / 8; i++)
		hash = hash_mix(hash ^ ((const __u64 *)text)[i]);
	return hash;
}

/* Send what the agent must know of the code object at @code, whose fields are in w->code. Returns the hash of
 * its names, 0 if it could not be sent. */
static __always_inline __u64 code_send(struct stack_walk *w, __u64 code)
{
	const struct code_fields *f = &w->code;
	struct stack_record_code *r;
	__u64 length = 0, hash, bytes;

	r = bpf_ringbuf_reserve(&stacks, sizeof(*r) + STACK_LINES_BYTES, 0);
	if (!r)
		return 0;
	__builtin_memset(r, 0, sizeof(*r));
	r->h.size = sizeof(*r) + STACK_LINES_BYTES;
	r->h.kind = STACK_RECORD_CODE;
	r->h.pid = w->pid;
	r->h.tid = w->tid;
	r->h.time_ns = bpf_ktime_get_ns();
	r->code = code;
	r->lines = f->lines;
	r->first_line = f->first_line;
	r->minor = w->python.minor;
	r->lines_at = w->python.bytes_data;
	r->lines_size = STACK_LINES_UNREAD;
	r->file_bytes = text_copy(w, f->file, r->file, &r->file_kind, &r->file_cut);
	r->name_bytes = text_copy(w, f->name, r->name, &r->name_kind, &r->name_cut);
	if (stack_read(&length, 8, f->lines + w->python.bytes_length)) {
		r->lines_size = (__u32)length;
		bytes = AT_MOST(length, STACK_LINES_BYTES);
		if (stack_read(r->line_table, bytes, f->lines + w->python.bytes_data))
			r->lines_bytes = bytes;
	}
	hash = text_hash(text_hash(f->first_line, r->file), r->name) | 1;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return hash;
}

/* code_note - the hash of a code object's names, 0 if it cannot be told. */
static __always_inline __u64 code_note(struct stack_walk *w, __u64 code, __u64 *ret_lines)
{
	const struct stack_python *p = &w->python;
	struct code_key key = {.code = code, .life = w->life, .pid = w->pid};
	struct code_fields *f = &w->code;
	__u64 *known, hash;

	if (!stack_read(w->object, sizeof(w->object) - 16, code))
		return 0;
	f->file = object_word(w, p->code_file);
	f->name = object_word(w, p->code_name);
	f->lines = object_word(w, p->code_lines);
	f->first_line = object_half(w, p->code_first_line);
	*ret_lines = key.lines = f->lines;
	key.first_line = f->first_line;
	known = bpf_map_lookup_elem(&codes, &key);
	if (known)
		return *known;
	hash = code_send(w, code);
	if (hash)
		bpf_map_update_elem(&codes, &key, &hash, BPF_ANY);
	return hash;
}

/* A frame that has not begun lies before its first instruction: 0. */
static __always_inline __u32 lasti_of(const struct stack_python *p, __u64 code, __u64 raw)
{
	if (p->flags & PYTHON_LASTI_POINTER)
		return raw < code + p->code_bytes ? 0 : (__u32)(raw - (code + p->code_bytes));
	if ((__s32)raw < 0)
		return 0;
	return p->flags & PYTHON_LASTI_UNITS ? 2 * (__u32)raw : (__u32)raw;
}

static __always_inline void python_append(
	struct stack_walk *w, __u64 code, __u32 lasti, __u64 lines, bool is_entry, __u64 hash)
{
	__u32 n = w->record.python_count;
	__u32 at = w->record.native_count + 3 * n;

	w->words[BOUNDED(at, STACK_WORDS - 1)] = code;
	w->words[BOUNDED(at + 1, STACK_WORDS - 1)] = (__u64)is_entry << 32 | lasti;
	w->words[BOUNDED(at + 2, STACK_WORDS - 1)] = lines;
	w->hash = hash_mix(w->hash ^ hash ^ ((__u64)lasti << 1));
	w->lines = hash_mix(w->lines ^ hash ^ ((__u64)lasti << 1));
	w->record.python_count = n + 1;
}

/* The frame before was called from C: said when the frame after it is seen to be no function. */
static __always_inline void python_mark_entry(struct stack_walk *w)
{
	__u32 n = w->record.python_count;

	if (n)
		w->words[BOUNDED(w->record.native_count + 3 * n - 2, STACK_WORDS - 1)] |= 1ULL
											  << 32;
}

/* python_frame_step - note the frame at w->frame and go on to its caller. 1: the walk is over. */
__attribute__((noinline)) int python_frame_step(struct stack_walk *w)
{
	const struct stack_python *p;
	__u64 code, back, lines = 0, hash;
	__u32 entry, lasti;

	if (!w)
		return 1;
	p = &w->python;
	if (!w->frame)
		return 1;
	if (!stack_read(w->object, 128, w->frame)) {
		w->record.python_stop = STACK_PYTHON_UNREADABLE;
		return 1;
	}
	code = object_word(w, p->frame_code);
	back = object_word(w, p->frame_back);
	if (p->flags & PYTHON_LASTI_POINTER)
		lasti = lasti_of(p, code & LOWEST_TAG, object_word(w, p->frame_lasti));
	else
		lasti = lasti_of(p, code, object_half(w, p->frame_lasti));
	entry = p->frame_entry == PYTHON_NONE ? 1 : w->object[BOUNDED(p->frame_entry, 0x7f)];
	if (p->flags & PYTHON_TAGGED)
		code &= LOWEST_TAG;
	w->frame = back;
	if (p->flags & PYTHON_ENTRY_IS_OWNER) {
		if (entry >= p->owner_c_stack) {
			python_mark_entry(w);
			return 0;
		}
		entry = 0;
	}
	if (w->record.python_count >= STACK_PYTHON_MAX) {
		w->record.python_stop = STACK_PYTHON_DEPTH;
		return 1;
	}
	hash = code_note(w, code, &lines);
	if (!hash)
		w->record.python_stop = STACK_PYTHON_UNREADABLE;
	python_append(w, code, lasti, lines, entry, hash);
	return 0;
}

/* python_walk - all frames of the current thread. A global function, like those it calls, so that
 * the verifier sees its loops once. */
__attribute__((noinline)) int python_walk(struct stack_walk *w)
{
	__u64 frame = 0;

	if (!w)
		return 0;
	w->record.python_stop = STACK_PYTHON_NO_THREAD;
	if (!w->thread || !is_thread_of(w, w->thread)) {
		__u64 now = bpf_ktime_get_ns();

		w->thread = 0;
		if (now - w->searched_ns < SEARCH_AGAIN_NS)
			return 0;
		if (!python_thread_find(w)) {
			w->thread = 0;
			w->searched_ns = now;
			return 0;
		}
	}
	frame = thread_frame(w, w->thread);
	if (!frame) {
		w->thread = 0; /* it may run in another interpreter now */
		return 0;
	}
	w->record.python_stop = STACK_PYTHON_COMPLETE;
	w->frame = frame;
	for (int i = 0; i < 2 * STACK_PYTHON_MAX; i++)
		if (python_frame_step(w))
			return 0;
	w->record.python_stop = STACK_PYTHON_DEPTH;
	return 0;
}
