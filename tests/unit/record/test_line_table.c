/* SPDX-License-Identifier: Apache-2.0 */
/* test_line_table.c - every instruction of many functions against what the interpreter itself says
 * of their lines; tables recorded from each version; tables that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "python_fixture.h"

static struct interpreters all;

/* ---- recorded ----
 *
 * Of one function, whose head is in line 41 and 42: a call over three lines, a loop with try and
 * finally, 300 empty lines, a with, and a return over two lines. Runs are {end, line}. */

struct run {
	uint32_t end, line;
};

static const struct recorded {
	unsigned minor;
	const char *table;
	size_t size;
	struct run runs[24];
} recorded[] = {
#define TABLE(text) text, sizeof(text) - 1
	{9,
		TABLE("\x00\x02\x02\x01\x02\x01\x02\xfe\x04\x03\x04\x01\x02\x01\x0a\x02\x12\x7f"
		      "\x00\x7f\x00\x30\x2a\x01\x02\x01\x02\xff"),
		{{2, 43}, {4, 44}, {6, 45}, {10, 43}, {14, 46}, {16, 47}, {26, 48}, {44, 50},
			{86, 352}, {88, 353}, {90, 354}, {94, 353}}},
	{10,
		TABLE("\x02\x02\x02\x01\x02\x01\x04\xfe\x04\x03\x02\x01\x0a\x01\x10\x02\x04\xfc"
		      "\x00\x7f\x00\x7f\x18\x34\x02\x01\x02\x01\x04\xff\x10\xff\x02\x01\x02\x01"
		      "\x04\xff"),
		{{2, 43}, {4, 44}, {6, 45}, {10, 43}, {14, 46}, {16, 47}, {26, 48}, {42, 50},
			{46, 46}, {70, 352}, {72, 353}, {74, 354}, {78, 353}, {94, 352}, {96, 353},
			{98, 354}, {102, 353}}},
	{11,
		TABLE("\x80\x00\xe5\x08\x09\xd8\x08\x09\xd8\x08\x09\xf1\x05\x02\x09\x0b\xf4\x00"
		      "\x02\x09\x0b\x80\x41\xf0\x06\x00\x0b\x0c\xf0\x00\x04\x05\x10\xf0\x02\x03"
		      "\x09\x10\xdd\x10\x11\x90\x21\x91\x04\x94\x04\x88\x41\xe5\x0c\x0d\x89\x43"
		      "\x8c\x43\x88\x43\x88\x43\xf8\x8d\x41\x89\x43\x8c\x43\x88\x43\x88\x43\xf8"
		      "\xf8\xf8\xf0\x09\x00\x0b\x0c\xf0\x00\x04\x05\x10\xf0\x64\x09\x00\x0a\x0b"
		      "\x80\x4b\x80\x4b\x8d\x41\x89\x43\x8c\x43\x88\x43\x80\x4b\x80\x4b\x80\x4b"
		      "\x81\x4b\x84\x4b\x80\x4b\x80\x4b\x80\x4b\x80\x4b\x80\x4b\x80\x4b\xf8\xf8"
		      "\xf8\x80\x4b\x80\x4b\x80\x4b\x80\x4b\xd8\x0c\x0d\xd8\x08\x09\xf1\x03\x01"
		      "\x0d\x0a\xf0\x00\x01\x05\x0b"),
		{{2, 41}, {14, 43}, {16, 44}, {18, 45}, {34, 43}, {38, 46}, {40, 47}, {70, 48},
			{100, 50}, {102, 0}, {132, 50}, {138, 0}, {142, 46}, {208, 352}, {214, 0},
			{222, 352}, {224, 353}, {226, 354}, {232, 353}}},
	{12,
		TABLE("\x80\x00\xe4\x08\x09\xd8\x08\x09\xd8\x08\x09\xf3\x05\x02\x09\x0b\x80\x41"
		      "\xf1\x06\x00\x0b\x0c\xf0\x02\x03\x09\x10\xdc\x10\x11\x90\x21\x93\x04\x88"
		      "\x41\xe4\x0c\x0d\x8c\x43\xf2\x09\x00\x0b\x0c\xf0\x64\x09\x00\x0a\x0b\x81"
		      "\x4b\x8c\x41\x8c\x43\x87\x4b\xd8\x0c\x0d\xd8\x08\x09\xf1\x03\x01\x0d\x0a"
		      "\xf0\x00\x01\x05\x0b\xf8\xf4\x5f\x09\x00\x0d\x0e\x8d\x43\xfa\xf7\x5c\x09"
		      "\x00\x05\x10\xd8\x0c\x0d\xd8\x08\x09\xf1\x03\x01\x0d\x0a\xf0\x00\x01\x05"
		      "\x0b\xfa"),
		{{2, 41}, {12, 43}, {14, 44}, {16, 45}, {26, 43}, {30, 46}, {32, 47}, {54, 48},
			{74, 50}, {80, 46}, {122, 352}, {124, 353}, {126, 354}, {132, 353},
			{134, 0}, {156, 50}, {162, 0}, {178, 352}, {180, 353}, {182, 354},
			{188, 353}, {194, 0}}},
	{13,
		TABLE("\x80\x00\xe4\x08\x09\xd8\x08\x09\xd8\x08\x09\xf3\x05\x02\x09\x0b\x80\x41"
		      "\xf6\x06\x00\x0b\x0c\xf0\x02\x03\x09\x10\xdc\x10\x11\x90\x21\x93\x04\x88"
		      "\x41\xe4\x0c\x0d\x8c\x43\xf7\x09\x00\x0b\x0c\x88\x21\xf2\x64\x09\x00\x0a"
		      "\x0b\x8c\x41\x8c\x43\x8f\x11\xd8\x0c\x0d\xd8\x08\x09\xf1\x03\x01\x0d\x0a"
		      "\xf0\x00\x01\x05\x0b\xf8\xf4\x5f\x09\x00\x0d\x0e\x8d\x43\xfa\xf7\x5c\x09"
		      "\x00\x0a\x0b\x8c\x11\xd8\x0c\x0d\xd8\x08\x09\xf1\x03\x01\x0d\x0a\xf0\x00"
		      "\x01\x05\x0b\xfa"),
		{{2, 41}, {12, 43}, {14, 44}, {16, 45}, {26, 43}, {40, 46}, {42, 47}, {64, 48},
			{84, 50}, {102, 46}, {144, 352}, {146, 353}, {148, 354}, {154, 353},
			{156, 0}, {178, 50}, {184, 0}, {210, 352}, {212, 353}, {214, 354},
			{220, 353}, {226, 0}}},
	{14,
		TABLE("\x80\x00\xe4\x08\x09\xd8\x08\x09\xd8\x08\x09\xf3\x05\x02\x09\x0b\x80\x41"
		      "\xf7\x06\x00\x0b\x0c\xf0\x02\x03\x09\x10\xdc\x10\x11\x90\x21\x93\x04\x88"
		      "\x41\xe4\x0c\x0d\x8e\x43\xf7\x5c\x09\x00\x0a\x0b\x8a\x11\x8c\x41\x8c\x43"
		      "\x8f\x11\xd8\x0c\x0d\xd8\x08\x09\xf5\x03\x01\x0d\x0a\xf0\x00\x01\x05\x0b"
		      "\xf8\xf4\x5f\x09\x00\x0d\x0e\x8d\x43\xfa\xf7\x5c\x09\x00\x0a\x0b\x8e\x11"
		      "\xd8\x0c\x0d\xd8\x08\x09\xf5\x03\x01\x0d\x0a\xf0\x00\x01\x05\x0b\xfa"),
		{{2, 41}, {12, 43}, {14, 44}, {16, 45}, {26, 43}, {42, 46}, {44, 47}, {66, 48},
			{90, 50}, {148, 352}, {150, 353}, {152, 354}, {166, 353}, {168, 0},
			{190, 50}, {196, 0}, {226, 352}, {228, 353}, {230, 354}, {244, 353},
			{250, 0}}},
	{15,
		TABLE("\x81\x00\xe4\x08\x09\xd8\x08\x09\xd8\x08\x09\xf3\x05\x02\x09\x0b\x80\x41"
		      "\xf7\x06\x00\x0b\x0c\xf0\x02\x03\x09\x10\xdc\x10\x11\x90\x21\x93\x04\x88"
		      "\x41\xe4\x0c\x0d\x8e\x43\xf7\x5c\x09\x00\x0a\x0b\x8a\x11\x8c\x41\x8c\x43"
		      "\x8f\x11\xd8\x0c\x0d\xd8\x08\x09\xf5\x03\x01\x0d\x0a\xf0\x00\x01\x05\x0b"
		      "\xf8\xf4\x5f\x09\x00\x0d\x0e\x8d\x43\xfa\xf7\x5c\x09\x00\x0a\x0b\x8e\x11"
		      "\xd8\x0c\x0d\xd8\x08\x09\xf5\x03\x01\x0d\x0a\xf0\x00\x01\x05\x0b\xfa"),
		{{4, 41}, {14, 43}, {16, 44}, {18, 45}, {28, 43}, {44, 46}, {46, 47}, {68, 48},
			{92, 50}, {150, 352}, {152, 353}, {154, 354}, {168, 353}, {170, 0},
			{192, 50}, {198, 0}, {228, 352}, {230, 353}, {232, 354}, {246, 353},
			{252, 0}}},
#undef TABLE
};

