/* SPDX-License-Identifier: Apache-2.0 */
/* test_debug_offsets.c - what CPython 3.13 and later publish of themselves: of real interpreters
 * against their headers, and tables that must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "record/python/python_private.h"
#include "python_headers.h"

static struct interpreters all;

/* ---- real ---- */

static const char waits[] = "import os; os.write(1, b'waits\\n'); os.read(0, 1)";

static void test_the_words_are_those_of_the_headers(void **state)
{
	unsigned compared = 0;

	for (size_t i = 0; i < all.count; i++) {
		struct header_offsets h;
		struct python_process p;
		struct stack_python l;

		if (all.at[i].minor < 13 || all.at[i].minor > PYTHON_MINOR_MAX ||
			!headers_read(&all.at[i], &h))
			continue;
		python_start(&p, &all.at[i], waits);
		assert_int_equal(python_debug_offsets(&p.memory, p.symbols.runtime, &l, NULL), 1);
		process_stop(&p);
		h.p.runtime = l.runtime;
		h.p.flags = PYTHON_LASTI_POINTER | PYTHON_ENTRY_IS_OWNER |
			    (h.p.minor >= 14 ? PYTHON_TAGGED : 0);
		h.p.pthread_tid = h.p.cframe_frame = PYTHON_NONE;
		assert_memory_equal(&h.p, &l, sizeof(l));
		assert_int_equal(h.compact_bit, l.text_kind_shift + 3);
		assert_int_equal(h.ascii_bit, l.text_kind_shift + 4);
		printf("# 3.%u: %zu fields of the headers of %s\n", l.minor, h.count,
			all.at[i].path);
		compared++;
	}
	if (!compared) {
		printf("# skip: no CPython 3.13 or later with headers (tools/pythons)\n");
		skip();
	}
}

static void test_older_ones_publish_nothing(void **state)
{
	unsigned seen = 0;

	for (size_t i = 0; i < all.count; i++) {
		struct stack_python l = {.minor = 77};
		struct python_process p;

		if (all.at[i].minor > 12)
			continue;
		python_start(&p, &all.at[i], waits);
		assert_int_equal(python_debug_offsets(&p.memory, p.symbols.runtime, &l, NULL), 0);
		assert_int_equal(l.minor, 77);
		process_stop(&p);
		seen++;
	}
	if (!seen) {
		printf("# skip: no CPython 3.9 to 3.12 here\n");
		skip();
	}
}

/* ---- made up ---- */

#define RUNTIME 0x10000

static uint64_t words[128];
static size_t words_readable;

static int words_read(void *arg, uint64_t address, void *out, size_t len)
{
	if (address < RUNTIME || address - RUNTIME + len > words_readable * 8)
		return -EFAULT;
	memcpy(out, (char *)words + (address - RUNTIME), len);
	return 0;
}

static const struct python_memory memory = {words_read, NULL};

/* every offset is 8 of 64 bytes, every size 64: word n of a structure cannot be told from another,
 * but a bad one can */
static void words_init(uint64_t version)
{
	memcpy(words, "xdebugpy", 8);
	words[1] = version;
	words[2] = 0;
	for (size_t i = 3; i < ARRAY_SIZE(words); i++)
		words[i] = 8;
	for (unsigned at = 0; at < 3; at++) {
		static const uint8_t sizes[3][7] = {{3, 6, 19, 28, 34, 64, 67},
			{3, 6, 22, 31, 39, 74, 77}, {3, 6, 22, 39, 47, 86, 89}};

		if ((version >> 16 & 0xff) == 13 + at)
			for (size_t i = 0; i < ARRAY_SIZE(sizes[at]); i++)
				words[sizes[at][i]] = 64;
	}
	words_readable = ARRAY_SIZE(words);
}

static int read_words(struct stack_python *l, struct errinfo *e)
{
	return python_debug_offsets(&memory, RUNTIME, l, e);
}

static void refused(int err, const char *text)
{
	struct stack_python l = {.minor = 77};
	struct errinfo e = {0};

	assert_int_equal(read_words(&l, &e), err);
	assert_non_null(strstr(e.text, text));
	assert_int_equal(l.minor, 77);
	assert_int_equal(read_words(&l, NULL), err);
}

static void test_made_up_words_are_taken(void **state)
{
	for (uint32_t minor = 13; minor <= PYTHON_MINOR_MAX; minor++) {
		struct stack_python l;

		words_init(0x030000f0 | minor << 16);
		assert_int_equal(read_words(&l, NULL), 1);
		assert_int_equal(l.minor, minor);
		assert_int_equal(l.runtime, RUNTIME);
		assert_int_equal(l.frame_lasti, 8);
		assert_int_equal(l.text_compact, 56);
		assert_int_equal(!!(l.flags & PYTHON_TAGGED), minor >= 14);
	}
}

static void test_without_a_cookie_there_is_nothing(void **state)
{
	struct stack_python l = {.minor = 77};

	words_init(0x030d00f0);
	words[0] ^= 1;
	assert_int_equal(read_words(&l, NULL), 0);
	assert_int_equal(l.minor, 77);
}

static void test_builds_that_are_not_known(void **state)
{
	words_init(0x030d00f0);
	words[2] = 1;
	refused(-EOPNOTSUPP, "free-threaded builds of CPython 3.13");
	words_init(0x031000f0);
	refused(-EOPNOTSUPP, "CPython 3.16 is not supported");
	words_init(0x030e00b2);
	refused(-EOPNOTSUPP, "pre-releases of CPython 3.14");
	words_init(0x030e00c1); /* a release candidate is */
	assert_int_equal(read_words(&(struct stack_python){0}, NULL), 1);
	words_init(0x030c00f0); /* it published nothing */
	refused(-EOPNOTSUPP, "is invalid");
	words_init(0x1030d00f0);
	refused(-EOPNOTSUPP, "is invalid");
}

static void test_words_that_make_no_sense(void **state)
{
	words_init(0x030d05f0);
	words[65] = 64; /* the length of bytes lies behind them */
	refused(-EOPNOTSUPP, "word 65");
	words_init(0x030d05f0);
	words[5] = UINT64_MAX;
	refused(-EOPNOTSUPP, "word 5");
	words_init(0x030d05f0);
	words[6] = UINT64_C(1) << 40; /* an interpreter of a terabyte */
	refused(-EOPNOTSUPP, "word 8");
	words_init(0x030d05f0);
	words[67] = 0;
	refused(-EOPNOTSUPP, "word 68");
}

static void test_memory_that_ends(void **state)
{
	words_init(0x030d05f0);
	words_readable = 2;
	refused(-EFAULT, "cannot read its memory");
	words_readable = 40;
	refused(-EFAULT, "cannot read its memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_words_are_those_of_the_headers),
		cmocka_unit_test(test_older_ones_publish_nothing),
		cmocka_unit_test(test_made_up_words_are_taken),
		cmocka_unit_test(test_without_a_cookie_there_is_nothing),
		cmocka_unit_test(test_builds_that_are_not_known),
		cmocka_unit_test(test_words_that_make_no_sense),
		cmocka_unit_test(test_memory_that_ends),
	};

	interpreters_find(&all);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
