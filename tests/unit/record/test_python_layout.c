/* SPDX-License-Identifier: Apache-2.0 */
/* test_python_layout.c - that a layout is told only if it was proved: real interpreters of every
 * version at hand, ones whose memory is bent on its way here, and made-up ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "python_fake.h"
#include "python_fixture.h"

#define TURNS_MAX 1000

static struct interpreters all;

static const char waits[] = "import os\n"
			    "def wait():\n"
			    "  os.write(1, b'waits\\n'); os.read(0, 1)\n"
			    "wait()\n";

/* At a `t` it starts a thread, which waits for ever; at anything it says again that it waits. */
static const char waits_again[] =
	"import os, _thread\n"
	"held = _thread.allocate_lock(); held.acquire()\n"
	"def wait():\n"
	"  while True:\n"
	"    os.write(1, b'waits\\n')\n"
	"    if os.read(0, 1) == b't': _thread.start_new_thread(held.acquire, ())\n"
	"wait()\n";

static void wake(struct python_process *p, char how)
{
	char line[64];

	assert_int_equal(write(p->in, &how, 1), 1);
	process_line(p, line, sizeof(line));
	assert_string_equal(line, "waits");
}

/* A memory in which two words have changed places, as if a structure were laid out otherwise. */
struct swapped {
	struct python_process *p;
	uint64_t a, b;
};

static int swapped_read(void *arg, uint64_t address, void *out, size_t len)
{
	const struct swapped *s = arg;
	int r = process_read(s->p, address, out, len);

	for (size_t i = 0; r == 0 && i + 8 <= len; i++) {
		if (address + i == s->a)
			r = process_read(s->p, s->b, (char *)out + i, 8);
		else if (address + i == s->b)
			r = process_read(s->p, s->a, (char *)out + i, 8);
	}
	return r;
}

static void test_another_place_of_the_list_is_found(void **state)
{
	interpreters_need(&all);
	for (size_t i = 0; i < all.count; i++) {
		struct stack_python right, l;
		struct stack_python_frame frames[4];
		struct python_process p;
		struct swapped s;
		struct python_memory m = {swapped_read, &s};
		uint64_t head;
		uint32_t tid;
		int r;

		python_start(&p, &all.at[i], waits_again);
		tid = (uint32_t)p.pid;
		assert_int_equal(python_layout(&p.memory, &p.symbols, tid, &right, NULL), 0);
		assert_int_equal(
			process_read(&p, right.runtime + right.runtime_interpreters, &head, 8), 0);
		s = (struct swapped){&p, head + right.interpreter_threads, head + 2000};
		/* of an only thread there may be other pointers, which serve as long as it is one */
		r = python_layout(&m, &p.symbols, tid, &l, NULL);
		assert_in_range(r, 0, 1);
		assert_int_equal(python_walk(&m, &l, tid, frames, 4), 2);
		/* The newest thread is also where the first one, which the interpreter contains,
		 * says what comes before it, unless there is one between them; and it may be the
		 * one that held the interpreter's lock last, until it has come to where it waits.
		 */
		wake(&p, 't');
		wake(&p, 't');
		for (unsigned turns = 0; turns < TURNS_MAX; turns++) {
			wake(&p, 'x');
			r = python_layout(&m, &p.symbols, tid, &l, NULL);
			if (r == 0)
				break;
		}
		assert_int_equal(r, 0);
		assert_int_equal(l.interpreter_threads, 2000);
		assert_int_equal(python_walk(&m, &l, tid, frames, 4), 2);
		process_stop(&p);
	}
}