static int line_by(
	unsigned minor, uint32_t first_line, const void *table, size_t size, uint32_t lasti)
{
	return python_line(&(struct python_lines){minor, first_line, table, size, false}, lasti);
}

static int line(const struct recorded *r, uint32_t lasti)
{
	return line_by(r->minor, 41, r->table, r->size, lasti);
}

static void test_recorded_tables(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(recorded); i++) {
		const struct recorded *r = &recorded[i];
		uint32_t at = 0;

		assert_int_equal(r->minor, PYTHON_MINOR_MIN + i);
		for (const struct run *run = r->runs; run->end; run++)
			for (; at < run->end; at++)
				assert_int_equal(line(r, at), run->line);
		assert_true(at > 90);
		/* behind the table: the last line in 3.9, which cannot know; else none */
		assert_int_equal(line(r, at + 1000), r->minor == 9 ? 353 : 0);
	}
}

/* Of a table that is cut anywhere, a line is the right one or not known; the more is there, the more
 * is known. */
static void test_cut_tables(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(recorded); i++) {
		const struct recorded *r = &recorded[i];
		size_t known = 0, before;

		for (size_t size = 0; size < r->size; size++) {
			struct python_lines l = {
				r->minor, 41, (const uint8_t *)r->table, size, true};

			before = known;
			known = 0;
			for (uint32_t at = 0; at < 90; at += 2) {
				int got = python_line(&l, at);

				assert_true(got == -ENODATA || got == line(r, at));
				known += got != -ENODATA;
			}
			assert_true(size == 0 ? known == 0 : known >= before);
		}
		assert_true(known > 40);
	}
}

