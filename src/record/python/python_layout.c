/* SPDX-License-Identifier: Apache-2.0 */
/* python_layout.c - which layout a process's CPython has, proved by a walk of its present frames.
 *
 * 1. The offsets are those that the interpreter publishes, else the table's for the version that
 *    Py_Version or the file's name says.
 * 2. Its threads are told by the kernel id that Python keeps; else by the one that the C library
 *    keeps, which is right too in a child that was forked behind Python's back.
 * 3. Every frame's code object must be one, with names that are text. A process that runs on may
 *    spoil a walk, so several are tried; the first that is whole proves the layout.
 *
 * Nothing is told of a layout that was not proved. Lists may lead to lists: what is read in all has a ceiling, since
 * whoever laid them out may want to keep the reader busy. */
#include "record/python/python_private.h"

#define ATTEMPTS  16
#define READS_MAX 32768 /* some 12 ms; an interpreter with 1,000 threads takes 10,000 */

/* Where glibc keeps the kernel's id in struct pthread; other C libraries are searched. */
#if defined(__x86_64__)
#define PTHREAD_TID 0x2d0
#elif defined(__aarch64__)
#define PTHREAD_TID 0xd0
#else
#define PTHREAD_TID PYTHON_NONE
#endif

struct ration { /* of reads */
	const struct python_memory *m;
	unsigned left;
};

struct trial {
	const struct python_memory *m;
	const struct python_symbols *s;
	uint32_t tid;
	struct stack_python p;
	bool is_guess; /* where p says that the threads are, another pointer to one may be */
};

static int read_rationed(void *arg, uint64_t address, void *out, size_t len)
{
	struct ration *r = arg;

	if (!r->left)
		return -EDQUOT;
	r->left--;
	return r->m->read(r->m->arg, address, out, len);
}

static int type_check(const struct trial *t, uint64_t object, uint64_t type)
{
	uint64_t found;
	int r;

	if (!type)
		return 0;
	r = python_u64(t->m, object + 8, &found); /* behind the count of references */
	if (r < 0)
		return r;
	return found == type ? 0 : -EBADMSG;
}

static int code_check(const struct trial *t, uint64_t code)
{
	_cleanup_free_ struct stack_record_code *c = NULL;
	const uint32_t texts[] = {t->p.code_file, t->p.code_name};
	uint64_t text;
	int r;

	r = type_check(t, code, t->s->code_type);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++) {
		r = python_u64(t->m, code + texts[i], &text);
		if (r == 0)
			r = type_check(t, text, t->s->unicode_type);
	}
	if (r < 0)
		return r;
	r = python_code_fetch(t->m, &t->p, code, &c);
	if (r < 0)
		return r;
	return c->name_bytes ? 0 : -EBADMSG;
}

/* walk_check - 0 if the thread's frames can be walked and are frames. */
static int walk_check(const struct trial *t)
{
	struct stack_python_frame frames[STACK_PYTHON_MAX];
	int n, r = 0;

	n = python_walk(t->m, &t->p, t->tid, frames, ARRAY_SIZE(frames));
	if (n <= 0)
		return n < 0 ? n : -ENOENT;
	for (int i = 0; r == 0 && i < n; i++)
		r = code_check(t, frames[i].code);
	return r;
}

static bool thread_is_found(const struct trial *t)
{
	uint64_t thread, frame;

	return python_thread_find(t->m, &t->p, t->tid, &thread, &frame) == 0;
}

static int visit_running(void *arg, uint64_t thread)
{
	struct trial *t = arg;
	uint64_t frame, id;

	if (python_frame(t->m, &t->p, thread, &frame) < 0 || !frame ||
		python_u64(t->m, thread + t->p.thread_native, &id) < 0 || !id || id > UINT32_MAX)
		return 0;
	t->tid = (uint32_t)id;
	return 1;
}

