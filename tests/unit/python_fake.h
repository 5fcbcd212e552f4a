/* SPDX-License-Identifier: Apache-2.0 */
/* python_fake.h - a made-up process with an interpreter in it, laid out as a struct stack_python
 * says, for what real interpreters do not do. Whatever is not in cannot read its memory. */
#pragma once

#include <errno.h>
#include <string.h>

#include "record/python/python.h"

enum { /* where what lies; objects of a kind are a step apart */
	FAKE_BASE = 0x10000,
	FAKE_RUNTIME = 0x10000,
	FAKE_INTERPRETER = 0x20000, /* step 0x8000, three of them */
	FAKE_THREAD = 0x40000,      /* step 0x400 */
	FAKE_PTHREAD = 0x50000,     /* step 0x1000: what pthread_self() gives */
	FAKE_FRAME = 0x60000,       /* step 0x100 */
	FAKE_CODE = 0x70000,        /* step 0x400 */
	FAKE_TEXT = 0x80000,        /* step 0x1000 */
	FAKE_LINES = 0x90000,       /* bytes object with a line table */
	FAKE_END = 0xa0000,
	FAKE_CODE_TYPE = 0x11000,
	FAKE_TEXT_TYPE = 0x11800,
	FAKE_TID = 4242,
};

struct fake {
	struct stack_python p;
	struct python_memory memory;
	uint8_t bytes[FAKE_END - FAKE_BASE];
};

static inline int fake_read(void *arg, uint64_t address, void *out, size_t len)
{
	const struct fake *f = arg;

	if (address < FAKE_BASE || address > FAKE_END || len > FAKE_END - address)
		return -EFAULT;
	memcpy(out, f->bytes + (address - FAKE_BASE), len);
	return 0;
}

static inline void fake_put(struct fake *f, uint64_t address, uint64_t value, size_t len)
{
	memcpy(f->bytes + (address - FAKE_BASE), &value, len);
}

static inline void fake_u64(struct fake *f, uint64_t address, uint64_t value)
{
	fake_put(f, address, value, 8);
}

static inline uint64_t fake_interpreter(unsigned i)
{
	return FAKE_INTERPRETER + i * 0x8000;
}

static inline uint64_t fake_thread(unsigned i)
{
	return FAKE_THREAD + i * 0x400;
}

static inline uint64_t fake_frame(unsigned i)
{
	return FAKE_FRAME + i * 0x100;
}

static inline uint64_t fake_code(unsigned i)
{
	return FAKE_CODE + i * 0x400;
}

static inline uint64_t fake_text(unsigned i)
{
	return FAKE_TEXT + i * 0x1000;
}

/* fake_text_put - a str of @length characters of @kind bytes; @ascii as Python marks it. */
static inline void fake_text_put(
	struct fake *f, uint64_t at, const void *data, uint64_t length, unsigned kind, bool ascii)
{
	uint32_t state = (kind | 8 | (ascii ? 16 : 0)) << f->p.text_kind_shift;
	uint64_t to = at + (ascii ? f->p.text_ascii : f->p.text_compact);

	fake_u64(f, at + 8, FAKE_TEXT_TYPE);
	fake_u64(f, at + f->p.text_length, length);
	fake_put(f, at + f->p.text_state, state, 4);
	memcpy(f->bytes + (to - FAKE_BASE), data, length * kind);
}

/* fake_thread_put - thread @i of an interpreter: its list's next one (0: none) and its frame. */
static inline void fake_thread_put(struct fake *f, unsigned i, uint64_t interpreter, uint64_t next,
	uint32_t tid, uint64_t frame)
{
	uint64_t thread = fake_thread(i), pthread = FAKE_PTHREAD + i * 0x1000;

	fake_u64(f, thread + f->p.thread_next, next);
	fake_u64(f, thread + f->p.thread_interpreter, interpreter);
	fake_u64(f, thread + f->p.thread_id, pthread);
	if (f->p.thread_native != PYTHON_NONE)
		fake_u64(f, thread + f->p.thread_native, tid);
	if (f->p.pthread_tid != PYTHON_NONE)
		fake_put(f, pthread + f->p.pthread_tid, tid, 4);
	if (f->p.cframe_frame == PYTHON_NONE) {
		fake_u64(f, thread + f->p.thread_frame, frame);
	} else {
		fake_u64(f, thread + f->p.thread_frame, thread + 0x200);
		fake_u64(f, thread + 0x200 + f->p.cframe_frame, frame);
	}
}

