/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations fail while requests of agents are written, read and recognised: -ENOMEM, and nothing of a request
 * of metrics has reached the cluster. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/keep/seen.h"
#include "fault.h"
#include "push/push_wire.h"

static int take_health(void *arg, const struct push_health *h)
{
	++*(size_t *)arg;
	return 0;
}

static int take_calls(void *arg, const struct push_calls *c)
{
	++*(size_t *)arg;
	assert_int_equal(c->count, 100);
	return 0;
}

/* Texts with escapes are copied; several nodes make tables grow. */
static int receive_metrics(void *arg)
{
#define NODE(name)                                                                                 \
	"{\"scopeMetrics\":[{\"metrics\":[{\"gauge\":{\"dataPoints\":[{\"attributes\":[{\"key\":"  \
	"\"ingero.node.st\\u0061te\",\"value\":{\"stringValue\":\"\\u0061ctive\"}}],"              \
	"\"asDouble\":1}]},\"name\":\"ingero.node.health_sc\\u006fre\"}]}],\"resource\":"          \
	"{\"attributes\":[{\"key\":\"ingero.node.id\",\"value\":{\"stringValue\":\"" name "\"}},"  \
	"{\"key\":\"ingero.cluster.id\",\"value\":{\"stringValue\":\"\\u0063\"}}]}}"
	static const char text[] =
		"{\"resourceMetrics\":[" NODE("a") "," NODE("b") "," NODE("c") "]}";
	size_t healths = 0;
	const struct push_handler h = {.arg = &healths, .health = take_health};
	struct push_taken t = {.taken = 99};
	int r = push_receive_metrics(text, strlen(text), true, &h, &t, NULL);

	assert_int_equal(healths, r < 0 ? 0 : 3);
	assert_int_equal(t.taken, r < 0 ? 99 : 3);
	assert_int_equal(t.rejected, 0);
	return r;
}

static void metrics(void **state)
{
	assert_true(fault_torture(receive_metrics, NULL) >= 6);
}

static int send_calls(void *arg)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct push_call items[100] = {0};
	struct push_calls c = {.who = {.cluster = "c", .node = "n"}, .items = items, .count = 100};
	size_t batches = 0;
	const struct push_handler h = {.arg = &batches, .calls = take_calls};
	struct push_taken t = {0};
	int r;

	for (size_t i = 0; i < 100; i++)
		items[i] = (struct push_call){.comm = 1 + i / 2, .seq = i, .peer = -1};
	push_calls_protobuf(&b, &c);
	if (b.err)
		return b.err;
	r = push_receive_logs(b.data, b.len, false, &h, &t, NULL);
	assert_int_equal(batches, r < 0 ? 0 : 1);
	return r;
}

static void calls(void **state)
{
	assert_true(fault_torture(send_calls, NULL) >= 6);
}

/* A wrong key would make a request that is not kept a duplicate of one that is. */
static int make_key(void *arg)
{
	struct seen_key k;
	int r = seen_key_of("metrics", "some bytes", 10, &k);

	if (r == 0)
		assert_memory_equal(&k, arg, sizeof(k));
	return r;
}

static void keys(void **state)
{
	struct seen_key right, other;

	assert_int_equal(seen_key_of("metrics", "some bytes", 10, &right), 0);
	assert_int_equal(seen_key_of("metrics", "more bytes", 10, &other), 0);
	assert_memory_not_equal(&right, &other, sizeof(right));
	assert_true(fault_torture(make_key, &right) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metrics),
		cmocka_unit_test(calls),
		cmocka_unit_test(keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
