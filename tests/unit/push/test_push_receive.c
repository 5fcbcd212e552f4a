/* SPDX-License-Identifier: Apache-2.0 */
/* test_push_receive.c - requests of strangers: what is taken from them, and what is refused why. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "push/push_wire.h"
#include "push_fixture.h"

static int receive(const char *json, struct seen *s, struct push_taken *t)
{
	struct push_handler h = handler(s);

	*t = (struct push_taken){0};
	return push_receive_metrics(json, strlen(json), true, &h, t, NULL);
}

/* A request with one resource: its attributes, and metrics. */
#define REQUEST(attributes, metrics)                                                               \
	"{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" attributes                         \
	"]},\"scopeMetrics\":[{\"scope\":{\"name\":\"ingero.health\"},\"metrics\":[" metrics       \
	"]}]}]}"
#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define INT(key, value)  "{\"key\":\"" key "\",\"value\":{\"intValue\":" value "}}"
#define WHO(node)        TEXT("ingero.node.id", node) "," TEXT("ingero.cluster.id", "c")
#define METRIC(name, attributes, value)                                                            \
	"{\"name\":\"" name "\",\"gauge\":{\"dataPoints\":[{\"attributes\":[" attributes           \
	"],\"timeUnixNano\":\"5\"," value "}]}}"
#define ACTIVE       TEXT("ingero.node.state", "active")
#define SCORE(value) METRIC("ingero.node.health_score", ACTIVE, "\"asDouble\":" value)

static void test_score_alone(void **state)
{
	struct push_taken t;
	struct seen s = {0};

	assert_int_equal(receive(REQUEST(WHO("n"), SCORE("0.5")), &s, &t), 0);
	assert_int_equal(t.taken, 1);
	assert_int_equal(s.healths, 1);
	assert_true(s.health[0].score == 0.5);
	assert_int_equal(s.health[0].sent_ns, 5);
	assert_int_equal(s.health[0].who.rank, -1);
	assert_int_equal(s.health[0].who.world_size, 0);
	assert_int_equal(s.health[0].who.boot, 0);
	assert_string_equal(s.health[0].cohort, "");
	assert_true(s.health[0].throughput == 1 && s.health[0].cpu == 1);
	for (size_t i = 0; i < PUSH_SIGNAL_COUNT; i++)
		assert_true(s.health[0].signals[i] == -1);
}

static void test_without_a_score_there_is_no_health(void **state)
{
	struct push_taken t;
	struct seen s = {0};

	assert_int_equal(receive(REQUEST(WHO("n"), METRIC("ingero.node.world_size", "",
							   "\"asInt\":4") "," METRIC("system.load",
							   "", "\"asInt\":4")),
				 &s, &t),
		0);
	assert_int_equal(s.healths, 0);
	assert_int_equal(t.taken, 0);
	assert_int_equal(t.rejected, 0);
	assert_int_equal(t.foreign, 2);
}

/* Values are the cluster's to refuse: they arrive as they are. */
static void test_values_that_are_no_numbers(void **state)
{
	struct push_taken t;
	struct seen s = {0};

	assert_int_equal(
		receive(REQUEST(WHO("n"),
				SCORE("\"NaN\"") "," METRIC("ingero.node.cpu_availability", "",
					"\"asDouble\":\"-Infinity\"") "," METRIC("ingero.node.step_seconds",
					"",
					"\"asDouble\":\"Infinity\"") "," METRIC("ingero.node.memory_headroom",
					"", "\"asDouble\":\"x\"")),
			&s, &t),
		0);
	assert_int_equal(t.taken, 3);
	assert_int_equal(t.rejected, 1);
	assert_string_equal(t.why, "a point of ingero.node.memory_headroom has no number");
	assert_true(isnan(s.health[0].score));
	assert_true(isinf(s.health[0].cpu) && s.health[0].cpu < 0);
	assert_true(isinf(s.health[0].signals[PUSH_SIGNAL_STEP]));
	assert_true(s.health[0].memory == 1);
}

static void test_a_refusal_rejects_the_points(void **state)
{
	struct push_taken t;
	struct seen s = {.answer = -ENOSPC};

	assert_int_equal(receive(REQUEST(WHO("n"),
					 SCORE("1") "," METRIC("ingero.node.world_size", "",
						 "\"asInt\":4") "," METRIC("x", "", "\"asInt\":4")),
				 &s, &t),
		0);
	assert_int_equal(t.taken, 0);
	assert_int_equal(t.rejected, 2);
	assert_int_equal(t.foreign, 1);
	assert_string_not_equal(t.why, "");
}

/* A collector sends what several agents pushed, resources of one node apart; two agents with one name
 * stay two. */
