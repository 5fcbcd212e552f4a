/* SPDX-License-Identifier: Apache-2.0 */
/* test_blame_text.c - what `ingero-cluster blame` prints of an answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "cluster/cli/commands.h"

static int text(const char *body, struct buf *b)
{
	buf_clear(b);
	return blame_text(b, body, strlen(body), NULL);
}

static void test_culprits(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	assert_int_equal(
		text("{\"examined\":{\"clusters\":1,\"nodes\":8},\"total\":3,\"episodes\":["
		     "{\"text\":\"rank 5 is late\",\"lasts_ns\":90000000000,\"confidence\":0.95,\"fix\":\"stop rsync\"},"
		     "{\"text\":\"node \\u001b[2Jx is slow\",\"lasts_ns\":1000000000,\"confidence\":1,\"fix\":null}]}",
			&b),
		0);
	assert_string_equal(buf_str(&b),
		"rank 5 is late\n  for 1m30s, confidence 95 %\n  fix: stop rsync\n"
		"node \\x1b[2Jx is slow\n  for 1.0s, confidence 100 %\n"
		"1 more: see /api/v1/episodes.\n");
}

static void test_several_clusters_are_named(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	assert_int_equal(
		text("{\"examined\":{\"clusters\":2},\"total\":1,\"episodes\":[{\"cluster_id\":\"a\",\"text\":\"t\"}]}",
			&b),
		0);
	assert_memory_equal(buf_str(&b), "a: t\n", 5);
}

static void test_nobody(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	assert_int_equal(
		text("{\"examined\":{\"nodes\":8,\"ranks\":64,\"collectives\":1},\"episodes\":[]}",
			&b),
		0);
	assert_string_equal(
		buf_str(&b), "No straggler found. Examined: 8 nodes, 64 ranks, 1 collective.\n");
	assert_int_equal(
		text("{\"examined\":{\"nodes\":1,\"without_communicator_id\":1736},\"episodes\":[]}",
			&b),
		0);
	assert_non_null(strstr(buf_str(&b), "\n1,736 collectives without communicator id, "));
	assert_null(strstr(buf_str(&b), "No collective"));
	assert_int_equal(text("{\"examined\":{\"nodes\":1},\"episodes\":[]}", &b), 0);
	assert_non_null(strstr(buf_str(&b), "only the nodes' scores"));
	assert_int_equal(text("{\"examined\":{},\"episodes\":[]}", &b), 0);
	assert_non_null(strstr(buf_str(&b), "ingero fleet-push"));
}

/* Who was alerted and asks when it is over is told what it was. */
static void test_the_last_one(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	assert_int_equal(
		text("{\"examined\":{\"nodes\":8,\"ranks\":64,\"collectives\":9},\"episodes\":[],\"now_ns\":150000000000,"
		     "\"last\":{\"text\":\"rank 5 is late\",\"until_ns\":100000000000,\"lasts_ns\":22000000000}}",
			&b),
		0);
	assert_string_equal(buf_str(&b),
		"No straggler found. Examined: 8 nodes, 64 ranks, 9 collectives.\n"
		"The last incident ended 50s ago, after 22s: rank 5 is late\n");
	assert_int_equal(text("{\"examined\":{\"nodes\":8},\"episodes\":[],\"last\":null}", &b), 0);
	assert_null(strstr(buf_str(&b), "last incident"));
	assert_int_equal(
		text("{\"examined\":{\"nodes\":8},\"episodes\":[{\"text\":\"t\"}],\"last\":{\"text\":\"u\"}}",
			&b),
		0);
	assert_null(strstr(buf_str(&b), "last incident"));
}

/* A name that nobody uses is no all-clear, nor does it say that no agent pushes at all. */
static void test_unknown_cluster(void **state)
{
	static const char body[] = "{\"examined\":{\"clusters\":0},\"episodes\":[]}";
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	assert_int_equal(blame_text(&b, body, strlen(body), "tr\x1b[2Jain"), 0);
	assert_non_null(strstr(buf_str(&b), "for cluster tr\\x1b[2Jain: check the name"));
	assert_null(strstr(buf_str(&b), "yet"));
}

static void test_something_else(void **state)
{
	static const char *const bodies[] = {"", "x", "[]", "{}", "{\"examined\":{}}",
		"{\"examined\":[],\"episodes\":{}}", "<html>"};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		assert_int_equal(text(bodies[i], &b), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_culprits),
		cmocka_unit_test(test_several_clusters_are_named),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_the_last_one),
		cmocka_unit_test(test_unknown_cluster),
		cmocka_unit_test(test_something_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
