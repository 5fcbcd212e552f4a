/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain_delayed_ack.c - both ends of a connection wait for the other, or one of them takes its time. */
#include <errno.h>

#include "chain_fixture.h"

enum { PEER = 700, THIRD = 800, PORT = 8000, GIVEN = 40000 };

static struct ledger_row *stay(
	struct chain_scene *s, int64_t at, uint32_t pid, enum wire_ledger_line line, uint64_t ms)
{
	struct ledger_row *r = &s->ledger[s->rec.ledger_count++];

	*r = (struct ledger_row){.start.ns = at,
		.dur_ns = ms * NS_PER_MS,
		.stay_ns = ms * NS_PER_MS,
		.pid = pid,
		.tid = pid,
		.mark = MARK_STAY,
		.stay_line = (uint8_t)line,
		.waker = WAKER_INTERRUPT};
	return r;
}

/* Of the thread of @r: in the call all the time, or after poll(). */
static struct event *receive(struct chain_scene *s, const struct ledger_row *r, uint32_t port)
{
	bool is_polled = r->stay_line == LEDGER_POLL;
	int64_t at = is_polled ? ledger_end_ns(r) + (int64_t)(50 * NS_PER_US) : r->start.ns;
	struct event *e = chain_event(s, at, SOURCE_NET, NET_RECV, r->pid);

	event_peer_set(e, "127.0.0.1:1");
	e->dev = port;
	e->dur_ns = is_polled ? 10 * NS_PER_US : r->stay_ns;
	e->wait_ns = r->stay_ns;
	return e;
}

/* The job waits 44 ms for the peer's answer in each slow step. */
static int64_t asked(struct chain_scene *s, int step)
{
	int64_t at = chain_at(CHAIN_SLOW + step);
	struct ledger_row *r = stay(s, at, CHAIN_JOB, LEDGER_SOCKET, 44);

	r->waker = WAKER_TASK;
	r->waker_pid = PEER;
	receive(s, r, PORT)->peer_pid = PEER;
	return at;
}

static void assert_end(struct chain_scene *s, enum resource expected)
{
	assert_int_equal(chain_end(s)->resource, expected);
	assert_int_equal(s->delay.end.pid, PEER);
}

/* Neither has anything to do. */
static void test_both_receive(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_NETWORK, true);

	for (int i = 0; i < 50; i++)
		receive(s, stay(s, asked(s, i), PEER, LEDGER_SOCKET, 41), GIVEN);
	assert_end(s, RESOURCE_DELAYED_ACK);
	assert_string_equal(s->delay.end.detail, "50 waits of 44 ms on average");
	free(s);
}

static void test_the_peer_polls_before_it_receives(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_NETWORK, true);

	for (int i = 0; i < 50; i++)
		receive(s, stay(s, asked(s, i), PEER, LEDGER_POLL, 41), GIVEN);
	assert_end(s, RESOURCE_DELAYED_ACK);
	free(s);
}

/* Its stay in poll() has a time limit. It receives the next request when that comes, which is told to have waited for both
 * stays. */
static void test_the_peer_sleeps_in_poll(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_NETWORK, true);

	for (int i = 0; i < 50; i++) {
		struct ledger_row *r = stay(s, asked(s, i), PEER, LEDGER_POLL, 42);
		struct event *e = receive(s, r, GIVEN);

		e->dur_ns = 6 * NS_PER_MS;
		e->wait_ns = 48 * NS_PER_MS;
	}
	assert_end(s, RESOURCE_PROCESS);
	free(s);
}

static void test_the_peer_receives_nothing_in_time(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_NETWORK, true);

	for (int i = 0; i < 50; i++)
		receive(s, stay(s, asked(s, i), PEER, LEDGER_SOCKET, 42), GIVEN)->ret = -EAGAIN;
	assert_end(s, RESOURCE_PROCESS);
	free(s);
}

/* It computes for 44 ms, and waits as long for the next request. */
static void test_they_take_turns(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_NETWORK, true);

	for (int i = 0; i < 50; i++) {
		int64_t at = asked(s, i) + (int64_t)(45 * NS_PER_MS);

		receive(s, stay(s, at, PEER, LEDGER_SOCKET, 44), GIVEN);
	}
	assert_end(s, RESOURCE_PROCESS);
	free(s);
}

static void test_the_peer_asks_a_third(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_NETWORK, true);

	for (int i = 0; i < 50; i++)
		receive(s, stay(s, asked(s, i), PEER, LEDGER_SOCKET, 43), i % 2 ? PORT : GIVEN)
			->peer_pid = i % 2 ? 0 : THIRD;
	assert_end(s, RESOURCE_PROCESS);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_receive),
		cmocka_unit_test(test_the_peer_polls_before_it_receives),
		cmocka_unit_test(test_the_peer_sleeps_in_poll),
		cmocka_unit_test(test_the_peer_receives_nothing_in_time),
		cmocka_unit_test(test_they_take_turns),
		cmocka_unit_test(test_the_peer_asks_a_third),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
