/* SPDX-License-Identifier: Apache-2.0 */
/* python_private.h - what the files of this folder share: checked reads, threads, versions. */
#pragma once

#include "record/python/python.h"

/* Ceilings of lists that the process could have bent into a ring. */
#define PYTHON_INTERPRETERS_MAX 16
#define PYTHON_THREADS_MAX      4096

/* No object lies in the first page, so a NULL plus an offset is never asked for. */
static inline int python_bytes(
	const struct python_memory *m, uint64_t address, void *out, size_t len)
{
	if (address < 4096 || address + len < address)
		return -EFAULT;
	return m->read(m->arg, address, out, len);
}

static inline int python_u64(const struct python_memory *m, uint64_t address, uint64_t *ret)
{
	return python_bytes(m, address, ret, sizeof(*ret));
}

static inline int python_u32(const struct python_memory *m, uint64_t address, uint32_t *ret)
{
	return python_bytes(m, address, ret, sizeof(*ret));
}

/* python_first_interpreter - 0 while the runtime comes up. */
static inline int python_first_interpreter(
	const struct python_memory *m, const struct stack_python *p, uint64_t *ret)
{
	return python_u64(m, p->runtime + p->runtime_interpreters, ret);
}

/* python_frame - the innermost frame of a thread's state; 0: it has none. */
int python_frame(const struct python_memory *m, const struct stack_python *p, uint64_t thread,
	uint64_t *ret);

/* python_thread_each - call @visit with each thread's state, interpreter by interpreter, until it
 * returns something else than 0, which is returned. 0 at the end; -EFAULT; -EBADMSG if a thread is
 * not its interpreter's; -ELOOP if there are more than can be. */
typedef int python_thread_visit(void *arg, uint64_t thread);
int python_thread_each(const struct python_memory *m, const struct stack_python *p,
	python_thread_visit *visit, void *arg);

/* python_thread_find - the state, with a frame, of the thread that the kernel calls @tid. A thread
 * may have several, one in each interpreter: the newest interpreter's is taken.
 * -ENOENT, or as python_thread_each(). */
int python_thread_find(const struct python_memory *m, const struct stack_python *p, uint32_t tid,
	uint64_t *ret_thread, uint64_t *ret_frame);

/* python_thread_search - where an interpreter keeps its list of threads, if the table is wrong: the
 * offset behind which the longest list lies that has @tid in it. Returns 0; 1 if there are several
 * as long, and this is the first; -ENOENT. */
int python_thread_search(const struct python_memory *m, const struct stack_python *p, uint32_t tid,
	uint32_t *ret_offset);

/* python_pthread_search - where the C library keeps the kernel's id of thread @tid behind what
 * pthread_self() gives. -ENOENT. */
int python_pthread_search(const struct python_memory *m, const struct stack_python *p, uint32_t tid,
	uint32_t *ret_offset);

/* python_minor - 11 of "libpython3.11.so.1.0" or of Py_Version; 0: neither says. */
unsigned python_minor(const struct python_symbols *s);

/* python_debug_offsets - the layout that 3.13 and later publish at the start of their runtime.
 * Returns 1; 0 if there is nothing published; -EFAULT; -EOPNOTSUPP. */
int python_debug_offsets(const struct python_memory *m, uint64_t runtime, struct stack_python *ret,
	struct errinfo *reterr);
