/* SPDX-License-Identifier: Apache-2.0 */
/* test_op_kind.c - the kinds of operations, and that their SQL says the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "wire/names.h"
#include "wire/op_kind.h"

/* "source IN (1, 4)" of the sources that the predicate accepts. */
static const char *sql_of(_Bool (*is)(unsigned source), char out[64])
{
	size_t len = (size_t)snprintf(out, 64, "source IN (");
	const char *comma = "";

	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++) {
		if (!is(s))
			continue;
		len += (size_t)snprintf(out + len, 64 - len, "%s%u", comma, s);
		comma = ", ";
	}
	snprintf(out + len, 64 - len, ")");
	return out;
}

static _Bool is_gpu(unsigned source)
{
	return op_kind_is_gpu(source);
}

static _Bool is_cuda(unsigned source)
{
	return op_kind_is_cuda(source);
}

static void test_sql_has_the_same_sources(void **state)
{
	char text[64];

	assert_string_equal(sql_of(is_gpu, text), OP_KIND_GPU_SQL);
	assert_string_equal(sql_of(is_cuda, text), OP_KIND_CUDA_SQL);
}

static void test_waits_are_the_synchronisations(void **state)
{
	size_t waits = 0;

	for (const struct wire_op_row *o = wire_ops; o->name; o++) {
		bool is_sync = op_kind_is_cuda(o->source) && strstr(o->name, "Sync") != NULL &&
			       !strstr(o->name, "Async");

		assert_int_equal(op_kind_is_gpu_wait(o->source, o->op), is_sync);
		assert_true(!is_sync || op_kind_marks(o->source, o->op));
		waits += is_sync;
	}
	assert_int_equal(waits, 6);
	assert_false(op_kind_is_gpu_wait(SOURCE_CUDA, CUDA_MEMCPY));
	assert_false(op_kind_marks(SOURCE_CUDA, CUDA_LAUNCH));
	assert_false(op_kind_marks(SOURCE_CUDA, WIRE_OP_MAX));
}

/* By the name of the call: the independent word on what it does. */
static enum wire_ledger_line line_by_name(const struct wire_op_row *o)
{
	if (o->source == SOURCE_NCCL)
		return LEDGER_COLLECTIVE;
	if (o->source == SOURCE_GRAPH || strstr(o->name, "Graph"))
		return LEDGER_GRAPH;
	if (strstr(o->name, "HostFunc") || strstr(o->name, "BatchMemOp"))
		return LEDGER_CALL;
	if (strstr(o->name, "Launch"))
		return LEDGER_LAUNCH;
	if (strstr(o->name, "emcpy") || strstr(o->name, "Prefetch"))
		return LEDGER_COPY;
	if (strstr(o->name, "StreamWait") || strstr(o->name, "emset") || strstr(o->name, "Record"))
		return LEDGER_CALL;
	return strstr(o->name, "Sync") ? LEDGER_GPU_WAIT : LEDGER_ALLOC;
}

static void test_lines_of_calls(void **state)
{
	size_t graphs = 0, calls = 0;

	for (const struct wire_op_row *o = wire_ops; o->name; o++) {
		enum wire_ledger_line line = op_kind_line(o->source, o->op);

		if (!op_kind_is_gpu(o->source))
			continue;
		if (line != line_by_name(o))
			fail_msg("%s is on line %d", o->name, line);
		graphs += op_kind_is_graph_launch(o->source, o->op);
		calls++;
	}
	assert_int_equal(graphs, 2);
	assert_true(calls > 80);
	assert_int_equal(op_kind_line(SOURCE_CUDA, CUDA_MEMCPY), LEDGER_COPY);
	assert_int_equal(op_kind_line(SOURCE_CUDA, CUDA_MEMCPY_ASYNC), LEDGER_COPY);
	assert_int_equal(op_kind_line(SOURCE_CUDA, CUDA_FREE_ASYNC), LEDGER_ALLOC);
	assert_int_equal(op_kind_line(SOURCE_CUDA, CUDA_MEMSET_ASYNC), LEDGER_CALL);
	assert_int_equal(op_kind_line(SOURCE_DRIVER, DRIVER_MEM_MAP), LEDGER_ALLOC);
	assert_true(op_kind_is_workless(SOURCE_CUDA, CUDA_MALLOC));
	assert_true(op_kind_is_workless(SOURCE_CUDA, CUDA_EVENT_RECORD));
	assert_true(op_kind_is_workless(SOURCE_DRIVER, DRIVER_MEM_MAP));
	assert_false(op_kind_is_workless(SOURCE_CUDA, CUDA_STREAM_SYNC));
	assert_false(op_kind_is_workless(SOURCE_CUDA, CUDA_MEMSET));
	assert_false(op_kind_is_workless(SOURCE_DRIVER, DRIVER_LAUNCH));
	assert_false(op_kind_is_workless(SOURCE_NCCL, NCCL_COMM_DESTROY));
	assert_false(op_kind_is_workless(SOURCE_CUDA, WIRE_OP_MAX));
	assert_int_equal(op_kind_line(SOURCE_CUDA, WIRE_OP_MAX), LEDGER_CALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sql_has_the_same_sources),
		cmocka_unit_test(test_waits_are_the_synchronisations),
		cmocka_unit_test(test_lines_of_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