/* A thread that runs no Python, as the first one of a program that embeds it. */
static void test_a_thread_without_python(void **state)
{
	interpreters_need(&all);
	for (size_t i = 0; i < all.count; i++) {
		struct stack_python l = {.minor = 77};
		struct python_process p;
		struct errinfo e = {0};
		int r;

		python_start(&p, &all.at[i], waits);
		r = python_layout(&p.memory, &p.symbols, 0x7ffffff1, &l, &e);
		if (all.at[i].minor < 11) { /* which has nothing else to tell threads by */
			assert_int_equal(r, -EAGAIN);
			assert_string_equal(e.text, "no thread of it runs Python yet");
			assert_int_equal(l.minor, 77);
		} else {
			struct stack_python_frame frames[4];

			assert_int_equal(r, 0);
			assert_int_equal(python_walk(&p.memory, &l, (uint32_t)p.pid, frames, 4), 2);
		}
		process_stop(&p);
	}
}

/* The table's row of another version is found out, whatever it is of. */
static void test_the_wrong_row_is_refused(void **state)
{
	interpreters_need(&all);
	for (size_t i = 0; i < all.count; i++) {
		struct stack_python l = {.minor = 77};
		struct python_process p;

		if (all.at[i].minor > 12) /* they publish their own */
			continue;
		python_start(&p, &all.at[i], waits);
		for (unsigned minor = 9; minor <= 12; minor++) {
			struct errinfo e = {0};
			int r;

			if (minor == all.at[i].minor || (minor < 11 && all.at[i].minor < 11))
				continue; /* 3.9 and 3.10 differ in one offset, of a number */
			p.symbols.version = 0x03000000 | minor << 16;
			r = python_layout(&p.memory, &p.symbols, (uint32_t)p.pid, &l, &e);
			assert_true(r == -EOPNOTSUPP || r == -EAGAIN);
			assert_int_equal(l.minor, 77);
			assert_true(e.text[0] != '\0');
		}
		process_stop(&p);
	}
}

/* Reads that lie now and then: nothing but the errors that are allowed comes of it. */
struct noise {
	struct python_process *p;
	uint64_t state;
	unsigned every; /* one in so many reads is spoilt */
};

static uint64_t noise_next(struct noise *n)
{
	n->state ^= n->state << 13;
	n->state ^= n->state >> 7;
	n->state ^= n->state << 17;
	return n->state;
}

static int noise_read(void *arg, uint64_t address, void *out, size_t len)
{
	struct noise *n = arg;
	int r = process_read(n->p, address, out, len);

	if (r == 0 && noise_next(n) % n->every == 0)
		((uint8_t *)out)[noise_next(n) % len] ^= (uint8_t)(1 << noise_next(n) % 8);
	return r;
}

static void test_spoilt_memory_does_no_harm(void **state)
{
	unsigned whole = 0, failed = 0;

	interpreters_need(&all);
	for (size_t i = 0; i < all.count; i++) {
		struct python_process p;
		struct noise n = {&p, 0x9e3779b97f4a7c15, 0};
		struct python_memory m = {noise_read, &n};
		struct stack_python l;

		python_start(&p, &all.at[i], waits);
		for (unsigned round = 0; round < 120; round++) {
			struct stack_python_frame frames[STACK_PYTHON_MAX];
			int r;

			n.every = 2 + round % 60;
			r = python_layout(&m, &p.symbols, (uint32_t)p.pid, &l, NULL);
			assert_true(r == 0 || r == 1 || r == -EAGAIN || r == -EOPNOTSUPP ||
				    r == -EFAULT);
			if (r >= 0)
				r = python_walk(&m, &l, (uint32_t)p.pid, frames, STACK_PYTHON_MAX);
			assert_true(r <= STACK_PYTHON_MAX);
			whole += r > 0;
			failed += r < 0;
			for (int j = 0; j < r; j++) {
				struct stack_record_code *c = NULL;

				if (python_code_fetch(&m, &l, frames[j].code, &c) == 0)
					code_line(c, frames[j].lasti);
				free(c);
			}
		}
		process_stop(&p);
	}
	assert_true(whole > 0 && failed > 0);
}

/* ---- made up ---- */

static struct fake f;

