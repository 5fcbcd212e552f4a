/* SPDX-License-Identifier: Apache-2.0 */
/* test_sink.c - lines of the stream as figures: types, bad lines, long ones, who is a straggler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "notify/sink/sink.h"

#define NOW ((wall_time){5 * (int64_t)NS_PER_S})

static void feed(struct sink *s, const char *text)
{
	sink_feed(s, text, strlen(text), NOW);
}

static void has(const struct sink *s, const char *line, bool wanted)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	_cleanup_buf_ struct buf whole = BUF_INIT(1 << 12);

	sink_metrics(s, &b);
	assert_int_equal(b.err, 0);
	buf_printf(&whole, "\n%s\n", line);
	if (!!strstr(buf_str(&b), buf_str(&whole)) != wanted)
		fail_msg("'%s' is %sthere:\n%s", line, wanted ? "not " : "", buf_str(&b));
}

static void state_of(struct sink *s, const char *node, bool resolved)
{
	char line[256];

	snprintf(line, sizeof(line),
		"{\"type\":\"straggler_%s\",\"node_id\":\"%s\",\"cluster_id\":\"c\"}\n",
		resolved ? "resolved" : "state", node);
	feed(s, line);
}

static void test_stragglers_come_and_go(void **state)
{
	struct sink *s;

	assert_int_equal(sink_new(10, &s), 0);
	state_of(s, "a", false);
	state_of(s, "a", false);
	state_of(s, "b\\\"", false);
	has(s, "ingero_sink_events_total{type=\"straggler_state\"} 3", true);
	has(s, "ingero_sink_active_stragglers{cluster_id=\"c\",node_id=\"a\"} 1", true);
	has(s, "ingero_sink_active_stragglers{cluster_id=\"c\",node_id=\"b\\\"\"} 1", true);
	has(s, "ingero_sink_last_event_timestamp_seconds 5", true);
	state_of(s, "a", true);
	state_of(s, "never", true);
	has(s, "ingero_sink_active_stragglers{cluster_id=\"c\",node_id=\"a\"} 1", false);
	has(s, "ingero_sink_events_total{type=\"straggler_resolved\"} 2", true);
	sink_free(s);
}

static void test_the_oldest_leaves(void **state)
{
	char name[8], line[96];
	struct sink *s;

	assert_int_equal(sink_new(3, &s), 0);
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		state_of(s, name, false);
	}
	for (int i = 0; i < 5; i++) {
		snprintf(line, sizeof(line),
			"ingero_sink_active_stragglers{cluster_id=\"c\",node_id=\"n%d\"} 1", i);
		has(s, line, i >= 2);
	}
	has(s, "ingero_sink_dropped_total{reason=\"cap_reached\"} 2", true);
	sink_free(s);
}

static void test_bad_lines(void **state)
{
	static const char *const bad[] = {"x", "[]", "{}", "{\"type\":7}", "{\"type\":\"memory\"",
		"{\"type\":\"memory\"} x", "{\"type\":\"straggler_state\",\"cluster_id\":\"c\"}",
		"{\"type\":\"straggler_state\",\"node_id\":\"a\",\"cluster_id\":null}",
		"{\"type\":\"straggler_state\",\"node_id\":\"\",\"cluster_id\":\"c\"}",
		"{\"type\":\"straggler_state\",\"node_id\":\"a\\u0000\",\"cluster_id\":\"c\"}"};
	char line[96];
	struct sink *s;

	assert_int_equal(sink_new(3, &s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		feed(s, bad[i]);
		feed(s, "\n");
	}
	snprintf(line, sizeof(line), "ingero_sink_parse_errors_total %zu", ARRAY_SIZE(bad));
	has(s, line, true);
	feed(s, "\n\r\n{\"type\":\"memory\",\"new\":[{}]}\r\n{\"type\":\"new\"}\n"); /* controls */
	has(s, line, true);
	has(s, "ingero_sink_events_total{type=\"memory\"} 1", true);
	has(s, "ingero_sink_events_total{type=\"unknown\"} 1", true);
	sink_free(s);
}

static void test_long_lines_and_pieces(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct sink *s;

	assert_int_equal(sink_new(3, &s), 0);
	buf_puts(&b, "{\"type\":\"memory\",\"x\":\"");
	while (b.len < SINK_LINE_MAX - 2)
		buf_putc(&b, 'x');
	buf_puts(&b, "\"}\n"); /* exactly the longest */
	for (size_t i = 0; i < b.len; i += 1000)
		sink_feed(s, b.data + i, MIN(b.len - i, (size_t)1000), NOW);
	has(s, "ingero_sink_events_total{type=\"memory\"} 1", true);
	buf_clear(&b);
	while (b.len < 3 * SINK_LINE_MAX)
		buf_putc(&b, 'x');
	buf_puts(&b, "\n{\"type\":\"memory\"}\n{\"type\":");
	sink_feed(s, b.data, b.len, NOW);
	has(s, "ingero_sink_dropped_total{reason=\"line_too_long\"} 1", true);
	has(s, "ingero_sink_events_total{type=\"memory\"} 2", true);
	sink_connected(s, false); /* in the middle of a line */
	feed(s, "{\"type\":\"memory\"}\n");
	has(s, "ingero_sink_events_total{type=\"memory\"} 3", true);
	has(s, "ingero_sink_parse_errors_total 0", true);
	sink_free(s);
}

static void test_ready(void **state)
{
	struct sink *s;

	assert_int_equal(sink_new(3, &s), 0);
	assert_false(sink_is_ready(s, NOW, 60 * NS_PER_S));
	sink_connected(s, true);
	has(s, "ingero_sink_connected 1", true);
	assert_true(sink_is_ready(s, NOW, 60 * NS_PER_S));
	feed(s, "{\"type\":\"memory\"}\n");
	sink_connected(s, false);
	has(s, "ingero_sink_connected 0", true);
	assert_true(sink_is_ready(s, (wall_time){65 * (int64_t)NS_PER_S}, 60 * NS_PER_S));
	assert_false(sink_is_ready(s, (wall_time){66 * (int64_t)NS_PER_S}, 60 * NS_PER_S));
	sink_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stragglers_come_and_go),
		cmocka_unit_test(test_the_oldest_leaves),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_long_lines_and_pieces),
		cmocka_unit_test(test_ready),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
