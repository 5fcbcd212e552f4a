/* SPDX-License-Identifier: Apache-2.0 */
/* test_notice_stream.c - an episode has one event id in all of its messages, also for rank 0. */
#include "notice_fixture.h"

#include "cluster/notify/notify.h"

static void test_messages(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(STREAM_LINE_MAX);
	struct stream_message m;

	for (int kind = FLEET_NOTICE_BEGAN; kind <= FLEET_NOTICE_ENDED; kind++) {
		struct fleet_notice n = notice((enum fleet_notice_kind)kind, 7);

		assert_true(notice_stream(&n, (wall_time){0}, &m));
		buf_clear(&b);
		assert_int_equal(stream_message_line(&b, &m), 0);
		assert_non_null(
			strstr(buf_str(&b), kind == FLEET_NOTICE_ENDED ? "\"straggler_resolved\""
								       : "\"straggler_state\""));
		assert_non_null(strstr(buf_str(&b), "\"event_id\":\"event-7\",\"rank\":0"));
	}
}

static void test_what_has_no_node(void **state)
{
	struct fleet_notice n = notice(FLEET_NOTICE_BEGAN, 7);
	struct stream_message m;

	n.episode.node[0] = 0;
	assert_false(notice_stream(&n, (wall_time){0}, &m));
	n = notice(FLEET_NOTICE_BEGAN, 7);
	n.episode.signal[0] = 0;
	assert_true(notice_stream(&n, (wall_time){0}, &m));
	assert_string_equal(m.state.dominant_signal, "straggler");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_what_has_no_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