static int layout(const struct python_symbols *s, struct stack_python *ret, struct errinfo *e)
{
	return python_layout(&f.memory, s, FAKE_TID, ret, e);
}

static void refused(const struct python_symbols *s, int err, const char *text)
{
	struct stack_python l = {.minor = 77};
	struct errinfo e = {0};

	assert_int_equal(layout(s, &l, &e), err);
	assert_non_null(strstr(e.text, text));
	assert_int_equal(l.minor, 77);
	assert_int_equal(layout(s, &l, NULL), err);
}

static void test_each_row(void **state)
{
	for (unsigned minor = 9; minor <= 12; minor++) {
		const struct stack_python row = fake_row(minor);
		struct python_symbols s = fake_symbols(NULL);
		struct stack_python l;
		char path[64];

		fake_init(&f, &row);
		snprintf(path, sizeof(path), "/opt/python3.1/lib/libpython3.%u.so.1.0", minor);
		s.path = path;
		assert_int_equal(layout(&s, &l, NULL), 0);
		assert_int_equal(l.minor, minor);
		assert_int_equal(l.runtime, FAKE_RUNTIME);
		assert_int_equal(l.thread_native, row.thread_native);
		s.code_type = s.unicode_type = 0; /* not needed, only better */
		assert_int_equal(layout(&s, &l, NULL), 0);
	}
}

/* CPython 3.12 has a pointer to the main thread right behind the list. */
static void test_a_second_pointer_to_the_only_thread(void **state)
{
	const struct stack_python row = fake_row(12);
	const struct python_symbols s = fake_symbols("python3.12");
	const uint32_t list = row.interpreter_threads + 64, only = list - 8;
	struct stack_python l;

	fake_init(&f, &row);
	fake_u64(&f, fake_interpreter(0) + row.interpreter_threads, 0);
	fake_u64(&f, fake_interpreter(0) + only, fake_thread(0));
	fake_u64(&f, fake_interpreter(0) + list, fake_thread(0));
	assert_int_equal(layout(&s, &l, NULL), 1);
	assert_int_equal(l.interpreter_threads, only);
	/* A newer thread comes first in the list, and only there. */
	fake_thread_put(&f, 1, fake_interpreter(0), fake_thread(0), FAKE_TID + 1, 0);
	fake_u64(&f, fake_interpreter(0) + list, fake_thread(1));
	assert_int_equal(layout(&s, &l, NULL), 0);
	assert_int_equal(l.interpreter_threads, list);
}

static void test_another_c_library(void **state)
{
	struct stack_python row = fake_row(9), l;
	struct python_symbols s = fake_symbols("python3.9");

	row.pthread_tid = 0x30;
	fake_init(&f, &row);
	assert_int_equal(layout(&s, &l, NULL), 0);
	assert_int_equal(l.pthread_tid, 0x30);
}

/* Python's id is the parent's in a child that was forked behind its back. */
static void test_a_stale_id(void **state)
{
	struct stack_python row = fake_row(11), l;
	struct stack_python_frame frames[4];
	struct python_symbols s = fake_symbols("python3.11");

	row.pthread_tid = 0x64;
	fake_init(&f, &row);
	fake_u64(&f, fake_thread(0) + row.thread_native, FAKE_TID - 1);
	assert_int_equal(layout(&s, &l, NULL), 0);
	assert_int_equal(l.thread_native, PYTHON_NONE);
	assert_int_equal(l.pthread_tid, 0x64);
	assert_int_equal(python_walk(&f.memory, &l, FAKE_TID, frames, 4), 2);
}

static void test_not_up_yet(void **state)
{
	const struct stack_python row = fake_row(11);
	const struct python_symbols s = fake_symbols("python3.11");

	fake_init(&f, &row);
	fake_u64(&f, FAKE_RUNTIME + row.runtime_interpreters, 0);
	refused(&s, -EAGAIN, "runs Python");
	fake_init(&f, &row);
	fake_u64(&f, fake_interpreter(0) + row.interpreter_threads, 0);
	refused(&s, -EAGAIN, "runs Python");
	fake_init(&f, &row);
	fake_thread_put(&f, 0, fake_interpreter(0), 0, FAKE_TID, 0);
	refused(&s, -EAGAIN, "runs Python");
}

