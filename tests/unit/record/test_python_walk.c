/* SPDX-License-Identifier: Apache-2.0 */
/* test_python_walk.c - frames of real interpreters of every version at hand: their functions,
 * lines, and which of them C called; threads, forks, sub-interpreters, recursion. Then what only a
 * made-up one does: rings, faults, a frame that has not begun. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "python_fake.h"
#include "python_fixture.h"

static struct interpreters all;

/* ---- real ---- */

struct expected {
	const char *name, *old_name; /* before 3.11 names are not qualified; NULL: the same */
	uint32_t line;
	uint32_t entry; /* from 3.11 on; before, every frame is one */
};

static void frame_compare(const struct python_process *p, const struct stack_python *l,
	const struct stack_python_frame *f, const struct expected *e)
{
	_cleanup_free_ struct stack_record_code *c = NULL;
	_cleanup_buf_ struct buf name = BUF_INIT(4096), file = BUF_INIT(4096);

	assert_int_equal(python_code_fetch(&p->memory, l, f->code, &c), 0);
	assert_int_equal(python_text(c->name, c->name_bytes, c->name_kind, &name), 0);
	assert_int_equal(python_text(c->file, c->file_bytes, c->file_kind, &file), 0);
	assert_string_equal(buf_str(&name), l->minor < 11 && e->old_name ? e->old_name : e->name);
	assert_true(c->file_bytes > 0 && c->file[0] == '<');
	assert_int_equal(code_line(c, f->lasti), e->line);
	assert_int_equal(f->entry, l->minor < 11 ? 1 : e->entry);
	assert_int_equal(f->lines, c->lines);
	assert_false(is_artificial(c, f->lasti));
}

static struct stack_python layout_of(const struct python_process *p, uint32_t tid)
{
	struct stack_python l = {0};
	struct errinfo e = {0};
	int r = python_layout(&p->memory, &p->symbols, tid, &l, &e);

	if (r < 0)
		printf("# %s: %s\n", p->file, e.text);
	assert_int_equal(r, 0);
	return l;
}

static void walk_compare(const struct python_process *p, const struct stack_python *l, uint32_t tid,
	const struct expected *e, size_t count)
{
	struct stack_python_frame frames[STACK_PYTHON_MAX];
	int n = python_walk(&p->memory, l, tid, frames, STACK_PYTHON_MAX);

	assert_int_equal(n, count);
	for (size_t i = 0; i < count; i++)
		frame_compare(p, l, &frames[i], &e[i]);
}

/* The line of wait() says that it waits, and waits. */
#define WAIT                                                                                       \
	"import os, sys, _thread\n"                                                                \
	"def wait(text=b'waits' + bytes([10])):\n"                                                 \
	"  os.write(1, text); os.read(0, 1)\n"
#define WAIT_LINE 3

static const char nested[] = WAIT "def innermost():\n"                      /* 4 */
				  "  wait()\n"                              /* 5 */
				  "def größe():\n"                          /* 6 */
				  "  innermost()\n"                         /* 7 */
				  "def 日本(x,\n"                           /* 8 */
				  "    y):\n"                               /* 9 */
				  "  größe(\n"                              /* 10 */
				  "  )\n"                                   /* 11 */
				  "def numbers():\n"                        /* 12 */
				  "  日本(1, 2)\n"                          /* 13 */
				  "  yield 1\n"                             /* 14 */
				  "class Class:\n"                          /* 15 */
				  "  def method(self):\n"                   /* 16 */
				  "    next(numbers())\n"                   /* 17 */
				  "def 𠀀():\n"                             /* 18 */
				  "  return sorted([1],\n"                  /* 19 */
				  "      key=lambda _: Class().method())\n" /* 20 */
				  "𠀀()\n";                                 /* 21 */

static const struct expected nested_frames[] = {
	{"wait", NULL, WAIT_LINE, 0},
	{"innermost", NULL, 5, 0},
	{"größe", NULL, 7, 0},
	{"日本", NULL, 10, 0},
	{"numbers", NULL, 13, 1}, /* by next() */
	{"Class.method", "method", 17, 0},
	{"𠀀.<locals>.<lambda>", "<lambda>", 20, 1}, /* by sorted() */
	{"𠀀", NULL, 19, 0},
	{"<module>", NULL, 21, 1},
};

