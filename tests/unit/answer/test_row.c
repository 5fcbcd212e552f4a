/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <string.h>

#include "answer/row.h"
#include "wire/names.h"

#define EXTRA 1

struct sample {
	uint8_t source;
	uint16_t op;
	uint32_t pid;
	int32_t rank;
	int64_t known;
	uint64_t calls, ns, empty;
	double share;
	bool nested;
	const char *text, *none;
	char comm[16];
	wall_time when;
};

static const struct row_field fields[] = {
	ROW_NAMED(struct sample, "source", source, wire_source_name),
	ROW_OP_NAMED(struct sample, "op", 0, "OP", -12),
	ROW(struct sample, "pid", pid, 0, 0, "PID", 5),
	ROW(struct sample, "rank", rank, 0, ROW_KNOWN),
	ROW(struct sample, "known", known, 0, ROW_NULLS),
	ROW(struct sample, "calls", calls, ROW_COUNT, 0, "CALLS", 8),
	ROW(struct sample, "us", ns, ROW_US, EXTRA, "TIME", 6),
	ROW(struct sample, "empty", empty, 0, ROW_SET),
	ROW(struct sample, "percent", share, ROW_PERCENT, 0, "SHARE", 6),
	ROW(struct sample, "nested", nested),
	ROW(struct sample, "text", text),
	ROW(struct sample, "none", none, 0, ROW_SET),
	ROW(struct sample, "comm", comm, 0, 0, "NAME", -4),
	ROW(struct sample, "when", when),
	ROW_END,
};

static const struct sample row = {.source = SOURCE_CUDA,
	.op = CUDA_MALLOC,
	.pid = 7,
	.rank = 0,
	.known = -1,
	.calls = 12345,
	.ns = 1500,
	.share = 0.25,
	.nested = true,
	.text = "a\"",
	.comm = "x\x1b",
	.when.ns = 9};

static void as_json(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);

	row_json_list(&w, NULL, fields, &row, sizeof(row), 1, 0);
	assert_int_equal(json_finish(&w), 0);
	assert_string_equal(buf_str(&b),
		"[{\"source\":\"cuda\",\"op\":\"cudaMalloc\",\"pid\":7,\"rank\":0,\"known\":null,"
		"\"calls\":12345,\"us\":1.5,\"percent\":25,\"nested\":true,\"text\":\"a\\\"\","
		"\"comm\":\"x\\u001b\",\"when\":9}]\n");
}

static void what_is_left_out(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);
	struct sample unknown = {.rank = -1, .empty = 3, .none = "n", .text = ""};

	json_begin_object(&w);
	row_json(&w, fields, &unknown, EXTRA);
	json_end_object(&w);
	assert_int_equal(json_finish(&w), 0);
	assert_null(strstr(buf_str(&b), "\"rank\""));
	assert_null(strstr(buf_str(&b), "\"us\""));
	assert_non_null(strstr(buf_str(&b), "\"empty\":3,"));
	assert_non_null(strstr(buf_str(&b), "\"none\":\"n\""));
	assert_non_null(strstr(buf_str(&b), "\"text\":\"\""));
}

static void as_text(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	row_titles(&b, fields);
	buf_putc(&b, '\n');
	row_text(&b, fields, &row, 0, INT_MAX);
	buf_putc(&b, '\n');
	row_text(&b, fields, &row, EXTRA, 4);
	assert_string_equal(buf_str(&b), " OP             PID    CALLS   TIME  SHARE NAME\n"
					 " cudaMalloc       7   12,345  1.5µs  25.0% x\\x1b\n"
					 " cudaMalloc       7   12,345      -");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_json),
		cmocka_unit_test(what_is_left_out),
		cmocka_unit_test(as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
