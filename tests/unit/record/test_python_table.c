/* SPDX-License-Identifier: Apache-2.0 */
/* test_python_table.c - the table of layouts against the headers of the interpreters at hand; names
 * and versions of interpreters' files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "record/python/python_private.h"
#include "python_headers.h"

static struct interpreters all;

/* header_row - the layout by the headers, with what headers do not say taken from the table. */
static struct stack_python header_row(
	const struct header_offsets *h, const struct stack_python *row)
{
	struct stack_python p = h->p;

	p.runtime = row->runtime;
	p.flags = row->flags;
	p.pthread_tid = row->pthread_tid;
	if (p.minor < 11)
		p.thread_native = p.code_bytes = p.frame_entry = p.cframe_frame = PYTHON_NONE;
	return p;
}

static void test_rows_are_those_of_the_headers(void **state)
{
	unsigned compared = 0;

	for (size_t i = 0; i < all.count; i++) {
		const struct stack_python *row = python_table(all.at[i].minor);
		struct header_offsets h;
		struct stack_python p;

		if (!row || !headers_read(&all.at[i], &h))
			continue;
		p = header_row(&h, row);
		assert_true(h.count >= 23);
		assert_memory_equal(&p, row, sizeof(p));
		assert_int_equal(h.compact_bit, p.text_kind_shift + 3);
		assert_int_equal(h.ascii_bit, p.text_kind_shift + 4);
		printf("# 3.%u: %zu fields of the headers of %s\n", row->minor, h.count,
			all.at[i].path);
		compared++;
		p.code_lines++; /* a difference is seen */
		assert_memory_not_equal(&p, row, sizeof(p));
	}
	if (!compared) {
		printf("# skip: no headers of CPython 3.9 to 3.12\n");
		skip();
	}
}

static void test_rows_there_are(void **state)
{
	for (unsigned minor = 0; minor < 300; minor++) {
		const struct stack_python *row = python_table(minor);

		assert_int_equal(row != NULL, minor >= PYTHON_MINOR_MIN && minor <= 12);
		assert_true(!row || (row->minor == minor && row->runtime == 0));
	}
}

static void test_files(void **state)
{
	static const char *const yes[] = {"python", "python3", "python3.9", "python3.11",
		"python3.13t", "libpython3.11.so.1.0", "libpython3.10.so", "libpython3.13t.so.1.0",
		"libpython3.so", "libpython3-419a3a08.13.so.1.0"};
	static const char *const no[] = {"libpython3-.13.so.1.0", "libpython3-x.13.so.1.0",
		"python3-419a3a08.13", "", "python2.7", "python2", "python3-config",
		"python3.11-config", "libpython2.7.so.1.0", "libpython3.11.a", "libpython3.11",
		"libboost_python311.so.1.74.0", "python3.", "python3.11.so", "python311",
		"libpython3.11.so.", "libpython3.11.so.1.0.debug", "pythonw", "mypython3", "lib",
		"libpython3.11.sox", "libtorch_python.so"};

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		assert_true(python_is_file(yes[i]));
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		assert_false(python_is_file(no[i]));
}

static unsigned minor_of(const char *path, uint32_t version)
{
	const struct python_symbols s = {.path = path, .version = version};

	return python_minor(&s);
}

static void test_versions(void **state)
{
	assert_int_equal(minor_of("/usr/lib/libpython3.10.so.1.0", 0), 10);
	assert_int_equal(minor_of("/opt/python3.8/bin/python3.9", 0), 9);
	assert_int_equal(minor_of("python3.12", 0), 12);
	assert_int_equal(minor_of("/w/pytriton.libs/libpython3-419a3a08.10.so.1.0", 0), 10);
	assert_int_equal(minor_of("/usr/bin/python3.9", 0x030b07f0), 11); /* it says so itself */
	assert_int_equal(minor_of("/opt/python3.8/bin/python", 0), 0);
	assert_int_equal(minor_of("/usr/bin/python3", 0), 0);
	assert_int_equal(minor_of("python3.x", 0), 0);
	assert_int_equal(minor_of("python3.99999999999999999999", 0), 0);
	assert_int_equal(minor_of(NULL, 0), 0);
	assert_int_equal(minor_of("python3.11", 0x02070012), 11);
}

static void test_symbols(void **state)
{
	assert_string_equal(python_symbol_names[0], "_PyRuntime");
	assert_string_equal(python_symbol_names[3], "Py_Version");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_those_of_the_headers),
		cmocka_unit_test(test_rows_there_are),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_symbols),
	};

	interpreters_find(&all);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
