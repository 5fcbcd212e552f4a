/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/stack/space.h"
#include "base/macros.h"

/* The kernel half's search, written plainly. */
static uint32_t search(const struct unwind_chunk *c, uint32_t sought)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < UNWIND_CHUNK_ROWS; i++)
		if (c->address[i] <= sought)
			at = i;
	return at;
}

static int rule_at(const struct unwind_chunk *chunks, uint32_t indexes, uint32_t sought)
{
	uint32_t at = 1 + search(&chunks[0], sought);

	if (indexes)
		at = 1 + indexes + (at - 1) * UNWIND_CHUNK_ROWS + search(&chunks[at], sought);
	return chunks[at].rule[search(&chunks[at], sought)];
}

/* @count rows, each four bytes after the other from 16; rule i % 7. */
static void rows_are_found(uint32_t count, uint32_t step, uint32_t want_indexes)
{
	_cleanup_free_ uint32_t *address = calloc(count, sizeof(*address));
	_cleanup_free_ uint16_t *rule = calloc(count, sizeof(*rule));
	_cleanup_free_ struct unwind_chunk *chunks = NULL;
	const uint16_t shared[7] = {0, 11, 12, 13, 14, 15, 16};
	struct symbol_unwind u = {
		.count = count, .rule_count = 7, .address = address, .rule = rule};
	uint32_t indexes;

	for (uint32_t i = 0; i < count; i++) {
		address[i] = 16 + 4 * i;
		rule[i] = (uint16_t)(i % 7);
	}
	assert_true(stack_chunks(&u, shared, &chunks, &indexes) > 0);
	assert_int_equal(indexes, want_indexes);
	for (uint32_t i = 0; i < count; i += step) {
		assert_int_equal(rule_at(chunks, indexes, 16 + 4 * i), shared[i % 7]);
		assert_int_equal(rule_at(chunks, indexes, 16 + 4 * i + 3), shared[i % 7]);
	}
	assert_int_equal(rule_at(chunks, indexes, 0xfffffff0), shared[(count - 1) % 7]);
}

static void small_tables_have_two_levels(void **state)
{
	rows_are_found(1, 1, 0);
	rows_are_found(512, 1, 0);
	rows_are_found(513, 1, 0);
	rows_are_found(5003, 3, 0);
}

static void large_tables_have_three(void **state)
{
	rows_are_found(512 * 512, 997, 0);
	rows_are_found(512 * 512 + 1, 997, 2);
	rows_are_found(1000003, 9973, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_tables_have_two_levels),
		cmocka_unit_test(large_tables_have_three),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
