/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations fail while a line of MCP is answered: there is a reply that is JSON, or none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../unit/mcp_fixture.h"
#include "fault.h"
#include "mcp/http_transport.h"

static const char *const lines[] = {
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
	"\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}",
	"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}",
	"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\","
	"\"arguments\":{\"n\":3}}}",
	"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\","
	"\"arguments\":{\"n\":30}}}",
	"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"resources/read\",\"params\":{\"uri\":"
	"\"test://x/7/y\"}}",
	"{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"no/such\"}",
	"not JSON",
};

static int use_line(void *arg)
{
	const char *line = arg;
	struct dispatcher_lines session = {0};
	struct buf reply = BUF_INIT(1 << 20);
	struct dispatcher *t = NULL;
	json_t *doc;
	int r = dispatcher_new(&fixture_offer, &t, NULL);

	if (r < 0)
		return r;
	dispatcher_line(t, &session, line, strlen(line), &reply);
	fault_suspend();
	assert_true(reply.len || reply.err); /* a request is never left without an answer */
	if (reply.len) {
		doc = json_loadb(reply.data, reply.len, 0, NULL);
		if (!doc)
			fail_msg("not JSON: %.*s", (int)reply.len, reply.data);
		json_decref(doc);
	}
	r = reply.err || !reply.len ? -ENOMEM : 0;
	buf_done(&reply);
	dispatcher_free(t);
	return r;
}

static void lines_are_answered(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_true(fault_torture(use_line, (void *)lines[i]) > 10);
}

static const char *no_field(const void *arg, const char *name)
{
	if (strcmp(name, "content-type") == 0)
		return "application/json";
	return strcmp(name, "accept") == 0 ? "application/json, text/event-stream" : NULL;
}

static int use_post(void *arg)
{
	const char *line = arg;
	struct http_transport_request q = {
		.method = "POST", .body = line, .body_len = strlen(line), .field = no_field};
	struct http_transport_reply reply = {0};
	struct dispatcher *t = NULL;
	int r = dispatcher_new(&fixture_offer, &t, NULL);

	if (r < 0)
		return r;
	http_transport_answer(t, &q, &reply);
	fault_suspend();
	assert_in_range(reply.status, 200, 599);
	buf_done(&reply.body);
	dispatcher_free(t);
	return 0;
}

static void posts_are_answered(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_true(fault_torture(use_post, (void *)lines[i]) > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_answered),
		cmocka_unit_test(posts_are_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
