/* SPDX-License-Identifier: Apache-2.0 */
/* test_space.c - which mappings the kernel half is given, and that it finds every address in them:
 * maps as x86-64 writes them, with its page in the kernel's half of the addresses, and the search
 * of the kernel half itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* It asks clang to unroll. */
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#include "record/probe/stack/search.bpf.h"
#include "record/stack/space.h"
#include "base/macros.h"

#define FIRST 0x7f0000000000ULL /* of the libraries */
#define APART 0x200000ULL
#define BYTES 0x1000ULL
#define VSYSCALL                                                                                   \
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]"

static struct stack_mappings set;
static struct space_mapping mappings[STACK_MAPPINGS_MAX + 1];

static void take(struct stack_space *s, const char *line)
{
	struct maps_entry e;

	assert_true(maps_parse(line, strlen(line), &e));
	if (space_is_code(&e))
		mappings[s->count++] = (struct space_mapping){.start = e.start, .end = e.end};
}

/* A process with @count executable mappings beside [vsyscall], as the kernel half gets it. */
static void given(size_t count)
{
	struct stack_space s = {.mappings = mappings};
	char line[128];

	for (size_t i = 0; i < count; i++) {
		uint64_t at = FIRST + i * APART;

		snprintf(line, sizeof(line), "%jx-%jx r-xp 00001000 08:01 %zu /lib/%zu.so",
			(uintmax_t)at, (uintmax_t)(at + BYTES), i + 1, i);
		take(&s, line);
		snprintf(line, sizeof(line), "%jx-%jx rw-p 00002000 08:01 %zu /lib/%zu.so",
			(uintmax_t)(at + BYTES), (uintmax_t)(at + 2 * BYTES), i + 1, i);
		take(&s, line);
	}
	take(&s, VSYSCALL);
	assert_int_equal(s.count, count);
	space_mappings(&s, &set);
}

static void test_every_address_is_found(void **state)
{
	static const size_t counts[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100, 512,
		STACK_MAPPINGS_MAX - 1, STACK_MAPPINGS_MAX};

	for (size_t n = 0; n < ARRAY_SIZE(counts); n++) {
		given(counts[n]);
		assert_int_equal(set.count, counts[n]);
		for (size_t i = 0; i < counts[n]; i++) {
			assert_int_equal(mapping_search(&set, FIRST + i * APART), i);
			assert_int_equal(mapping_search(&set, FIRST + i * APART + BYTES - 1), i);
		}
	}
}

/* Whatever a set holds: a start beyond all others ends no search before it. */
static void test_starts_in_the_upper_half(void **state)
{
	given(8);
	set.start[8] = 0xffffffffff600000ULL;
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(mapping_search(&set, FIRST + i * APART + 1), i);
	memset(set.start + 9, 0xff, sizeof(set.start) - 9 * sizeof(set.start[0]));
	assert_int_equal(mapping_search(&set, 0xffffffffff600010ULL), 8);
	assert_int_equal(mapping_search(&set, 0), 0);
}

static void test_borrow_is_comparison(void **state)
{
	static const uint64_t values[] = {0, 1, 0x7fffffffffffffff, 0x8000000000000000,
		0x8000000000000001, 0xffffffffff600000, UINT64_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		for (size_t j = 0; j < ARRAY_SIZE(values); j++)
			assert_int_equal(step_if_reached(values[i], values[j], 64),
				values[i] <= values[j] ? 64 : 0);
}

static void test_rows_of_a_chunk(void **state)
{
	static struct unwind_chunk c;

	memset(c.address, 0xff, sizeof(c.address)); /* UNWIND_END */
	for (uint32_t i = 0; i < 9; i++)
		c.address[i] = 16 * i;
	for (uint32_t at = 0; at < 16 * 9; at++)
		assert_int_equal(chunk_search(&c, at), at / 16);
}

/* Met while its loader runs, only the front is mapped; the library that has the interpreter comes later. */
static void test_the_library_behind_a_front(void **state)
{
	static struct stack_file front, library, later;
	struct stack_space s = {.pid = (uint32_t)getpid()};

	space_take_python(&s, &front, FIRST);
	assert_ptr_equal(s.python_file, &front);
	assert_int_equal(s.python_state, SPACE_PYTHON_WAITS);
	space_take_python(&s, &library, FIRST + APART);
	assert_ptr_equal(s.python_file, &library);
	assert_int_equal(s.python_base, FIRST + APART);
	s.python_state = SPACE_PYTHON_REFUSED; /* the same again is not asked again */
	space_take_python(&s, &library, FIRST);
	assert_int_equal(s.python_state, SPACE_PYTHON_REFUSED);
	s.python_state = SPACE_PYTHON_READY;
	space_take_python(&s, &later, FIRST);
	assert_ptr_equal(s.python_file, &library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_address_is_found),
		cmocka_unit_test(test_starts_in_the_upper_half),
		cmocka_unit_test(test_borrow_is_comparison),
		cmocka_unit_test(test_rows_of_a_chunk),
		cmocka_unit_test(test_the_library_behind_a_front),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
