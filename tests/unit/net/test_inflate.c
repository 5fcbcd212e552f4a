/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "gzip_fixture.h"
#include "net/http.h"

/* feed - @in in pieces of @piece bytes; the first failure. */
static int feed(const struct buf *in, size_t piece, struct buf *out, bool *ret_complete)
{
	_cleanup_(inflate_freep) struct inflate *z = NULL;
	const char *fault = NULL;
	int r = inflate_new(&z);

	for (size_t at = 0; r == 0 && at < in->len; at += piece)
		r = inflate_feed(z, in->data + at, MIN(piece, in->len - at), out, &fault);
	if (r < 0)
		assert_non_null(fault);
	*ret_complete = inflate_is_complete(z);
	return r;
}

/* A text that deflates like telemetry: rows that differ in a few digits. */
static void put_rows(struct buf *b, size_t rows)
{
	uint32_t seed = 7;

	for (size_t i = 0; i < rows; i++) {
		seed = seed * 1103515245 + 12345;
		buf_printf(b,
			"{\"name\":\"ingero.node.health_score\",\"asDouble\":0.%u,\"node\":\"n%zu\"}\n",
			seed >> 8, i);
	}
}

static void test_pieces_of_any_size(void **state)
{
	static const size_t pieces[] = {1, 7, 4096, 1 << 20};
	_cleanup_buf_ struct buf text = BUF_INIT(4 << 20), gz = BUF_INIT(4 << 20);

	put_rows(&text, 20000);
	put_gzip(&gz, text.data, text.len, 1);
	assert_true(gz.len * 3 < text.len);
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		_cleanup_buf_ struct buf out = BUF_INIT(4 << 20);
		bool complete;

		assert_int_equal(feed(&gz, pieces[i], &out, &complete), 0);
		assert_true(complete);
		assert_int_equal(out.len, text.len);
		assert_memory_equal(out.data, text.data, text.len);
	}
}

static void test_several_members_are_one_text(void **state)
{
	_cleanup_buf_ struct buf gz = BUF_INIT(4096), out = BUF_INIT(4096);
	bool complete;

	put_gzip(&gz, "one ", 4, 1);
	put_gzip(&gz, "two", 3, 1);
	assert_int_equal(feed(&gz, 5, &out, &complete), 0);
	assert_true(complete);
	assert_string_equal(buf_str(&out), "one two");
}

static void test_what_is_not_gzip(void **state)
{
	_cleanup_buf_ struct buf gz = BUF_INIT(4096), out = BUF_INIT(4096);
	bool complete;

	buf_puts(&gz, "{\"resourceMetrics\": []}");
	assert_int_equal(feed(&gz, 100, &out, &complete), -EBADMSG);
	buf_clear(&gz);
	put_gzip(&gz, "whole", 5, 1);
	gz.data[gz.len - 6] ^= 1; /* its checksum */
	assert_int_equal(feed(&gz, 100, &out, &complete), -EBADMSG);
	buf_clear(&gz);
	put_gzip(&gz, "whole", 5, 1);
	buf_puts(&gz, "tail");
	assert_int_equal(feed(&gz, 100, &out, &complete), -EBADMSG);
}

static void test_an_end_too_early_is_known(void **state)
{
	_cleanup_buf_ struct buf gz = BUF_INIT(4096), out = BUF_INIT(4096);
	bool complete;

	put_gzip(&gz, "whole", 5, 1);
	gz.len--;
	assert_int_equal(feed(&gz, 100, &out, &complete), 0);
	assert_false(complete);
}

/* 329 KB that would become hundreds of megabytes: refused when little of it is out. */
static void test_a_bomb_is_stopped_by_its_ratio(void **state)
{
	_cleanup_buf_ struct buf gz = BUF_INIT(1 << 20), out = BUF_INIT(1 << 30);
	bool complete;

	put_bomb(&gz, (size_t)336 << 20);
	assert_true(gz.len > 300000 && gz.len < 360000);
	assert_int_equal(feed(&gz, 16384, &out, &complete), -E2BIG);
	assert_true(out.len <= 16384 * INFLATE_RATIO + INFLATE_FREE);
	buf_done(&out);
	out = BUF_INIT(1 << 30);
	assert_int_equal(feed(&gz, gz.len, &out, &complete), -E2BIG);
	assert_true(out.len <= gz.len * INFLATE_RATIO);
}

static void test_few_zeros_are_no_bomb(void **state)
{
	_cleanup_buf_ struct buf gz = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
	bool complete;

	put_bomb(&gz, INFLATE_FREE);
	assert_int_equal(feed(&gz, 16384, &out, &complete), 0);
	assert_true(complete);
	assert_int_equal(out.len, INFLATE_FREE);
}

static void test_the_ceiling_of_the_buffer(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(4 << 20), gz = BUF_INIT(4 << 20);
	bool complete;

	put_rows(&text, 5000);
	put_gzip(&gz, text.data, text.len, 1);
	for (size_t less = 0; less < 2; less++) {
		_cleanup_buf_ struct buf out = BUF_INIT(text.len - less);

		assert_int_equal(feed(&gz, 1000, &out, &complete), less ? -E2BIG : 0);
	}
}

static void test_undoing_gives_the_same_back(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(4 << 20), gz = BUF_INIT(4 << 20),
				 out = BUF_INIT(4 << 20);
	_cleanup_buf_ struct buf small = BUF_INIT(1000);
	bool complete;

	put_rows(&text, 20000);
	assert_int_equal(inflate_undo(text.data, text.len, &gz), 0);
	assert_true(gz.len * 3 < text.len);
	assert_int_equal(feed(&gz, 4096, &out, &complete), 0);
	assert_true(complete);
	assert_int_equal(out.len, text.len);
	assert_memory_equal(out.data, text.data, text.len);
	assert_int_equal(inflate_undo(text.data, text.len, &small), -ENOBUFS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces_of_any_size),
		cmocka_unit_test(test_several_members_are_one_text),
		cmocka_unit_test(test_what_is_not_gzip),
		cmocka_unit_test(test_an_end_too_early_is_known),
		cmocka_unit_test(test_a_bomb_is_stopped_by_its_ratio),
		cmocka_unit_test(test_few_zeros_are_no_bomb),
		cmocka_unit_test(test_the_ceiling_of_the_buffer),
		cmocka_unit_test(test_undoing_gives_the_same_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
