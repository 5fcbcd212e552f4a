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

/* The layout that CPython 3.13 and later publish: _Py_DebugOffsets at the start
 * of _PyRuntime, a row of 64-bit words that begins with a cookie, the version, and whether the
 * build is free-threaded. What the later words mean differs between minor versions, and is fixed
 * within one from its first release candidate on.
 *
 * The words are foreign: each offset must lie within the structure it is of, whose size is a word
 * too, and that must be a size such a structure can have.
 *
 * To add a version: its column in words[], tests/unit/record/test_debug_offsets.c, PYTHON_MINOR_MAX. */

#define COOKIE        "xdebugpy"
#define COOKIE_WORDS  3 /* cookie, version, free_threaded */
#define MINOR_FIRST   13
#define VERSIONS      (PYTHON_MINOR_MAX - MINOR_FIRST + 1)
#define WORDS_MAX     96        /* behind the last word that is used */
#define STRUCTURE_MAX (4 << 20) /* bytes; an interpreter has some hundred thousand */

#define FIELD(name) offsetof(struct stack_python, name)

/* Which word holds what, in 3.13, 3.14 and 3.15: the size of the structure, the offset in it. */
static const struct {
	uint16_t field;
	uint8_t size[VERSIONS], word[VERSIONS];
} words[] = {
	{FIELD(runtime_interpreters), {3, 3, 3}, {5, 5, 5}},
	{FIELD(interpreter_next), {6, 6, 6}, {8, 8, 8}},
	{FIELD(interpreter_threads), {6, 6, 6}, {9, 9, 9}},
	{FIELD(thread_next), {19, 22, 22}, {21, 24, 24}},
	{FIELD(thread_interpreter), {19, 22, 22}, {22, 25, 25}},
	{FIELD(thread_frame), {19, 22, 22}, {23, 26, 26}},
	{FIELD(thread_id), {19, 22, 22}, {24, 27, 30}},
	{FIELD(thread_native), {19, 22, 22}, {25, 28, 31}},
	{FIELD(frame_back), {28, 31, 39}, {29, 32, 40}},
	{FIELD(frame_code), {28, 31, 39}, {30, 33, 41}},
	{FIELD(frame_lasti), {28, 31, 39}, {31, 34, 42}},
	{FIELD(frame_entry), {28, 31, 39}, {33, 36, 44}},
	{FIELD(code_file), {34, 39, 47}, {35, 40, 48}},
	{FIELD(code_name), {34, 39, 47}, {37, 42, 50}},
	{FIELD(code_lines), {34, 39, 47}, {38, 43, 51}},
	{FIELD(code_first_line), {34, 39, 47}, {39, 44, 52}},
	{FIELD(code_bytes), {34, 39, 47}, {43, 48, 56}},
	{FIELD(bytes_length), {64, 74, 86}, {65, 75, 87}},
	{FIELD(bytes_data), {64, 74, 86}, {66, 76, 88}},
	{FIELD(text_state), {67, 77, 89}, {68, 78, 90}},
	{FIELD(text_length), {67, 77, 89}, {69, 79, 91}},
	{FIELD(text_ascii), {67, 77, 89}, {70, 80, 92}},
};
static const uint8_t text_size[VERSIONS] = {67, 77, 89};

static int version_check(uint64_t version, uint64_t free_threaded, struct errinfo *reterr)
{
	unsigned major = version >> 24 & 0xff, minor = version >> 16 & 0xff;

	if (version >> 32 || major != 3 || minor < MINOR_FIRST)
		return errinfo_set(reterr, -EOPNOTSUPP, "its offset table is invalid");
	if (minor > PYTHON_MINOR_MAX)
		return errinfo_set(reterr, -EOPNOTSUPP, "CPython 3.%u is not supported", minor);
	if ((version >> 4 & 0xf) < 0xc) /* the words still move in alpha and beta versions */
		return errinfo_set(reterr, -EOPNOTSUPP,
			"pre-releases of CPython 3.%u are not supported", minor);
	if (free_threaded)
		return errinfo_set(reterr, -EOPNOTSUPP,
			"free-threaded builds of CPython 3.%u are not supported", minor);
	return 0;
}

static int offsets_take(const uint64_t *w, struct stack_python *p, struct errinfo *reterr)
{
	unsigned version = p->minor - MINOR_FIRST;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		uint64_t size = w[words[i].size[version]], offset = w[words[i].word[version]];
		uint32_t field = (uint32_t)offset;

		if (size > STRUCTURE_MAX || offset >= size)
			return errinfo_set(reterr, -EOPNOTSUPP,
				"word %u of its offset table is invalid", words[i].word[version]);
		memcpy((char *)p + words[i].field, &field, sizeof(field));
	}
	/* a str object ends with a pointer that compact ones do not have */
	p->text_compact = (uint32_t)w[text_size[version]] - 8;
	return 0;
}

int python_debug_offsets(const struct python_memory *m, uint64_t runtime, struct stack_python *ret,
	struct errinfo *reterr)
{
	uint64_t w[WORDS_MAX];
	struct stack_python p = {
		.runtime = runtime,
		.flags = PYTHON_LASTI_POINTER | PYTHON_ENTRY_IS_OWNER,
		.pthread_tid = PYTHON_NONE,
		.cframe_frame = PYTHON_NONE,
		.owner_c_stack =
			3, /* 3.13: the C stack; 3.14: the interpreter, the C stack above it */
		.text_kind_shift = 2,
	};
	int r = python_bytes(m, runtime, w, COOKIE_WORDS * sizeof(*w));

	if (r < 0)
		return errinfo_set(reterr, r, "cannot read its memory");
	if (memcmp(w, COOKIE, sizeof(*w)) != 0)
		return 0;
	r = version_check(w[1], w[2], reterr);
	if (r < 0)
		return r;
	p.minor = w[1] >> 16 & 0xff;
	if (p.minor >= 14)
		p.flags |= PYTHON_TAGGED;
	r = python_bytes(m, runtime, w, sizeof(w));
	if (r < 0)
		return errinfo_set(reterr, r, "cannot read its memory");
	r = offsets_take(w, &p, reterr);
	if (r < 0)
		return r;
	*ret = p;
	return 1;
}

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
	int r = type_check(t, code, t->s->code_type);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++) {
		r = python_u64(t->m, code + texts[i], &text);
		r = r ?: type_check(t, text, t->s->unicode_type);
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
	int r = offsets_choose(&t, reterr);

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
			"its structures have no end: %u reads did not find a thread's frames",
			READS_MAX);
	if (empty)
		return errinfo_set(reterr, -EAGAIN, "no thread of it runs Python yet");
	return errinfo_set(reterr, -EOPNOTSUPP,
		"its CPython 3.%u differs from the released layout: %s", t.p.minor,
		failure_text(r));
}