static void test_nodes_are_put_together(void **state)
{
#define PART(who, metrics)                                                                         \
	"{\"resource\":{\"attributes\":[" who "]},\"scopeMetrics\":[{\"metrics\":[" metrics "]}]}"
	static const char text[] = "{\"resourceMetrics\":[" PART(WHO("b"), SCORE("0.25")) "," PART(
		WHO("a"), SCORE("0.5")) "," PART(WHO("b"),
		METRIC("ingero.node.world_size", "",
			"\"asInt\":4")) "," PART(WHO("b") "," INT("ingero.agent.boot", "7"),
		SCORE("0.75")) "]}";
	struct push_taken t;
	struct seen s = {0};

	assert_int_equal(receive(text, &s, &t), 0);
	assert_int_equal(t.taken, 4);
	assert_int_equal(s.healths, 3);
	assert_string_equal(s.health[0].who.node, "b");
	assert_int_equal(s.health[0].who.world_size, 4);
	assert_string_equal(s.health[1].who.node, "a");
	assert_string_equal(s.health[2].who.node, "b");
	assert_int_equal(s.health[2].who.boot, 7);
	assert_true(s.health[2].score == 0.75);
}

static void assert_rejected(const char *text, const char *why)
{
	struct push_taken t;
	struct seen s = {0};

	assert_int_equal(receive(text, &s, &t), 0);
	assert_int_equal(s.healths, 0);
	assert_int_equal(t.taken, 0);
	assert_int_equal(t.rejected, 1);
	assert_string_equal(t.why, why);
}

#define LONG_127                                                                                       \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void test_names(void **state)
{
	struct push_taken t;
	struct seen s = {0};

	assert_int_equal(receive(REQUEST(WHO(LONG_127), SCORE("1")), &s, &t), 0);
	assert_string_equal(s.health[0].who.node, LONG_127);
	assert_int_equal(receive(REQUEST(WHO("n\\u00e9\\ud83d\\ude00"), SCORE("1")), &s, &t), 0);
	assert_int_equal(s.healths, 2);
	assert_rejected(REQUEST(WHO(LONG_127 "b"), SCORE("1")),
		"ingero.node.id is too long or not plain text");
	assert_rejected(
		REQUEST(WHO("a\\nb"), SCORE("1")), "ingero.node.id is too long or not plain text");
	assert_rejected(REQUEST(WHO("a\\u009bb"), SCORE("1")),
		"ingero.node.id is too long or not plain text");
	assert_rejected(REQUEST(WHO("a\\u0000b"), SCORE("1")),
		"ingero.node.id is too long or not plain text");
	assert_rejected(REQUEST(WHO(""), SCORE("1")), "ingero.node.id is missing");
	assert_rejected(
		REQUEST(TEXT("ingero.node.id", "n"), SCORE("1")), "ingero.cluster.id is missing");
	assert_rejected(REQUEST(INT("ingero.node.id", "7"), SCORE("1")),
		"ingero.node.id is too long or not plain text");
	assert_rejected(REQUEST("", SCORE("1")), "ingero.node.id is missing");
	assert_rejected(
		REQUEST(WHO("n"), METRIC("ingero.node.health_score",
					  TEXT("ingero.node.state", "stale"), "\"asDouble\":1")),
		"ingero.node.state is not a state that is pushed");
	assert_rejected(REQUEST(WHO("n"), METRIC("ingero.node.health_score", "", "\"asDouble\":1")),
		"ingero.node.state is not a state that is pushed");
	assert_rejected(REQUEST(WHO("n"), METRIC("ingero.node.health_score",
						  ACTIVE "," TEXT("ingero.cgroup_path_hash",
							  "0123456789abcdef0"),
						  "\"asDouble\":1")),
		"ingero.cgroup_path_hash is too long or not plain text");
}

static void test_rank_and_boot(void **state)
{
	struct push_taken t;
	struct seen s = {0};

#define RANKED(attribute) REQUEST(WHO("n") "," attribute, SCORE("1"))
	assert_int_equal(receive(RANKED(INT("ingero.node.rank", "\"0\"")), &s, &t), 0);
	assert_int_equal(s.health[0].who.rank, 0);
	assert_int_equal(receive(RANKED(TEXT("ingero.node.rank", "41")), &s, &t), 0);
	assert_int_equal(s.health[1].who.rank, 41);
	assert_int_equal(
		receive(RANKED(TEXT("ingero.agent.boot", "18446744073709551615")), &s, &t), 0);
	assert_true(s.health[2].who.boot == UINT64_MAX);
	assert_int_equal(receive(RANKED(TEXT("ingero.agent.boot", "6f1c-9d0e")), &s, &t), 0);
	assert_true(s.health[3].who.boot != 0);
	assert_rejected(RANKED(INT("ingero.node.rank", "-2")), "ingero.node.rank is out of range");
	assert_rejected(
		RANKED(INT("ingero.node.rank", "2147483648")), "ingero.node.rank is out of range");
	assert_rejected(
		RANKED(INT("ingero.world_size", "-1")), "ingero.world_size is out of range");
}