/* ---- made up ---- */

static int line_of(unsigned minor, const char *table, size_t size, uint32_t lasti)
{
	return line_by(minor, 100, table, size, lasti);
}

static void test_empty_tables(void **state)
{
	for (unsigned minor = PYTHON_MINOR_MIN; minor <= PYTHON_MINOR_MAX; minor++)
		assert_int_equal(line_by(minor, 7, NULL, 0, 4), minor == 9 ? 7 : 0);
}

static void test_no_line_in_3_10(void **state)
{
	assert_int_equal(line_of(10, "\x04\x01\x04\x80\x04\x01", 6, 0), 101);
	assert_int_equal(line_of(10, "\x04\x01\x04\x80\x04\x01", 6, 4), 0);
	assert_int_equal(line_of(10, "\x04\x01\x04\x80\x04\x01", 6, 8), 102);
}

/* Every code of 3.11: short forms, one-line forms, no column, long, none. */
static void test_codes_of_3_11(void **state)
{
	static const char table[] = "\x80\x00"             /* code 0 */
				    "\xcd\x05"             /* code 9, 6 units */
				    "\xd0\x01\x02"         /* 10: the same line */
				    "\xd8\x01\x02"         /* 11: the next */
				    "\xe0\x01\x02"         /* 12: the one after it */
				    "\xe8\x42\x01"         /* 13: +33, two bytes */
				    "\xe8\x07"             /* 13: -3 */
				    "\xf0\x04\x00\x01\x01" /* 14: +2, end line, columns */
				    "\xf8"                 /* 15 */
				    "\xe8\x00";            /* 13: +0 */
	static const uint32_t lines[] = {
		100, 100, 100, 100, 100, 100, 100, 100, 101, 103, 136, 133, 135, 0, 135};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_int_equal(line_of(11, table, sizeof(table) - 1, (uint32_t)i * 2), lines[i]);
		assert_int_equal(
			line_of(11, table, sizeof(table) - 1, (uint32_t)i * 2 + 1), lines[i]);
	}
	assert_int_equal(line_of(11, table, sizeof(table) - 1, (uint32_t)ARRAY_SIZE(lines) * 2), 0);
}

static void test_lines_that_cannot_be(void **state)
{
	assert_int_equal(line_of(9, "\x00\x81", 2, 0), 0);      /* 100 - 127 */
	assert_int_equal(line_of(10, "\x02\x81", 2, 0), 0);     /* 100 - 127 */
	assert_int_equal(line_of(11, "\xe8\x59\x03", 3, 0), 0); /* 100 - 108 */
	assert_int_equal(line_by(11, INT32_MAX, "\xd8\x00\x00", 3, 0), 0);
	/* a number without an end */
	assert_int_equal(line_of(11, "\xe8\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f", 11, 0), 0);
}

/* Cut and random tables: exact copies on the heap, so that a read behind them is seen. */
static void test_tables_that_are_none(void **state)
{
	uint64_t random = 88172645463325252;
	unsigned lines = 0;

	for (size_t i = 0; i < ARRAY_SIZE(recorded); i++)
		for (size_t size = 0; size <= recorded[i].size; size++) {
			_cleanup_free_ uint8_t *cut = malloc(size);

			memcpy(cut, recorded[i].table, size);
			for (uint32_t at = 0; at < 300; at += 2)
				line_by(recorded[i].minor, 41, cut, size, at);
		}
	for (unsigned round = 0; round < 20000; round++) {
		_cleanup_free_ uint8_t *table = malloc(37);

		for (int i = 0; i < 37; i++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			table[i] = (uint8_t)(random >> 56);
		}
		lines += line_by(9 + round % 7, 1000, table, 37, random % 256) != 0;
	}
	assert_true(lines > 1000);
}