static void test_functions_lines_and_entries(void **state)
{
	interpreters_need(&all);
	for (size_t i = 0; i < all.count; i++) {
		struct python_process p;
		struct stack_python l;

		python_start(&p, &all.at[i], nested);
		l = layout_of(&p, (uint32_t)p.pid);
		assert_int_equal(l.minor, all.at[i].minor);
		walk_compare(&p, &l, (uint32_t)p.pid, nested_frames, ARRAY_SIZE(nested_frames));
		printf("# 3.%u: %s\n", l.minor, all.at[i].path);
		process_stop(&p);
	}
}

static void test_a_thread_of_many(void **state)
{
	static const char script[] = WAIT "def work():\n"                                /* 4 */
					  "  wait(b'%d\\n' % _thread.get_native_id())\n" /* 5 */
					  "wait_lock = _thread.allocate_lock()\n"        /* 6 */
					  "wait_lock.acquire()\n"                        /* 7 */
					  "for _ in range(37):\n"                        /* 8 */
					  "  _thread.start_new_thread(wait_lock.acquire, ())\n"
					  "_thread.start_new_thread(work, ())\n" /* 10 */
					  "wait()\n";                            /* 11 */
	static const struct expected worker[] = {
		{"wait", NULL, WAIT_LINE, 0}, {"work", NULL, 5, 1}};
	static const struct expected first[] = {
		{"wait", NULL, WAIT_LINE, 0}, {"<module>", NULL, 11, 1}};

	interpreters_need(&all);
	for (size_t i = 0; i < all.count; i++) {
		char *argv[] = {all.at[i].path, "-c", (char *)script, NULL};
		struct python_process p;
		struct stack_python l;
		uint32_t tid = 0;

		process_start(&p, argv);
		for (int lines = 0; lines < 2; lines++) { /* the two may come in either order */
			char line[64];

			process_line(&p, line, sizeof(line));
			if (strcmp(line, "waits") != 0)
				tid = (uint32_t)strtoul(line, NULL, 10);
		}
		assert_true(tid > 0 && tid != (uint32_t)p.pid);
		process_symbols(&p);
		l = layout_of(&p, (uint32_t)p.pid);
		walk_compare(&p, &l, (uint32_t)p.pid, first, ARRAY_SIZE(first));
		walk_compare(&p, &l, tid, worker, ARRAY_SIZE(worker));
		assert_int_equal(python_walk(&p.memory, &l, 1, NULL, 0), -ENOENT);
		process_stop(&p);
	}
}

static void test_a_forked_child(void **state)
{
	static const char script[] = WAIT "pid = os.fork()\n"             /* 4 */
					  "if pid == 0:\n"                /* 5 */
					  "  wait(); os._exit(0)\n"       /* 6 */
					  "os.write(1, b'%d\\n' % pid)\n" /* 7 */
					  "os.waitpid(pid, 0)\n";         /* 8 */
	static const struct expected child[] = {
		{"wait", NULL, WAIT_LINE, 0}, {"<module>", NULL, 6, 1}};

	interpreters_need(&all);
	for (size_t i = 0; i < all.count; i++) {
		char *argv[] = {all.at[i].path, "-c", (char *)script, NULL};
		struct python_process p, c;
		struct stack_python l;

		process_start(&p, argv);
		c = p;
		for (int lines = 0; lines < 2; lines++) {
			char line[64];

			process_line(&p, line, sizeof(line));
			if (strcmp(line, "waits") != 0)
				c.pid = (pid_t)strtoul(line, NULL, 10);
		}
		assert_true(c.pid > 0 && c.pid != p.pid);
		c.memory.arg = &c;
		process_symbols(&c);
		l = layout_of(&c, (uint32_t)c.pid);
		walk_compare(&c, &l, (uint32_t)c.pid, child, ARRAY_SIZE(child));
		process_stop(&p); /* the child's input ends with it */
	}
}

static void test_the_newest_interpreter_of_a_thread(void **state)
{
	static const char script[] = "for name in ('_interpreters', '_xxsubinterpreters'):\n"
				     "  try:\n"
				     "    sub = __import__(name); break\n"
				     "  except ImportError: pass\n"
				     "run = getattr(sub, 'exec', None) or sub.run_string\n"
				     "run(sub.create(), '''" WAIT "wait()\n''')\n";
	static const struct expected inside[] = {
		{"wait", NULL, WAIT_LINE, 0}, {"<module>", NULL, 4, 1}};

	interpreters_need(&all);
	for (size_t i = 0; i < all.count; i++) {
		struct python_process p;
		struct stack_python l;

		python_start(&p, &all.at[i], script);
		l = layout_of(&p, (uint32_t)p.pid);
		walk_compare(&p, &l, (uint32_t)p.pid, inside, ARRAY_SIZE(inside));
		process_stop(&p);
	}
}

