/* SPDX-License-Identifier: Apache-2.0 */
/* test_python_walk.c - frames of real interpreters of every version at hand: their functions, lines,
 * and which of them C called; threads, sub-interpreters, recursion; and rings and faults in a made-up
 * one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "python_fixture.h"

static struct interpreters all;

struct expected {
	const char *name, *old_name; /* old: before 3.11, which has no qualified names */
	uint32_t line;
	uint32_t entry; /* from 3.11 on; before, every frame is one */
};

static void frame_compare(const struct python_process *p, const struct stack_python *l,
	const struct stack_python_frame *f, const struct expected *e)
{
	_cleanup_free_ struct stack_record_code *c = NULL;
	_cleanup_buf_ struct buf name = BUF_INIT(4096), file = BUF_INIT(4096);
	uint32_t line;

	assert_int_equal(python_code_fetch(&p->memory, l, f->code, &c), 0);
	assert_int_equal(python_text(c->name, c->name_bytes, c->name_kind, &name), 0);
	assert_int_equal(python_text(c->file, c->file_bytes, c->file_kind, &file), 0);
	line = python_line(l->minor, c->first_line, c->line_table, c->lines_bytes, f->lasti);
	printf("# 3.%u %s:%u %s entry %u\n", l->minor, buf_str(&file), line, buf_str(&name), f->entry);
}
#define WAIT                                                                                       \
	"import os, sys, _thread\n"                                                                \
	"def wait(text):\n"                                                                        \
	"  os.write(1, text); os.read(0, 1)\n"

static const char nested[] = WAIT
	"def innermost():\n"                       /* 4 */
	"  wait(b'waits\\n')\n"                    /* 5 */
	"def größe():\n"                           /* 6 */
	"  innermost()\n"                          /* 7 */
	"def 日本(x,\n"                            /* 8 */
	"    y):\n"                                /* 9 */
	"  größe(\n"                               /* 10 */
	"  )\n"                                    /* 11 */
	"def numbers():\n"                         /* 12 */
	"  日本(1, 2)\n"                           /* 13 */
	"  yield 1\n"                              /* 14 */
	"class Klasse:\n"                          /* 15 */
	"  def method(self):\n"                    /* 16 */
	"    next(numbers())\n"                    /* 17 */
	"def 𠀀():\n"                               /* 18 */
	"  return sorted([1],\n"                   /* 19 */
	"      key=lambda _: Klasse().method())\n" /* 20 */
	"𠀀()\n";                                   /* 21 */

static void test_nested(void **state)
{
	for (size_t i = 0; i < all.count; i++) {
		struct stack_python_frame frames[STACK_PYTHON_MAX];
		struct python_process p;
		struct stack_python l;
		struct errinfo e = {0};
		int n;

		python_start(&p, &all.at[i], nested);
		printf("# %s\n", all.at[i].path);
		n = python_layout(&p.memory, &p.symbols, (uint32_t)p.pid, &l, &e);
		if (n < 0)
			printf("# %d %s\n", n, e.text);
		assert_int_equal(n, 0);
		printf("# native %d pthread %x\n", (int)l.thread_native, l.pthread_tid);
		n = python_walk(&p.memory, &l, (uint32_t)p.pid, frames, STACK_PYTHON_MAX);
		for (int j = 0; j < n; j++)
			frame_compare(&p, &l, &frames[j], NULL);
		process_stop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested),
	};

	interpreters_find(&all);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