/* ---- real ---- */

/* Prints each function of some files of the library: its first line and table, then its ranges as
 * the interpreter gives them. */
static const char dump[] =
	"import sys, os, dis\n"
	"def ranges(c):\n"
	"  if sys.version_info[1] > 9: return c.co_lines()\n"
	"  s = list(dis.findlinestarts(c)) + [(len(c.co_code), 0)]\n"
	"  return [(s[i][0], s[i + 1][0], s[i][1]) for i in range(len(s) - 1)]\n"
	"def show(c):\n"
	"  t = c.co_linetable if sys.version_info[1] > 9 else c.co_lnotab\n"
	"  print('F', c.co_firstlineno, len(t), t.hex())\n"
	"  for s, e, l in ranges(c): print('R', s, e, l or 0)\n"
	"  for k in c.co_consts:\n"
	"    if hasattr(k, 'co_code'): show(k)\n"
	"d = os.path.dirname(os.__file__)\n"
	"for n in sorted(n for n in os.listdir(d) if n.endswith('.py'))[:16]:\n"
	"  with open(os.path.join(d, n), 'rb') as f: show(compile(f.read(), n, 'exec'))\n"
	"print('E')\n";

struct dumped {
	unsigned first_line;
	size_t size;
	uint8_t *table;
	size_t functions, instructions, without;
};

static void function_take(struct dumped *d, FILE *f)
{
	d->table = realloc(d->table, d->size + 1);
	for (size_t i = 0; i < d->size; i++) {
		unsigned byte;

		assert_int_equal(fscanf(f, "%2x", &byte), 1);
		d->table[i] = (uint8_t)byte;
	}
	d->functions++;
}

static void range_compare(
	struct dumped *d, unsigned minor, unsigned start, unsigned end, unsigned expected)
{
	for (unsigned at = start; at < end; at += 2) {
		assert_int_equal(line_by(minor, d->first_line, d->table, d->size, at), expected);
		d->instructions++;
		d->without += expected == 0;
	}
}

static void test_the_librarys_functions(void **state)
{
	interpreters_need(&all);
	for (size_t i = 0; i < all.count; i++) {
		char *argv[] = {all.at[i].path, "-c", (char *)dump, NULL};
		unsigned minor = all.at[i].minor, start, end, expected;
		struct dumped d = {0};
		struct python_process p;
		char kind = 0;
		FILE *f;

		process_start(&p, argv);
		f = fdopen(dup(p.out), "r");
		while (fscanf(f, " %c", &kind) == 1 && kind != 'E') {
			if (kind == 'F') {
				assert_int_equal(fscanf(f, "%u %zu", &d.first_line, &d.size), 2);
				function_take(&d, f);
			} else {
				assert_int_equal(kind, 'R');
				assert_int_equal(fscanf(f, "%u %u %u", &start, &end, &expected), 3);
				range_compare(&d, minor, start, end, expected);
			}
		}
		assert_int_equal(kind, 'E');
		assert_true(d.functions > 300 && d.instructions > 20000);
		assert_true(minor < 11 || d.without > 0);
		printf("# 3.%u: %zu functions, %zu instructions, %zu of them without a line: %s\n",
			minor, d.functions, d.instructions, d.without, all.at[i].path);
		fclose(f);
		free(d.table);
		process_stop(&p);
	}
}

/* A number that does not end goes no further than its range: what follows may be cut off, or not. */
static void a_number_ends_with_its_range(void **state)
{
	static const uint8_t table[] = {0xe8, 0x7f, 0xc1, 0x01};
	struct python_lines l = {
		.minor = 11, .first_line = 100, .table = table, .size = sizeof(table)};

	assert_int_equal(python_line(&l, 0), 100 - 31);
	l.is_cut = true;
	l.size = 3;
	assert_int_equal(python_line(&l, 0), 100 - 31);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded_tables),
		cmocka_unit_test(test_cut_tables),
		cmocka_unit_test(test_empty_tables),
		cmocka_unit_test(test_no_line_in_3_10),
		cmocka_unit_test(test_codes_of_3_11),
		cmocka_unit_test(test_lines_that_cannot_be),
		cmocka_unit_test(test_tables_that_are_none),
		cmocka_unit_test(test_the_librarys_functions),
		cmocka_unit_test(a_number_ends_with_its_range),
	};

	interpreters_find(&all);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
