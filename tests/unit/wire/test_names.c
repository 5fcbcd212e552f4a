/* SPDX-License-Identifier: Apache-2.0 */
/* test_names.c - the tables of sources, ops and losses: ids as published, names found again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/macros.h"
#include "wire/names.h"

static void test_published_ids(void **state)
{
	static const struct {
		unsigned source, op;
		const char *name;
	} rows[] = {
		{1, 1, "cudaMalloc"},
		{1, 3, "cudaLaunchKernel"},
		{1, 5, "cudaStreamSync"},
		{1, 7, "cudaMemcpyAsync"},
		{3, 1, "sched_switch"},
		{3, 7, "process_fork"},
		{3, 10, "pod_restart"},
		{4, 1, "cuLaunchKernel"},
		{4, 5, "cuMemAlloc"},
		{5, 1, "block_read"},
		{6, 1, "tcp_retransmit"},
		{7, 2, "net_recv"},
		{8, 4, "graphLaunch"},
		{9, 3, "ncclAllReduce"},
	};
	char scratch[32];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(
			wire_op_name(rows[i].source, rows[i].op, scratch), rows[i].name);
}

static void test_source_names(void **state)
{
	assert_string_equal(wire_source_name(SOURCE_CUDA), "cuda");
	assert_string_equal(wire_source_name(SOURCE_GRAPH), "cuda_graph");
	assert_string_equal(wire_source_name(9), "nccl");
	assert_string_equal(wire_source_name(0), "unknown");
	assert_string_equal(wire_source_name(200), "unknown");
}

static void test_sources_fit_their_arrays_and_are_distinct(void **state)
{
	int count = 0;

	for (const struct wire_source_row *a = wire_sources; a->json; a++, count++) {
		assert_in_range(a->id, 1, WIRE_SOURCE_MAX - 1);
		assert_true(a->sql && a->description);
		for (const struct wire_source_row *b = a + 1; b->json; b++) {
			assert_int_not_equal(a->id, b->id);
			assert_string_not_equal(a->json, b->json);
		}
	}
	assert_int_equal(count, 10);
}

static void test_ops_fit_their_arrays_and_are_distinct(void **state)
{
	for (const struct wire_op_row *a = wire_ops; a->name; a++) {
		assert_in_range(a->op, 1, WIRE_OP_MAX - 1);
		assert_true(a->description && *a->description);
		for (const struct wire_op_row *b = a + 1; b->name; b++) {
			assert_false(a->source == b->source && a->op == b->op);
			assert_true(strcasecmp(a->name, b->name));
		}
	}
}

static void test_every_op_is_found_both_ways(void **state)
{
	int count = 0;

	for (const struct wire_op_row *r = wire_ops; r->name; r++, count++) {
		char upper[64];

		assert_ptr_equal(wire_op_find(r->source, r->op), r);
		assert_ptr_equal(wire_op_by_name(r->name), r);
		assert_true(strlen(r->name) < sizeof(upper));
		for (size_t i = 0; i <= strlen(r->name); i++)
			upper[i] = (char)toupper((unsigned char)r->name[i]);
		assert_ptr_equal(wire_op_by_name(upper), r);
	}
	assert_true(count > 70);
}

static void test_aliases(void **state)
{
	assert_ptr_equal(wire_op_by_name("cudaStreamSynchronize"),
		wire_op_find(SOURCE_CUDA, CUDA_STREAM_SYNC));
	assert_ptr_equal(
		wire_op_by_name("CUMEMALLOCV2"), wire_op_find(SOURCE_DRIVER, DRIVER_MALLOC));
	assert_non_null(wire_op_by_name("cudaDeviceSynchronize"));
}

static void test_unknown_ops(void **state)
{
	char scratch[32];

	assert_null(wire_op_find(SOURCE_CUDA, 0));
	assert_null(wire_op_find(0, 1));
	assert_null(wire_op_find(SOURCE_HOST, 8)); /* a hole in the published numbering */
	assert_null(wire_op_by_name("cudaNoSuchCall"));
	assert_null(wire_op_by_name(""));
	assert_string_equal(wire_op_name(SOURCE_CUDA, 63, scratch), "unknown(63)");
	assert_string_equal(wire_op_name(0, UINT32_MAX, scratch), "unknown(4294967295)");
}

static void test_losses_have_names(void **state)
{
	int count = 0;

	for (const struct wire_loss_row *a = wire_losses; a->name; a++, count++) {
		assert_true(*a->name && a->description && *a->description);
		for (const struct wire_loss_row *b = a + 1; b->name; b++)
			assert_string_not_equal(a->name, b->name);
	}
	assert_int_equal(count, LOSS_COUNT);
	assert_string_equal(wire_losses[LOSS_RING_FULL].name, "ring_full");
	assert_string_equal(wire_losses[LOSS_AT_STOP].name, "at_stop");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_ids),
		cmocka_unit_test(test_source_names),
		cmocka_unit_test(test_sources_fit_their_arrays_and_are_distinct),
		cmocka_unit_test(test_ops_fit_their_arrays_and_are_distinct),
		cmocka_unit_test(test_every_op_is_found_both_ways),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_unknown_ops),
		cmocka_unit_test(test_losses_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
