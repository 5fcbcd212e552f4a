/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of requests: what a route knows is taken, everything else is refused with a sentence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>

#include "serve/serve_private.h"

static const struct api_row all = {.path = "/x",
	.params = API_TIME | API_PID | API_NODE | API_LIMIT | API_POINTS | API_OP | API_STACKS};

static void test_what_is_known(void **state)
{
	struct answer_request w;
	struct errinfo e = {0};

	assert_int_equal(api_request(&all, "", &w, &e), 0);
	assert_true(!w.since_ns && !w.all && !w.pid_count && !w.node[0]);
	assert_int_equal(
		api_request(&all, "since=1h30m&pid=1,2&pid=3&node=a%20b&limit=7&points=9&stacks=1",
			&w, &e),
		0);
	assert_int_equal(w.since_ns, 5400 * NS_PER_S);
	assert_int_equal(w.pid_count, 3);
	assert_int_equal(w.pids[2], 3);
	assert_string_equal(w.node, "a b");
	assert_true(w.limit == 7 && w.points == 9 && w.stacks);
	assert_int_equal(api_request(&all, "since=all", &w, &e), 0);
	assert_true(w.all);
	assert_int_equal(api_request(&all, "since=0s", &w, &e), 0);
	assert_true(w.all);
	assert_int_equal(api_request(&all, "since=1w2d", &w, &e), 0);
	assert_int_equal(w.since_ns, 9ull * 24 * 3600 * NS_PER_S);
	assert_int_equal(api_request(&all, "op=cudamallocasync", &w, &e), 0);
	assert_true(w.source == SOURCE_CUDA && w.op == CUDA_MALLOC_ASYNC);
	assert_int_equal(api_request(&all, "source=nccl&op=ncclAllReduce&&", &w, &e), 0);
	assert_true(w.source == SOURCE_NCCL && w.op == NCCL_ALL_REDUCE);
}

static void test_what_is_not(void **state)
{
	static const char *const bad[] = {"sinc=5m", "since=soon", "since=", "since=-5m", "pid=x",
		"pid=0", "pid=1;2", "pid=4294967296", "limit=0", "limit=-1", "limit=1,2", "limit=x",
		"points=99999999999", "stacks=yes", "source=gpu", "op=nothing", "since=%zz",
		"since", "source=cuda&op=ncclAllReduce", "op=ncclAllReduce&source=cuda", "nodes=3",
		"=5m", NULL};
	struct answer_request w = {.limit = 42};
	struct errinfo e;

	for (const char *const *q = bad; *q; q++) {
		e = (struct errinfo){0};
		if (api_request(&all, *q, &w, &e) != -EINVAL || !e.text[0])
			fail_msg("%s", *q);
		assert_int_equal(w.limit, 42);
	}
	assert_int_equal(api_request(&(struct api_row){.path = "/y"}, "since=5m", &w, &e), -EINVAL);
	assert_non_null(strstr(e.text, "valid: none"));
}

static void test_ceilings(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct answer_request w;
	struct errinfo e = {0};

	for (int i = 1; i <= ANSWER_PIDS_MAX; i++)
		buf_printf(&b, "%spid=%d", b.len ? "&" : "", i);
	assert_int_equal(api_request(&all, buf_str(&b), &w, &e), 0);
	buf_puts(&b, "&pid=9");
	assert_int_equal(api_request(&all, buf_str(&b), &w, &e), -EINVAL);
	buf_clear(&b);
	buf_puts(&b, "node=");
	for (int i = 0; i < 5000; i++)
		buf_putc(&b, 'x');
	assert_int_equal(api_request(&all, buf_str(&b), &w, &e), -EINVAL);
}

static void test_rows_are_whole(void **state)
{
	size_t routes = 0, tools = 0;

	for (const struct api_row *r = api_rows; r->summary; r++) {
		routes += r->path != NULL;
		tools += r->tool != NULL;
		assert_true(r->path || r->tool);
		assert_true(!r->path || (r->method && r->path[0] == '/'));
		assert_true(!r->path || !!r->answer + !!r->make + !!r->reply == 1);
		assert_true(!r->tool || ((r->answer || r->run) && r->about));
		for (const struct api_row *o = r + 1; o->summary; o++) {
			assert_true(!r->path || !o->path || strcmp(r->path, o->path) != 0);
			assert_true(!r->tool || !o->tool || strcmp(r->tool, o->tool) != 0);
		}
	}
	assert_true(routes >= 29 && tools >= 15);
}

/* The arguments of a tool mean what the parameters of a URL do, and fail with the same words. */
static void test_tools_ask_likewise(void **state)
{
	static const struct {
		const char *json, *query;
	} same[] = {
		{"{\"since\":\"1h30m\",\"pid\":[1,2,3],\"limit\":7}",
			"since=1h30m&pid=1,2,3&limit=7"},
		{"{\"rank\":4,\"node\":\"a\",\"op\":\"cudaMallocAsync\"}",
			"rank=4&node=a&op=cudaMallocAsync"},
		{"{\"since\":\"soon\"}", "since=soon"},
		{"{\"op\":\"nothing\"}", "op=nothing"},
		{"{\"limit\":0}", "limit=0"},
	};
	struct answer_request x, y;

	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		json_t *arguments = json_loads(same[i].json, 0, NULL);
		struct errinfo e = {0}, f = {0};
		int r;

		memset(&x, 0, sizeof(x));
		memset(&y, 0, sizeof(y));
		r = api_request_json(&all, arguments, &x, &e);
		assert_int_equal(r, api_request(&all, same[i].query, &y, &f));
		assert_string_equal(e.text, f.text);
		assert_true(r == 0 || e.text[0]);
		assert_true(x.since_ns == y.since_ns && x.pid_count == y.pid_count &&
			    x.limit == y.limit && x.rank == y.rank && x.op == y.op);
		assert_string_equal(x.node, y.node);
		json_decref(arguments);
	}
}

static void test_short_and_full(void **state)
{
	static const struct {
		const char *json;
		bool brief;
	} rows[] = {{"{}", true}, {"{\"full\":true}", false}, {"{\"full\":false}", true},
		{"{\"tsc\":false}", false}, {"{\"tsc\":true}", true}, {"{\"id\":\"n:1\"}", false}};
	static const struct api_row row = {
		.tool = "x", .more = API_ID, .answer = incidents_json, .summary = ""};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *arguments = json_loads(rows[i].json, 0, NULL);
		struct answer_request w = {0};

		assert_int_equal(api_request_json(&row, arguments, &w, NULL), 0);
		assert_int_equal(w.brief, rows[i].brief);
		json_decref(arguments);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_known),
		cmocka_unit_test(test_what_is_not),
		cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_rows_are_whole),
		cmocka_unit_test(test_tools_ask_likewise),
		cmocka_unit_test(test_short_and_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