static void test_recursion_is_cut_at_max(void **state)
{
	static const char script[] = WAIT "def down(n):\n"                   /* 4 */
					  "  down(n - 1) if n else wait()\n" /* 5 */
					  "down(500)\n";
	struct stack_python_frame frames[STACK_PYTHON_MAX + 1];

	interpreters_need(&all);
	for (size_t i = 0; i < all.count; i++) {
		struct python_process p;
		struct stack_python l;

		python_start(&p, &all.at[i], script);
		l = layout_of(&p, (uint32_t)p.pid);
		memset(frames, 0xee, sizeof(frames));
		assert_int_equal(
			python_walk(&p.memory, &l, (uint32_t)p.pid, frames, STACK_PYTHON_MAX),
			STACK_PYTHON_MAX);
		assert_int_equal(frames[STACK_PYTHON_MAX].entry, 0xeeeeeeee); /* not touched */
		for (int j = 2; j < STACK_PYTHON_MAX; j++) {
			assert_int_equal(frames[j].code, frames[1].code);
			assert_int_equal(frames[j].entry, l.minor < 11);
		}
		process_stop(&p);
	}
}

/* From 3.13 on a class that is called often gets a frame of the interpreter's own. */
static void test_artificial_frames_are_told(void **state)
{
	static const char script[] = WAIT "class Hot:\n"                  /* 4 */
					  "  def __init__(self, last):\n" /* 5 */
					  "    if last: wait()\n"         /* 6 */
					  "def hot(n):\n"                 /* 7 */
					  "  for i in range(n):\n"        /* 8 */
					  "    Hot(i == n - 1)\n"         /* 9 */
					  "hot(500)\n";                   /* 10 */
	struct stack_python_frame frames[STACK_PYTHON_MAX];

	interpreters_need(&all);
	for (size_t i = 0; i < all.count; i++) {
		const struct expected shown[] = {
			{"wait", NULL, WAIT_LINE, 0},
			{"Hot.__init__", "__init__", 6, all.at[i].minor < 13},
			{"hot", NULL, 9, 0},
			{"<module>", NULL, 10, 1},
		};
		struct python_process p;
		struct stack_python l;
		size_t count = 0;
		int n;

		python_start(&p, &all.at[i], script);
		l = layout_of(&p, (uint32_t)p.pid);
		n = python_walk(&p.memory, &l, (uint32_t)p.pid, frames, STACK_PYTHON_MAX);
		assert_int_equal(n, l.minor < 13 ? 4 : 5);
		for (int j = 0; j < n; j++) {
			_cleanup_free_ struct stack_record_code *c = NULL;

			assert_int_equal(python_code_fetch(&p.memory, &l, frames[j].code, &c), 0);
			if (is_artificial(c, frames[j].lasti))
				assert_int_equal(frames[j].entry, 0);
			else
				frame_compare(&p, &l, &frames[j], &shown[count++]);
		}
		assert_int_equal(count, ARRAY_SIZE(shown));
		process_stop(&p);
	}
}

/* ---- made up ---- */

static struct fake f;
static struct stack_python_frame out[8];

static int walk(void)
{
	return python_walk(&f.memory, &f.p, FAKE_TID, out, ARRAY_SIZE(out));
}

static void test_each_row_is_walked(void **state)
{
	for (unsigned minor = 9; minor <= 12; minor++) {
		const struct stack_python p = fake_row(minor);

		fake_init(&f, &p);
		assert_int_equal(walk(), 2);
		assert_int_equal(out[0].code, fake_code(0));
		assert_int_equal(out[0].lasti, 6);
		assert_int_equal(out[0].entry, minor < 11);
		assert_int_equal(out[0].lines, FAKE_LINES);
		assert_int_equal(out[1].code, fake_code(1));
		assert_int_equal(out[1].lasti, 8);
		/* in 3.12 it is an owner, and not the C stack's */
		assert_int_equal(out[1].entry, minor < 12);
	}
}