/* thread_settle - by which of its ids a thread is told. The one that was named need not run Python
 * (programs that embed it): then any other that does serves the proof, where Python keeps ids. */
static void thread_settle(struct trial *t)
{
	struct stack_python kept = t->p;

	t->p.pthread_tid = PTHREAD_TID;
	if (thread_is_found(t))
		return;
	t->p.thread_native = PYTHON_NONE;
	if (thread_is_found(t))
		return;
	if (python_pthread_search(t->m, &t->p, t->tid, &t->p.pthread_tid) == 0 &&
		thread_is_found(t))
		return;
	t->p = kept;
	if (kept.thread_native != PYTHON_NONE)
		(void)python_thread_each(t->m, &t->p, visit_running, t);
}

/* list_settle - a build whose list of threads is not where the table says. */
static bool list_settle(struct trial *t)
{
	uint32_t offset;
	int r;

	t->p.pthread_tid = PTHREAD_TID;
	r = python_thread_search(t->m, &t->p, t->tid, &offset);
	if (r < 0 || offset == t->p.interpreter_threads)
		return false;
	t->p.interpreter_threads = offset;
	t->is_guess = r > 0;
	return true;
}

static int attempt(struct trial *t)
{
	const struct stack_python offered = t->p;
	const uint32_t tid = t->tid;
	uint64_t interpreter;
	int r, again;

	r = python_first_interpreter(t->m, &t->p, &interpreter);
	if (r < 0)
		return r;
	if (!interpreter)
		return -ENOENT;
	t->is_guess = false;
	thread_settle(t);
	r = walk_check(t);
	if (r == 0)
		return 0;
	t->p = offered;
	t->tid = tid;
	if (list_settle(t)) {
		again = walk_check(t);
		if (again == 0)
			return 0;
	}
	t->p = offered;
	return r;
}

static const char *failure_text(int err)
{
	switch (err) {
	case -EFAULT: return "an invalid pointer";
	case -ELOOP: return "an endless list";
	case -EBADMSG: return "invalid objects";
	default: return strerror(-err);
	}
}

static int offsets_choose(struct trial *t, struct errinfo *reterr)
{
	const struct stack_python *row;
	unsigned minor;
	int r;

	if (!t->s->runtime)
		return errinfo_set(reterr, -EOPNOTSUPP, "the interpreter has no symbol _PyRuntime");
	r = python_debug_offsets(t->m, t->s->runtime, &t->p, reterr);
	if (r != 0)
		return r < 0 ? r : 0;
	minor = python_minor(t->s);
	if (!minor)
		return errinfo_set(reterr, -EOPNOTSUPP, "unknown interpreter version");
	row = python_table(minor);
	if (!row)
		return errinfo_set(reterr, -EOPNOTSUPP, "CPython 3.%u is not supported", minor);
	t->p = *row;
	t->p.runtime = t->s->runtime;
	return 0;
}

int python_layout(const struct python_memory *m, const struct python_symbols *s, uint32_t tid,
	struct stack_python *ret, struct errinfo *reterr)
{
	struct ration ration = {.m = m, .left = READS_MAX};
	const struct python_memory rationed = {read_rationed, &ration};
	struct trial t = {.m = &rationed, .s = s, .tid = tid};
	bool empty = false;
	int r;

	r = offsets_choose(&t, reterr);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < ATTEMPTS && ration.left; i++) {
		r = attempt(&t);
		if (r == 0) {
			*ret = t.p;
			return t.is_guess;
		}
		empty |= r == -ENOENT;
	}
	if (!ration.left)
		return errinfo_set(reterr, -EOPNOTSUPP,
			"its structures lead on and on: %u reads did not find a thread's frames",
			READS_MAX);
	if (empty)
		return errinfo_set(reterr, -EAGAIN, "no thread of it runs Python yet");
	return errinfo_set(reterr, -EOPNOTSUPP,
		"its CPython 3.%u differs from the released layout: %s", t.p.minor,
		failure_text(r));
}