/* Nothing of a request that breaks off reaches the cluster. */
static void test_cut_requests_have_no_effect(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	static const struct push_health health = {
		.who = {.cluster = "c", .node = "n", .rank = 0}, .gpu_model = "m", .gpu_count = 1};
	const struct push_metrics m = {.health = &health};

	for (int json = 0; json < 2; json++) {
		buf_clear(&b);
		push_metrics_write(&b, &m, json);
		for (size_t len = 1; len < b.len - 1; len++) { /* a line break may be missing */
			struct push_taken t = {.taken = 99};
			struct seen s = {0};
			struct push_handler h = handler(&s);
			struct errinfo e = {0};

			assert_int_equal(
				push_receive_metrics(b.data, len, json, &h, &t, &e), -EBADMSG);
			assert_int_equal(s.healths, 0);
			assert_int_equal(t.taken, 99);
			assert_string_not_equal(e.text, "");
		}
	}
}

static void test_too_many_nodes(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(16 << 20);
	struct push_taken t;
	struct seen s = {0};

	buf_puts(&b, "{\"resourceMetrics\":[");
	for (int i = 0; i < 10001; i++)
		buf_printf(&b,
			"%s{\"resource\":{\"attributes\":[{\"key\":\"ingero.node.id\",\"value\":{"
			"\"stringValue\":\"%d\"}}," TEXT("ingero.cluster.id",
				"c") "]},\"scopeMetrics\":[{\"metrics\":[" SCORE("1") "]}]}",
			i ? "," : "", i * 7919 % 10007);
	buf_puts(&b, "]}");
	assert_int_equal(receive(b.data, &s, &t), 0);
	assert_int_equal(s.healths, 10000);
	assert_int_equal(t.taken, 10000);
	assert_int_equal(t.rejected, 1);
	assert_string_equal(t.why, "the request has too many nodes");
}

static int receive_logs(const char *json, struct seen *s, struct push_taken *t)
{
	struct push_handler h = handler(s);

	return push_receive_logs(json, strlen(json), true, &h, t, NULL);
}

#define RECORD(event, rest)                                                                        \
	"{\"resourceLogs\":[{\"resource\":{\"attributes\":[" WHO(                                  \
		"n") "]},\"scopeLogs\":[{\"logRecords\":[{\"eventName\":\"" event "\"," rest       \
		     "}]}]}]}"

static void test_records_of_strangers(void **state)
{
	struct push_taken t;
	struct seen s = {0};

	assert_int_equal(receive_logs(RECORD("ingero.collectives", "\"body\":{\"bytesValue\":"
								   "\"SUNMAQEAAAA=\"}"),
				 &s, &t),
		0);
	assert_int_equal(s.batches, 1); /* an empty one, as JSON */
	assert_int_equal(s.calls.batch, 1);
	assert_int_equal(
		receive_logs(
			RECORD("ingero.collectives", "\"body\":{\"stringValue\":\"x\"}"), &s, &t),
		0);
	assert_int_equal(t.rejected, 1);
	assert_int_equal(receive_logs(RECORD("ingero.report",
					      "\"attributes\":[" INT("process.pid", "-1") "]"),
				 &s, &t),
		0);
	assert_int_equal(t.rejected, 1);
	assert_int_equal(s.reports, 0);
	assert_int_equal(
		receive_logs(RECORD("ingero.report",
				     "\"attributes\":[" TEXT("ingero.doing", "dancing") "]"),
			&s, &t),
		0);
	assert_int_equal(s.reports, 1);
	assert_int_equal(s.report.doing, PUSH_DOING_UNKNOWN);
	assert_int_equal(s.report.world_rank, -1);
	assert_int_equal(receive_logs(RECORD("x", "\"body\":null"), &s, &t), 0);
	assert_int_equal(t.foreign, 1);
	assert_int_equal(receive_logs("{\"resourceLogs\":[{\"scopeLogs\":[{\"scope\":{\"name\":"
				      "\"ingero.report\"},\"logRecords\":[{}]}]}]}",
				 &s, &t),
		0);
	assert_int_equal(t.rejected, 1);
	assert_string_equal(t.why, "ingero.node.id is missing");
}

static void test_long_sentences_are_cut(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct push_taken t;
	struct seen s = {0};

	buf_puts(&b,
		"{\"resourceLogs\":[{\"resource\":{\"attributes\":[" WHO(
			"n") "]},\"scopeLogs\":[{\"logRecords\":[{\"eventName\":\"ingero.report\","
			     "\"attributes\":[{\"key\":\"ingero.cause\",\"value\":{\"stringValue\":\"");
	for (int i = 0; i < 400; i++)
		buf_puts(&b, "\xc3\xa9");
	buf_puts(&b, "\"}}]}]}]}]}");
	assert_int_equal(receive_logs(b.data, &s, &t), 0);
	assert_int_equal(strlen(s.report.cause), (PUSH_TEXT_MAX - 1) / 2 * 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_score_alone),
		cmocka_unit_test(test_without_a_score_there_is_no_health),
		cmocka_unit_test(test_values_that_are_no_numbers),
		cmocka_unit_test(test_a_refusal_rejects_the_points),
		cmocka_unit_test(test_nodes_are_put_together),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_rank_and_boot),
		cmocka_unit_test(test_cut_requests_have_no_effect),
		cmocka_unit_test(test_too_many_nodes),
		cmocka_unit_test(test_records_of_strangers),
		cmocka_unit_test(test_long_sentences_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