static void test_a_frame_of_the_c_stack_marks_the_one_inside(void **state)
{
	struct stack_python p = fake_row(12);

	fake_init(&f, &p);
	fake_frame_put(&f, 0, fake_frame(1), 6, 0);
	fake_frame_put(&f, 1, fake_frame(2), 0, 3);
	fake_frame_put(&f, 2, fake_frame(3), 8, 1);
	fake_code_put(&f, 2, 30);
	fake_frame_put(&f, 3, 0, 0, 4); /* above the lowest owner that is none */
	fake_u64(&f, fake_frame(1), 0); /* such frames have no code */
	assert_int_equal(walk(), 2);
	assert_int_equal(out[0].entry, 1);
	assert_int_equal(out[1].entry, 1);
	assert_int_equal(out[1].code, fake_code(2));
	/* the mark is also seen when there is room for the inner one only */
	assert_int_equal(python_walk(&f.memory, &f.p, FAKE_TID, out, 1), 1);
	assert_int_equal(out[0].entry, 1);
	/* a frame of the C stack inside all others marks none */
	fake_frame_put(&f, 0, fake_frame(2), 0, 3);
	assert_int_equal(walk(), 1);
}

static void test_tags_are_taken_off(void **state)
{
	struct stack_python p = fake_row(12);

	p.flags |= PYTHON_TAGGED;
	fake_init(&f, &p);
	assert_int_equal(walk(), 2);
	assert_int_equal(out[0].code, fake_code(0));
	assert_int_equal(out[0].lasti, 6);
}

static void test_a_frame_that_has_not_begun(void **state)
{
	for (unsigned minor = 9; minor <= 12; minor++) {
		const struct stack_python p = fake_row(minor);

		fake_init(&f, &p);
		fake_frame_put(&f, 0, fake_frame(1), -2, 0);
		assert_int_equal(walk(), 2);
		assert_int_equal(out[0].lasti, 0);
	}
}

static void test_an_instruction_far_off(void **state)
{
	const struct stack_python p = fake_row(11);

	fake_init(&f, &p);
	fake_u64(&f, fake_frame(1) + p.frame_lasti, 0x7fff00000000);
	assert_int_equal(walk(), -EBADMSG);
}

static void test_rings_end(void **state)
{
	const struct stack_python p = fake_row(12);

	fake_init(&f, &p);
	fake_u64(&f, fake_frame(1) + p.frame_back, fake_frame(0));
	assert_int_equal(walk(), -ELOOP);
	fake_u64(&f, fake_frame(1) + p.frame_back, fake_frame(1));
	assert_int_equal(walk(), -ELOOP);
	/* and a chain of frames that are no functions, longer than any */
	for (unsigned i = 0; i < 60; i++)
		fake_frame_put(&f, i, fake_frame(i + 1), 0, 3);
	assert_int_equal(walk(), -ELOOP);
}

static void test_faults(void **state)
{
	const struct stack_python p = fake_row(11);
	const uint64_t wild[] = {1, 0xfff, 0x5000, FAKE_END, UINT64_MAX - 3};

	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		fake_init(&f, &p);
		fake_u64(&f, fake_frame(0) + p.frame_back, wild[i]);
		assert_int_equal(walk(), -EFAULT);
		fake_init(&f, &p);
		fake_u64(&f, fake_frame(1) + p.frame_code, wild[i]);
		assert_true(walk() == -EFAULT || walk() == -EBADMSG);
		fake_init(&f, &p);
		fake_u64(&f, fake_thread(0) + p.thread_frame, wild[i]);
		assert_int_equal(walk(), -EFAULT);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_lines_and_entries),
		cmocka_unit_test(test_a_thread_of_many),
		cmocka_unit_test(test_a_forked_child),
		cmocka_unit_test(test_the_newest_interpreter_of_a_thread),
		cmocka_unit_test(test_recursion_is_cut_at_max),
		cmocka_unit_test(test_artificial_frames_are_told),
		cmocka_unit_test(test_each_row_is_walked),
		cmocka_unit_test(test_a_frame_of_the_c_stack_marks_the_one_inside),
		cmocka_unit_test(test_tags_are_taken_off),
		cmocka_unit_test(test_a_frame_that_has_not_begun),
		cmocka_unit_test(test_an_instruction_far_off),
		cmocka_unit_test(test_rings_end),
		cmocka_unit_test(test_faults),
	};

	interpreters_find(&all);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