/* fake_frame_put - frame @i, of code object @i, called by frame @back (0: none). @lasti in bytes;
 * @entry: the byte that says so, or the owner. */
static inline void fake_frame_put(
	struct fake *f, unsigned i, uint64_t back, int64_t lasti, uint8_t entry)
{
	uint64_t frame = fake_frame(i), code = fake_code(i);

	fake_u64(f, frame + f->p.frame_code, code | (f->p.flags & PYTHON_TAGGED ? 1 : 0));
	fake_u64(f, frame + f->p.frame_back, back);
	if (f->p.flags & PYTHON_LASTI_POINTER)
		fake_u64(f, frame + f->p.frame_lasti, code + f->p.code_bytes + (uint64_t)lasti);
	else
		fake_put(f, frame + f->p.frame_lasti,
			(uint64_t)(f->p.flags & PYTHON_LASTI_UNITS ? lasti / 2 : lasti), 4);
	if (f->p.frame_entry != PYTHON_NONE)
		fake_put(f, frame + f->p.frame_entry, entry, 1);
}

static inline void fake_code_put(struct fake *f, unsigned i, uint32_t first_line)
{
	uint64_t code = fake_code(i);

	fake_u64(f, code + 8, FAKE_CODE_TYPE);
	fake_u64(f, code + f->p.code_file, fake_text(0));
	fake_u64(f, code + f->p.code_name, fake_text(1));
	fake_put(f, code + f->p.code_first_line, first_line, 4);
	fake_u64(f, code + f->p.code_lines, FAKE_LINES);
}

static inline void fake_lines_put(struct fake *f, const void *table, uint64_t size)
{
	fake_u64(f, FAKE_LINES + f->p.bytes_length, size);
	memcpy(f->bytes + (FAKE_LINES + f->p.bytes_data - FAKE_BASE), table, size);
}

/* fake_init - one interpreter with one thread, FAKE_TID, in frame 0, which frame 1 called; each has
 * a code object, "inner" of "file.py" in line 10 and 11. */
static inline void fake_init(struct fake *f, const struct stack_python *p)
{
	memset(f, 0, sizeof(*f));
	f->memory = (struct python_memory){fake_read, f};
	f->p = *p;
	f->p.runtime = FAKE_RUNTIME;
	fake_u64(f, FAKE_RUNTIME + p->runtime_interpreters, fake_interpreter(0));
	fake_u64(f, fake_interpreter(0) + p->interpreter_threads, fake_thread(0));
	fake_thread_put(f, 0, fake_interpreter(0), 0, FAKE_TID, fake_frame(0));
	fake_frame_put(f, 0, fake_frame(1), 6, 0);
	fake_frame_put(f, 1, 0, 8, 1);
	fake_code_put(f, 0, 10);
	fake_code_put(f, 1, 11);
	fake_text_put(f, fake_text(0), "file.py", 7, 1, true);
	fake_text_put(f, fake_text(1), "inner", 5, 1, true);
	fake_lines_put(f, "", 0);
}

/* fake_row - the table's, with the C library's place for the kernel's id where it is needed. */
static inline struct stack_python fake_row(unsigned minor)
{
	struct stack_python p = *python_table(minor);

	if (p.thread_native == PYTHON_NONE)
		p.pthread_tid = 0xd0;
	return p;
}

static inline struct python_symbols fake_symbols(const char *path)
{
	return (struct python_symbols){.runtime = FAKE_RUNTIME,
		.code_type = FAKE_CODE_TYPE,
		.unicode_type = FAKE_TEXT_TYPE,
		.path = path};
}