static void test_unknown_versions(void **state)
{
	const struct stack_python row = fake_row(11);
	struct python_symbols s = fake_symbols("/usr/bin/python3");

	fake_init(&f, &row);
	refused(&s, -EOPNOTSUPP, "unknown interpreter version");
	s.path = NULL;
	refused(&s, -EOPNOTSUPP, "unknown interpreter version");
	s.path = "python3.8";
	refused(&s, -EOPNOTSUPP, "CPython 3.8 is not supported");
	s.version = 0x031000f0;
	refused(&s, -EOPNOTSUPP, "CPython 3.16 is not supported");
	s.runtime = 0;
	refused(&s, -EOPNOTSUPP, "_PyRuntime");
	s.runtime = FAKE_END;
	refused(&s, -EFAULT, "cannot read its memory");
}

static void test_objects_that_are_none(void **state)
{
	const struct stack_python row = fake_row(12);
	const struct python_symbols s = fake_symbols("python3.12");

	fake_init(&f, &row);
	fake_u64(&f, fake_code(1) + 8, FAKE_TEXT_TYPE);
	refused(&s, -EOPNOTSUPP, "invalid objects");
	fake_init(&f, &row);
	fake_u64(&f, fake_text(1) + 8, FAKE_CODE_TYPE);
	refused(&s, -EOPNOTSUPP, "invalid objects");
	fake_init(&f, &row);
	fake_u64(&f, fake_text(1) + row.text_length, 0);
	refused(&s, -EOPNOTSUPP, "invalid objects");
	fake_init(&f, &row);
	fake_u64(&f, fake_frame(0) + row.frame_back, 0x700000000000);
	refused(&s, -EOPNOTSUPP, "an invalid pointer");
	fake_init(&f, &row);
	fake_u64(&f, fake_frame(1) + row.frame_back, fake_frame(0));
	refused(&s, -EOPNOTSUPP, "an endless list");
}

static unsigned reads;

static int count_read(void *arg, uint64_t address, void *out, size_t len)
{
	reads++;
	return fake_read(arg, address, out, len);
}

/* Every word of the interpreter leads to a ring of threads: searching them all would take 400 million reads. */
static void test_a_maze_is_left(void **state)
{
	const struct stack_python row = fake_row(11);
	const struct python_symbols s = fake_symbols("python3.11");

	fake_init(&f, &row);
	f.memory.read = count_read;
	reads = 0;
	for (uint64_t at = 8; at < 16384; at += 8)
		fake_u64(&f, fake_interpreter(0) + at, fake_thread(1));
	for (unsigned i = 1; i < 64; i++)
		fake_thread_put(&f, i, fake_interpreter(0), fake_thread(i % 63 + 1), 1, 0);
	refused(&s, -EOPNOTSUPP, "have no end");
	assert_true(reads > 10000 && reads <= 2 * 32768);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_place_of_the_list_is_found),
		cmocka_unit_test(test_a_thread_without_python),
		cmocka_unit_test(test_the_wrong_row_is_refused),
		cmocka_unit_test(test_spoilt_memory_does_no_harm),
		cmocka_unit_test(test_each_row),
		cmocka_unit_test(test_a_second_pointer_to_the_only_thread),
		cmocka_unit_test(test_another_c_library),
		cmocka_unit_test(test_a_stale_id),
		cmocka_unit_test(test_not_up_yet),
		cmocka_unit_test(test_unknown_versions),
		cmocka_unit_test(test_objects_that_are_none),
		cmocka_unit_test(test_a_maze_is_left),
	};

	interpreters_find(&all);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
